//! A wheel that a command is given: a file, or a release whose wheel the package index has.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::fetch::open_verified;
use crate::model::lock::Lock;
use crate::model::request::WheelArgument;
use crate::model::versions::GlibcVersion;
use crate::packages::{Release, WheelName, WheelSource, wheel_name};
use crate::report::Reporter;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::error::CommandError;
use crate::workflow::session::downloads;

/// A wheel on this machine.
pub(crate) struct WheelFile {
    /// Its file name.
    pub(crate) file: String,
    pub(crate) name: WheelName,
    pub(crate) path: Utf8PathBuf,
}

/// A wheel as it was given.
pub(crate) enum GivenWheel {
    File(WheelFile),
    Release(Release),
}

impl GivenWheel {
    /// Reads what was typed.
    pub(crate) fn parse(wheel: &WheelArgument, settings: &Settings) -> Result<Self, CommandError> {
        match wheel {
            WheelArgument::Release(text) => Ok(Self::Release(Release::parse(text)?)),
            WheelArgument::File(path) => {
                let path = settings.paths.current_dir.join(path);
                let file = path.file_name().unwrap_or_default().to_owned();
                Ok(Self::File(WheelFile { name: wheel_name(&path)?, file, path }))
            }
        }
    }

    /// Returns the file; that of a release for the Python of a lock on a base with that glibc is downloaded into the cache and has
    /// the SHA-256 that the index lists.
    pub(crate) async fn find(
        self,
        (lock, glibc): (&Lock, &GlibcVersion),
        settings: &Settings,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<WheelFile, CommandError> {
        let release = match self {
            Self::File(wheel) => return Ok(wheel),
            Self::Release(release) => release,
        };
        let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
        let (fetcher, index) = downloads(settings)?;
        let source = WheelSource { stack: &lock.stack, index: &index, fetcher: &fetcher, known: None };
        let wheel = source.published(&release, glibc).await?;
        // Which removes a damaged file.
        open_verified(&store, &wheel.sha256)?;
        source.gather(&[&wheel], &store, Arc::clone(reporter)).await?;
        let (name, path) = (wheel_name(Utf8Path::new(&wheel.file))?, store.blob_path(&wheel.sha256)?);
        Ok(WheelFile { name, file: wheel.file, path })
    }
}
