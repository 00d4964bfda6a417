//! Reading pieces of a file, and numbers in them.

/// Reads pieces of a file by offset.
pub trait Source {
    /// Returns `len` bytes from `offset` on; `None` if they are not there.
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>>;
}

impl Source for std::fs::File {
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        // A damaged length must not ask for memory that the file has no bytes for.
        let end = offset.checked_add(u64::try_from(len).ok()?)?;
        if end > self.metadata().ok()?.len() {
            return None;
        }
        let mut bytes = vec![0; len];
        self.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    }
}

impl Source for [u8] {
    fn read(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        self.get(start..start.checked_add(len)?).map(<[u8]>::to_vec)
    }
}

/// Returns the little-endian number at that place, if it is inside.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Returns the little-endian number at that place, if it is inside.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Returns the little-endian number at that place, if it is inside.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
