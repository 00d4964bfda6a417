//! Free disk space, asked before a build instead of found missing after ten minutes of it.

use crate::model::lock::Lock;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::session::Session;

/// Unpacked wheels take about this much of what they are packed (measured on torch 2.8.0+cu128: 6.4 GB of 3.3 GB).
const UNPACKED: u64 = 2;
/// System layer, developer stack and room to work, bytes.
const REST: u64 = 1_500_000_000;

/// Refuses if the engine's disk, where it is this machine's, cannot hold the image of that lock.
pub(crate) fn check(session: &Session<'_>, lock: &Lock) -> Result<(), CommandError> {
    let info = session.engine.info();
    let (true, Some(folder)) = (info.local, &info.data_root) else { return Ok(()) };
    let Ok(found) = rustix::fs::statvfs(folder.as_str()) else { return Ok(()) };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let wheels: u64 = lock.wheels.iter().filter_map(|wheel| wheel.size).sum();
    let need = wheels * UNPACKED + REST;
    if free < need {
        return Err(ImageError::NoSpace { folder: folder.clone(), need_bytes: need, free_bytes: free }.into());
    }
    Ok(())
}
