//! Global memory: buffers that are far apart, with bounds.

use super::Fault;

/// Buffers of a GPU.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    buffers: Vec<Vec<u8>>,
}

/// Where buffer 0 begins; each has as much room.
const APART: u64 = 1 << 40;

impl Memory {
    /// Adds a buffer and returns its address.
    pub(crate) fn holding(&mut self, bytes: Vec<u8>) -> u64 {
        self.buffers.push(bytes);
        APART * self.buffers.len() as u64
    }

    /// The bytes of the buffer at an address.
    pub(crate) fn buffer(&self, address: u64) -> &[u8] {
        &self.buffers[usize::try_from(address / APART - 1).expect("a buffer's address")]
    }

    pub(super) fn load(&self, address: u64, bytes: usize) -> Result<u64, Fault> {
        let place = self.place(address, bytes)?;
        Ok(read(&self.buffers[place.0][place.1..place.1 + bytes]))
    }

    pub(super) fn store(&mut self, address: u64, bytes: usize, value: u64) -> Result<(), Fault> {
        let place = self.place(address, bytes)?;
        self.buffers[place.0][place.1..place.1 + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    fn place(&self, address: u64, bytes: usize) -> Result<(usize, usize), Fault> {
        let outside = || format!("address {address:#x} is in no buffer");
        if !address.is_multiple_of(bytes as u64) {
            return Err(format!("address {address:#x} is not aligned to {bytes}"));
        }
        let buffer =
            usize::try_from((address / APART).checked_sub(1).ok_or_else(outside)?).map_err(|_| outside())?;
        let at = usize::try_from(address % APART).map_err(|_| outside())?;
        let length = self.buffers.get(buffer).map_or(0, Vec::len);
        if at + bytes <= length { Ok((buffer, at)) } else { Err(outside()) }
    }
}

/// A little-endian number.
pub(super) fn read(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}
