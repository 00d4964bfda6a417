//! The session of a build: serves its context, secrets and health checks.
//!
//! Secrets stay in memory and are never written. The session ends on drop.

use std::collections::BTreeMap;
use std::pin::Pin;

use bollard_buildkit_proto::health::health_check_response::ServingStatus;
use bollard_buildkit_proto::health::health_server::{Health, HealthServer};
use bollard_buildkit_proto::health::{
    HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
};
use bollard_buildkit_proto::moby::buildkit::secrets::v1::secrets_server::{Secrets, SecretsServer};
use bollard_buildkit_proto::moby::buildkit::secrets::v1::{GetSecretRequest, GetSecretResponse};
use bollard_buildkit_proto::moby::filesync::packet::file_sync_server::FileSyncServer;
use bytes::Bytes;
use futures_util::Stream;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};

use super::sync::{ContextSync, context_key};
use super::types::{ImageBuildRequest, Secret};
use crate::engine::error::EngineError;
use crate::engine::sent_file::Refusal;
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::upgrade::grpc;

/// BuildKit's size limit of one secret.
const SECRET: usize = 500 * 1024;

/// A session with the daemon.
pub(super) struct BuildSession {
    /// Its id in the build request.
    pub(super) id: String,
    /// What was refused of the context.
    pub(super) refusal: Refusal,
    _server: AbortOnDropHandle<()>,
}

impl BuildSession {
    /// Opens a session for this build; the daemon requests nothing before the build starts.
    pub(super) async fn open(daemon: &Daemon, request: &ImageBuildRequest) -> Result<Self, EngineError> {
        let secrets = SecretBytes::new(&request.secrets)?;
        let id = format!("{:032x}", rand::random::<u128>());
        let key = context_key(&request.context, &request.context_secret);
        let headers = [
            ("X-Docker-Expose-Session-Uuid", id.as_str()),
            ("X-Docker-Expose-Session-Name", "envforge"),
            ("X-Docker-Expose-Session-Sharedkey", key.as_str()),
            ("X-Docker-Expose-Session-Grpc-Method", "/moby.filesync.v1.FileSync/DiffCopy"),
            ("X-Docker-Expose-Session-Grpc-Method", "/moby.buildkit.secrets.v1.Secrets/GetSecret"),
        ];
        let refusal = Refusal::default();
        let pipe = grpc(&daemon.dialer, "/session", &headers).await?;
        let router = tonic::transport::Server::builder()
            .add_service(HealthServer::new(Alive))
            .add_service(SecretsServer::new(secrets))
            .add_service(FileSyncServer::new(ContextSync::new(&request.context, &refusal)));
        let server = tokio::spawn(async move {
            // One connection only: the session lives as long as this stream is open.
            let incoming = futures_util::stream::iter([Ok::<_, std::io::Error>(pipe)]);
            if let Err(error) = router.serve_with_incoming(incoming).await {
                tracing::debug!(%error, "build session ended");
            }
        });
        Ok(Self { id, refusal, _server: AbortOnDropHandle::new(server) })
    }
}

struct SecretBytes(BTreeMap<String, Bytes>);

impl SecretBytes {
    fn new(secrets: &[Secret]) -> Result<Self, EngineError> {
        match secrets.iter().find(|secret| secret.bytes.len() > SECRET) {
            Some(secret) => Err(EngineError::SecretTooLarge {
                id: secret.id.clone(),
                size: secret.bytes.len(),
                limit: SECRET,
            }),
            None => {
                Ok(Self(secrets.iter().map(|secret| (secret.id.clone(), secret.bytes.clone())).collect()))
            }
        }
    }
}

#[tonic::async_trait]
impl Secrets for SecretBytes {
    async fn get_secret(
        &self,
        request: Request<GetSecretRequest>,
    ) -> Result<Response<GetSecretResponse>, Status> {
        let id = request.into_inner().id;
        match self.0.get(&id) {
            Some(bytes) => Ok(Response::new(GetSecretResponse { data: bytes.to_vec() })),
            // BuildKit interprets this code as an absent secret, which an optional one may be.
            None => Err(Status::not_found(format!("no secret `{id}`"))),
        }
    }
}

struct Alive;

#[tonic::async_trait]
impl Health for Alive {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(HealthCheckResponse { status: ServingStatus::Serving.into() }))
    }

    async fn list(&self, _: Request<HealthListRequest>) -> Result<Response<HealthListResponse>, Status> {
        Err(Status::unimplemented("only Check is served"))
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("only Check is served"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(size: usize) -> Secret {
        Secret { id: "token".to_owned(), bytes: Bytes::from(vec![b's'; size]) }
    }

    #[tokio::test]
    async fn get_secret_returns_not_found_when_absent() {
        let served = SecretBytes::new(&[secret(3)]).unwrap();
        let ask =
            |id: &str| Request::new(GetSecretRequest { id: id.to_owned(), ..GetSecretRequest::default() });
        assert_eq!(served.get_secret(ask("token")).await.unwrap().into_inner().data, b"sss");
        assert_eq!(served.get_secret(ask("other")).await.unwrap_err().code(), tonic::Code::NotFound);
    }

    #[test]
    fn too_large_secret_is_rejected() {
        assert!(SecretBytes::new(&[secret(SECRET)]).is_ok());
        let error = SecretBytes::new(&[secret(SECRET + 1)]).err().expect("an error");
        assert!(matches!(&error, EngineError::SecretTooLarge { id, .. } if id == "token"), "{error}");
        assert!(!format!("{error:?}").contains("sss"));
    }
}
