//! The network of containers and builds.

/// A network mode of containers and builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// The engine's bridge.
    #[default]
    Bridge,
    /// The engine host's own network.
    Host,
    /// No network.
    None,
}

impl Network {
    /// Returns the name that engines and options use: `bridge`, `host`, `none`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bridge => "bridge",
            Self::Host => "host",
            Self::None => "none",
        }
    }
}
