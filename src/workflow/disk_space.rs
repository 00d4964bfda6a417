//! Free disk space, asked before a build instead of found missing after ten minutes of it.

use crate::model::lock::{Lock, LockedWheel};
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::session::Session;

/// Unpacked wheels take about this much of what they are packed (measured on torch 2.8.0+cu128: 6.4 GB of 3.3 GB).
const UNPACKED: u64 = 2;
/// System layer, developer stack and room to work, bytes.
const REST: u64 = 1_500_000_000;

/// Refuses if the engine's disk cannot hold what the Dockerfile of that lock writes.
pub(crate) fn check(session: &Session<'_>, lock: &Lock) -> Result<(), CommandError> {
    let wheels: u64 = lock.wheels.iter().filter_map(|wheel| wheel.size).sum();
    check_engine(session, wheels * UNPACKED + REST)
}

/// Refuses if the engine's disk, where it is this machine's, cannot hold so many more bytes.
pub(crate) fn check_engine(session: &Session<'_>, need: u64) -> Result<(), CommandError> {
    let info = session.engine.info();
    match &info.data_root {
        Some(folder) if info.local => check_folder(folder, need),
        _ => Ok(()),
    }
}

/// Refuses if the disk of the cache cannot hold these downloads.
pub(crate) fn check_downloads(session: &Session<'_>, wheels: &[&LockedWheel]) -> Result<(), CommandError> {
    let need = wheels.iter().filter_map(|wheel| wheel.size).sum();
    check_folder(session.store.cache_dir().as_str(), need)
}

/// Refuses if the disk of that directory cannot hold so many more bytes.
pub(crate) fn check_folder(folder: &str, need: u64) -> Result<(), CommandError> {
    let Ok(found) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    if free < need {
        let folder = folder.to_owned();
        return Err(ImageError::NoSpace { folder, need_bytes: need, free_bytes: free }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_that_is_too_small_is_refused_with_both_figures() {
        let folder = std::env::temp_dir();
        let folder = folder.to_str().expect("UTF-8");
        check_folder(folder, 0).expect("nothing fits everywhere");
        let error = check_folder(folder, u64::MAX).expect_err("no disk is so large").to_string();
        assert!(
            error.starts_with(&format!("not enough disk space in `{folder}`: 18446744073.7 GB required"))
        );
    }
}
