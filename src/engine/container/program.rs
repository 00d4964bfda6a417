//! The trait [`Programs`] and its values: running commands in containers.

use std::io;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio::io::AsyncWrite;

use crate::engine::error::EngineError;

/// A command to run in a running container.
#[derive(Debug, Clone, Default)]
pub struct ExecRequest {
    /// The command.
    pub command: Vec<String>,
    /// Additional environment, as `NAME=value`.
    pub env: Vec<String>,
    /// The working directory; `None`: the container's.
    pub workdir: Option<String>,
    /// Whether the command gets a terminal.
    pub terminal: bool,
    /// Whether the command gets input.
    pub stdin: bool,
}

/// Output of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Standard output, or terminal output.
    Out(Bytes),
    /// Standard error.
    Err(Bytes),
}

/// Input and output of a program.
pub struct Attached {
    /// Shutting it down ends the program's input.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Ends with the program.
    pub output: BoxStream<'static, io::Result<Output>>,
}

/// A program with its own terminal or output: the command of a container, or an additional one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The command of a container, by id or name.
    Command(String),
    /// An additional command, by its own id.
    Exec(String),
}

/// The running commands of containers.
#[async_trait]
pub trait Programs: Send + Sync {
    /// Attaches to a container's command; before the start, so that no output is lost.
    async fn attach(&self, container: &str, terminal: bool) -> Result<Attached, EngineError>;
    /// Starts a command in a running container.
    async fn exec(&self, container: &str, request: &ExecRequest) -> Result<(Program, Attached), EngineError>;
    /// Waits for the end of a program and returns its exit code.
    async fn exit_code(&self, program: &Program) -> Result<i64, EngineError>;
    /// Returns whether a command other than `but` runs next to the container's own.
    async fn has_other_execs(&self, container: &str, but: &Program) -> Result<bool, EngineError>;
    /// Sets the terminal size of a program: columns and rows.
    async fn resize(&self, program: &Program, size: (u16, u16)) -> Result<(), EngineError>;
}
