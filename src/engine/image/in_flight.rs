//! Requests of a load that are on their way: given up together, and waited for before anything they may tag is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::{AbortHandle, JoinSet};

use crate::engine::cleanup::finish_on_a_thread;
use crate::engine::error::EngineError;

/// States of a request: being sent, sent to its end, given up before that.
const SENDING: u8 = 0;
const WHOLE: u8 = 1;
const GIVEN_UP: u8 = 2;

/// How much of a request the engine has. It is decided once whether it gets the end, which names the tag.
#[derive(Debug, Clone, Default)]
pub(super) struct Sending(Arc<AtomicU8>);

impl Sending {
    fn becomes(&self, state: u8) -> bool {
        self.0.compare_exchange(SENDING, state, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the request may end; if it was given up it may not.
    pub(super) fn end(&self) -> bool {
        self.becomes(WHOLE)
    }

    /// Whether it was given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN_UP
    }

    /// Gives it up, if the engine does not have it whole.
    fn give_up(&self) -> bool {
        self.becomes(GIVEN_UP)
    }
}

/// Requests on their way. Dropped, those that the engine does not have whole are given up, and the others waited for: the engine
/// would tag the image after the guard of its tag has removed it.
#[derive(Default)]
pub(super) struct InFlight {
    requests: JoinSet<Result<(), EngineError>>,
    sending: Vec<(Sending, AbortHandle)>,
}

impl InFlight {
    /// Starts a request.
    pub(super) fn start<F>(&mut self, request: impl FnOnce(Sending) -> F)
    where
        F: Future<Output = Result<(), EngineError>> + Send + 'static,
    {
        let sending = Sending::default();
        let started = self.requests.spawn(request(sending.clone()));
        self.sending.push((sending, started));
    }

    /// The number of requests that have not ended.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// The result of the request that ends first; `None`: there is none.
    pub(super) async fn next(&mut self) -> Option<Result<(), EngineError>> {
        let ended = self.requests.join_next().await?;
        Some(ended.unwrap_or_else(|error| Err(EngineError::File(std::io::Error::other(error)))))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        for (_, request) in self.sending.iter().filter(|(sending, _)| sending.give_up()) {
            request.abort();
        }
        // The requests go on meanwhile on the other threads of the runtime, if it has any.
        let has_threads =
            Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        if has_threads && !self.requests.is_empty() {
            let mut requests = std::mem::take(&mut self.requests);
            finish_on_a_thread(async move { while requests.join_next().await.is_some() {} });
        }
    }
}
