//! Programs in containers: attached, started, awaited, resized.

use std::time::Duration;

use async_trait::async_trait;
use bollard::query_parameters::ResizeContainerTTYOptionsBuilder;

use super::frames::output;
use super::program::{Attached, ExecRequest, Program, Programs};
use super::wait::wait_for;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::transport::classify_error::is_absent;
use crate::engine::transport::daemon::Daemon;
use crate::engine::transport::upgrade::{Upgrade, upgrade};

/// The key sequence that detaches a terminal. The engine's default begins with Ctrl-P, which every shell and editor uses.
const DETACH_KEYS: &str = "ctrl-^,ctrl-_,ctrl-^,ctrl-_";
/// Attempts to see the end of a command after the end of its output, and the pause between them.
const ENDED: (u32, Duration) = (200, Duration::from_millis(25));

#[async_trait]
impl Programs for Docker {
    async fn attach(&self, container: &str, terminal: bool) -> Result<Attached, EngineError> {
        let keys = DETACH_KEYS.replace('^', "%5E").replace(',', "%2C");
        let path = format!(
            "/v{}/containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1&detachKeys={keys}",
            self.daemon.client.client_version()
        );
        open(&self.daemon, &path, "attaching to a container", "", terminal).await
    }

    async fn exec(&self, container: &str, request: &ExecRequest) -> Result<(Program, Attached), EngineError> {
        let during = format!("starting `{}` in a container", request.command.join(" "));
        let options = bollard::exec::CreateExecOptions {
            attach_stdin: Some(request.stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(request.terminal),
            detach_keys: Some(DETACH_KEYS.to_owned()),
            env: Some(request.env.clone()),
            cmd: Some(request.command.clone()),
            working_dir: request.workdir.clone(),
            ..bollard::exec::CreateExecOptions::default()
        };
        let created = self.daemon.client.create_exec(container, options).await;
        let id = created.map_err(|error| self.daemon.fault(&during, error))?.id;
        let path = format!("/v{}/exec/{id}/start", self.daemon.client.client_version());
        let body = serde_json::json!({"Detach": false, "Tty": request.terminal}).to_string();
        let attached = open(&self.daemon, &path, &during, &body, request.terminal).await?;
        Ok((Program::Exec(id), attached))
    }

    async fn exit_code(&self, program: &Program) -> Result<i64, EngineError> {
        let id = match program {
            Program::Command(id) => return wait_for(&self.daemon, id, "waiting for the container").await,
            Program::Exec(id) => id,
        };
        // Its output has ended; the daemon sees the end of the command a moment later.
        for _ in 0..ENDED.0 {
            let answer = self.daemon.client.inspect_exec(id).await;
            let answer = answer.map_err(|error| self.daemon.fault("waiting for a command", error))?;
            match (answer.running, answer.exit_code) {
                (Some(true), _) | (_, None) => tokio::time::sleep(ENDED.1).await,
                (_, Some(code)) => return Ok(code),
            }
        }
        let text = "output stream closed while the container is running".to_owned();
        Err(EngineError::Refused { during: "waiting for a command".to_owned(), text })
    }

    async fn has_other_execs(&self, container: &str, but: &Program) -> Result<bool, EngineError> {
        let found = self.daemon.client.inspect_container(container, None).await;
        let found = match found {
            Ok(found) => found,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(self.daemon.fault("inspecting the container", error)),
        };
        for id in found.exec_ids.unwrap_or_default() {
            if *but == Program::Exec(id.clone()) {
                continue;
            }
            match self.daemon.client.inspect_exec(&id).await {
                Ok(exec) if exec.running == Some(true) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(self.daemon.fault("inspecting the container's commands", error)),
            }
        }
        Ok(false)
    }

    async fn resize(&self, program: &Program, (columns, rows): (u16, u16)) -> Result<(), EngineError> {
        let resized = match program {
            Program::Command(id) => {
                let size = ResizeContainerTTYOptionsBuilder::new().w(columns.into()).h(rows.into()).build();
                self.daemon.client.resize_container_tty(id, size).await
            }
            Program::Exec(id) => {
                let size = bollard::exec::ResizeExecOptions { width: columns, height: rows };
                self.daemon.client.resize_exec(id, size).await
            }
        };
        resized.map_err(|error| self.daemon.fault("resizing a terminal", error))
    }
}

async fn open(
    daemon: &Daemon,
    path: &str,
    during: &str,
    body: &str,
    terminal: bool,
) -> Result<Attached, EngineError> {
    let ask = Upgrade { during, path, protocol: "tcp", headers: &[], body };
    let (read, input) = tokio::io::split(upgrade(&daemon.dialer, &ask).await?);
    Ok(Attached { input: Box::pin(input), output: output(read, terminal) })
}
