//! The size of /dev/shm in containers: one answer for `shell`, checks and exports.

/// Returns the size in bytes for a number of GPUs, or for eight if unknown. The size is a limit, not a reservation: NCCL and data
/// loaders fail with the engine's 64 MB.
pub(crate) fn shm_size(gpus: Option<usize>) -> u64 {
    gigabytes(gpus) << 30
}

/// The same as container engines write it: `9g`.
pub(crate) fn shm_text(gpus: Option<usize>) -> String {
    format!("{}g", gigabytes(gpus))
}

fn gigabytes(gpus: Option<usize>) -> u64 {
    1 + gpus.unwrap_or(8) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_grows_with_the_gpus() {
        assert_eq!((shm_size(Some(0)), shm_size(Some(2)), shm_size(None)), (1 << 30, 3 << 30, 9 << 30));
        assert_eq!((shm_text(Some(1)), shm_text(None)), ("2g".to_owned(), "9g".to_owned()));
    }
}
