//! A pattern in a GPU's memory: a word that differs at every address, and its inverse.

use super::{CheckFailure, builtin_kernels};
use crate::checks::Options;
use crate::gpu::device::{Argument, Buffer, Device, Kernel};
use crate::gpu::status::GpuLibraryError;
use crate::reference::Generator;

const BLOCK: [u32; 3] = [256, 1, 1];
const GRID: [usize; 3] = [1024, 1, 1];

/// The kernels, loaded for one GPU, and where they report what is wrong.
pub(crate) struct Pattern {
    write: Kernel,
    invert: Kernel,
    verify: Kernel,
    found: Buffer,
    device: Device,
    /// What the kernels were compiled for.
    pub(crate) target: String,
}

/// The parameters that a buffer is given by.
fn stretch(buffer: &Buffer) -> [Argument; 2] {
    [Argument::Pointer(buffer.address), Argument::Long(buffer.bytes as u64 / 8)]
}

impl Pattern {
    pub(crate) fn load(options: &Options, device: &Device) -> Result<Self, CheckFailure> {
        let code = builtin_kernels::code(options, device, "memory_pattern")?;
        let kernel = |name: &str| device.kernel(&code.bytes, name);
        let (write, invert) = (kernel("pattern_write")?, kernel("pattern_invert")?);
        let (verify, found) = (kernel("pattern_verify")?, device.buffer(24)?);
        Ok(Self { write, invert, verify, found, device: device.clone(), target: code.target })
    }

    pub(crate) fn write(&self, buffer: &Buffer, seed: u64) -> Result<(), GpuLibraryError> {
        let [at, count] = stretch(buffer);
        self.write.launch(GRID, BLOCK, &[at, count, Argument::Long(seed)])
    }

    pub(crate) fn invert(&self, buffer: &Buffer) -> Result<(), GpuLibraryError> {
        self.invert.launch(GRID, BLOCK, &stretch(buffer))
    }

    /// Fails if a word is not what was written.
    pub(crate) fn verify(&self, buffer: &Buffer, seed: u64, when: &str) -> Result<(), CheckFailure> {
        clean(buffer, self.wrong(buffer, seed, 0)?, when)
    }

    /// Fails if a word is not the inverse of what was written.
    pub(crate) fn verify_inverse(&self, buffer: &Buffer, seed: u64, when: &str) -> Result<(), CheckFailure> {
        clean(buffer, self.wrong(buffer, seed, u64::MAX)?, when)
    }

    /// The check must be able to fail: the first word of an inverted pattern is changed in one bit. It also shows that the
    /// words are there.
    pub(crate) fn detects_a_change(&self, buffer: &Buffer, seed: u64) -> Result<(), CheckFailure> {
        let planted = !Generator::new(seed).next() ^ 1;
        buffer.upload(&planted.to_le_bytes())?;
        let seen = self.wrong(buffer, seed, u64::MAX)?;
        if seen == [1, 0, 1] {
            return Ok(());
        }
        Err(CheckFailure::fail(format!("a word changed on purpose was reported as {seen:?}, not [1, 0, 1]")))
    }

    /// How many words are wrong, the first of them, and the bits that differ anywhere.
    fn wrong(&self, buffer: &Buffer, seed: u64, flip: u64) -> Result<[u64; 3], CheckFailure> {
        self.found.upload(&[[0; 8], [0xff; 8], [0; 8]].concat())?;
        let [at, count] = stretch(buffer);
        let to = Argument::Pointer(self.found.address);
        self.verify.launch(GRID, BLOCK, &[at, count, Argument::Long(seed), Argument::Long(flip), to])?;
        self.device.synchronize()?;
        let bytes = self.found.download()?;
        Ok(std::array::from_fn(|at| {
            u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default())
        }))
    }
}

fn clean(buffer: &Buffer, [count, first, bits]: [u64; 3], when: &str) -> Result<(), CheckFailure> {
    if count == 0 && first == u64::MAX && bits == 0 {
        return Ok(());
    }
    let words = buffer.bytes / 8;
    if (count == 0) != (first == u64::MAX) || (count == 0) != (bits == 0) {
        let text = format!(
            "the GPU's own report {when} contradicts itself: {count} wrong words, the first at {first:#x}, bits {bits:#x}"
        );
        return Err(CheckFailure::fail(text)
            .hint("bytes change on their way from the GPU: see the check memory-copies"));
    }
    let text = format!("{count} of {words} words are wrong {when}, the first at {first}, bits {bits:#x}");
    Err(CheckFailure::fail(text)
        .hint("run a memory test on the host: the GPU's memory or its driver is faulty"))
}
