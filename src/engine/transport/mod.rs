//! Discovery of and connections to an engine: unix sockets, TCP with TLS, ssh.

pub(super) mod address;
pub(super) mod classify_error;
pub(super) mod daemon;
pub(super) mod dial;
pub(super) mod discovery;
pub(super) mod http;
pub(super) mod login;
pub(super) mod messages;
mod ssh;
mod tls;
pub(super) mod upgrade;
