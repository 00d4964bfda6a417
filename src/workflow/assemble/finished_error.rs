//! Why finished layers of another machine are refused.

use camino::Utf8Path;

use crate::failure::{Exit, Failure};

/// Why finished layers of another machine are refused. Nothing of them was used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FinishedLayerError {
    /// The lock records other layers.
    #[error("`{from}` has another layer ({title}) than the lock file records: {found}")]
    NotRecorded {
        /// A reference, or a directory.
        from: String,
        /// What it holds.
        title: String,
        /// Its digest.
        found: String,
    },
    /// The same inputs gave other layers here.
    #[error(
        "`{from}` has other layers ({title}) than this machine made of the same inputs: {found} instead of {made}"
    )]
    OtherThanMade {
        /// A reference, or a directory.
        from: String,
        /// What they hold.
        title: String,
        /// Their digests there.
        found: String,
        /// Their digests here.
        made: String,
    },
    /// The bytes of a layer are not those of its digest.
    #[error("`{from}` serves a wrong layer ({title}): expected {wanted}, found {found}")]
    OtherContent {
        /// A reference.
        from: String,
        /// What it holds.
        title: String,
        /// The digest that was looked for.
        wanted: String,
        /// That of its bytes, or why it has none.
        found: String,
    },
    /// Its documents are not those of finished layers.
    #[error("`{from}` does not hold finished layers: {found}")]
    Invalid {
        /// A reference.
        from: String,
        /// What is there instead.
        found: String,
    },
}

impl Failure for FinishedLayerError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        let (Self::NotRecorded { from, .. }
        | Self::OtherThanMade { from, .. }
        | Self::OtherContent { from, .. }
        | Self::Invalid { from, .. }) = self;
        if Utf8Path::new(from).is_absolute() {
            return vec![format!(
                "delete `{from}/layers`, then run `envforge vendor {from} --layers` online"
            )];
        }
        vec![
            format!("find out who wrote `{from}`, then delete it there: nothing of it was used"),
            "unset `[registry] layers` (ENVFORGE_LAYERS) to build without it".to_owned(),
        ]
    }
}
