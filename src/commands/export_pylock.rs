//! `export pylock`: the Python packages of a lock for pip, uv and tools that read their lock files. Asks no engine.

use crate::failure::{Exit, Failure};
use crate::model::export::pylock::pylock;
use crate::model::lock::{IndexKind, Lock};
use crate::model::migrate::is_pylock_name;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::export_context::{RequestedLock, requested_lock};
use crate::workflow::export_file::check_target;
use crate::workflow::package_addresses::package_addresses;

pub(super) async fn export_pylock(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let file = settings.paths.current_dir.join(&args.dir);
    if !file.file_name().is_some_and(is_pylock_name) {
        return Err(PylockError::Name { file: args.dir.to_string() }.into());
    }
    check_target(&file, args.force)?;
    let RequestedLock { wanted, lock } = requested_lock(args, settings)?;
    check_local_wheels(&lock)?;
    let addresses = package_addresses(&lock, &wanted, settings).await?;
    write_atomically(&file, pylock(&lock, &addresses).as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}

/// Refuses wheels that are in no index and were not built from a source of one.
fn check_local_wheels(lock: &Lock) -> Result<(), PylockError> {
    let is_built = |name: &str| lock.sources.iter().any(|source| source.name == name);
    let local = lock.wheels.iter().filter(|wheel| wheel.index == IndexKind::Local && !is_built(&wheel.name));
    let files: Vec<_> = local.map(|wheel| wheel.file.clone()).collect();
    if files.is_empty() { Ok(()) } else { Err(PylockError::Local { files }) }
}

/// Why a lock is not exported.
#[derive(Debug, thiserror::Error)]
enum PylockError {
    /// The file name is not one of PEP 751.
    #[error("invalid file name `{file}` (expected `pylock.toml` or `pylock.NAME.toml`)")]
    Name { file: String },
    /// Wheels without an address.
    #[error("cannot export wheels of no index: `{}`", files.join("`, `"))]
    Local { files: Vec<String> },
}

impl Failure for PylockError {
    fn exit(&self) -> Exit {
        match self {
            Self::Name { .. } => Exit::Usage,
            Self::Local { .. } => Exit::No,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Name { .. } => vec!["pip and uv recognize these files by their names".to_owned()],
            Self::Local { .. } => {
                vec!["publish them in an index of yours and name it in `indexes`".to_owned()]
            }
        }
    }
}
