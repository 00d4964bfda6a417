//! Blocks of content: compressed on all cores, written in their order, with a bound on what lies in memory.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle, scope};

use super::compressor::Compressor;
use crate::model::file_compression::FileCompression;

/// Says in the size of a block that it is not compressed.
pub(super) const PLAIN: u32 = 1 << 24;

/// A written block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// Where it begins, in bytes from the beginning of the file system.
    pub(super) start: u64,
    /// Its size in bytes, with [`PLAIN`].
    pub(super) size: u32,
}

/// Two buffers that go round: the content of a block, and its compressed form.
#[derive(Default)]
struct Buffers {
    plain: Vec<u8>,
    packed: Vec<u8>,
}

struct Job {
    number: usize,
    buffers: Buffers,
}

struct Packed {
    number: usize,
    buffers: Buffers,
    smaller: bool,
}

/// Takes blocks, one after the other.
pub(super) struct BlockSender {
    jobs: SyncSender<Job>,
    free: Receiver<Buffers>,
    current: Option<Buffers>,
    next: usize,
}

impl BlockSender {
    /// The buffer of the next block; waits for one that was written.
    pub(super) fn buffer(&mut self) -> Result<&mut Vec<u8>> {
        if self.current.is_none() {
            let mut buffers = self.free.recv().map_err(|_| stopped())?;
            buffers.plain.clear();
            self.current = Some(buffers);
        }
        Ok(&mut self.current.as_mut().expect("it was just taken").plain)
    }

    /// Sends the next block and returns its number.
    pub(super) fn send(&mut self) -> Result<usize> {
        let buffers = self.current.take().expect("a block has a buffer");
        let number = self.next;
        self.next += 1;
        self.jobs.send(Job { number, buffers }).map_err(|_| stopped())?;
        Ok(number)
    }

    /// The number that the next block gets.
    pub(super) fn next(&self) -> usize {
        self.next
    }
}

/// The error behind this one is that of whoever stopped.
fn stopped() -> Error {
    Error::new(ErrorKind::BrokenPipe, "writing has ended")
}

/// Compresses what `produce` sends and writes it to `out`, whose first block begins at `start`.
///
/// # Errors
/// That of `produce`, or that of writing, which ends `produce` too.
pub(super) fn write_blocks<T, E: From<Error>>(
    out: &mut (impl Write + Send),
    start: u64,
    (compression, cores): (FileCompression, usize),
    produce: impl FnOnce(&mut BlockSender) -> std::result::Result<T, E>,
) -> std::result::Result<(T, Vec<Block>), E> {
    let (jobs, waiting) = sync_channel::<Job>(in_flight(cores));
    let waiting = Mutex::new(waiting);
    scope(|threads| {
        let (done, packed) = sync_channel(in_flight(cores));
        let (freed, free) = sync_channel(in_flight(cores));
        for _ in 0..in_flight(cores) {
            freed.send(Buffers::default()).expect("it has room for all");
        }
        let workers = start_workers(threads, compression, cores, (&waiting, &done));
        drop(done);
        let writer = threads.spawn(move || write_in_order(out, start, &packed, &freed));
        let mut sender = BlockSender { jobs, free, current: None, next: 0 };
        let produced = produce(&mut sender);
        drop(sender);
        for worker in workers {
            worker.join().expect("no compressor panics");
        }
        let written = writer.join().expect("no writer panics");
        // Where writing failed, `produce` has the error of that alone.
        let blocks = written?;
        Ok((produced?, blocks))
    })
}

/// Blocks that lie in memory at a time.
fn in_flight(cores: usize) -> usize {
    2 * cores + 2
}

fn start_workers<'scope>(
    threads: &'scope Scope<'scope, '_>,
    compression: FileCompression,
    cores: usize,
    (waiting, done): (&'scope Mutex<Receiver<Job>>, &SyncSender<Result<Packed>>),
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let start = |_| {
        let done = done.clone();
        threads.spawn(move || {
            let mut compressor = match Compressor::new(compression) {
                Ok(compressor) => compressor,
                Err(error) => return drop(done.send(Err(error))),
            };
            loop {
                let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(Job { number, mut buffers }) = job else { return };
                let packed = compressor.compress(&buffers.plain, &mut buffers.packed);
                let packed = packed.map(|smaller| Packed { number, buffers, smaller });
                // A writer that failed takes nothing more.
                if done.send(packed).is_err() {
                    return;
                }
            }
        })
    };
    (0..cores).map(start).collect()
}

fn write_in_order(
    out: &mut impl Write,
    start: u64,
    packed: &Receiver<Result<Packed>>,
    freed: &SyncSender<Buffers>,
) -> Result<Vec<Block>> {
    let (mut blocks, mut early, mut end) = (Vec::new(), BTreeMap::new(), start);
    for block in packed {
        let block = block?;
        early.insert(block.number, block);
        while let Some(Packed { buffers, smaller, .. }) = early.remove(&blocks.len()) {
            let (bytes, mark) = if smaller { (&buffers.packed, 0) } else { (&buffers.plain, PLAIN) };
            out.write_all(bytes)?;
            let size = u32::try_from(bytes.len()).expect("a block has 1 MiB");
            blocks.push(Block { start: end, size: size | mark });
            end += u64::from(size);
            // Whoever fills them may have ended.
            let _ = freed.send(buffers);
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZSTD: FileCompression = FileCompression::Zstd(1);

    /// Some blocks, those with odd numbers of noise.
    fn block(number: usize) -> Vec<u8> {
        let mut state = number as u64 + 1;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..10_000).map(|_| if number.is_multiple_of(2) { 7 } else { noise() }).collect()
    }

    #[test]
    fn any_number_of_cores_gives_the_same_bytes_in_order() {
        let write = |cores| {
            let mut out = Vec::new();
            let (sent, blocks) = write_blocks(&mut out, 96, (ZSTD, cores), |sender| {
                for number in 0..100 {
                    sender.buffer()?.extend_from_slice(&block(number));
                    assert_eq!((sender.next(), sender.send()?), (number, number));
                }
                Ok::<_, Error>(100)
            })
            .expect("written");
            assert_eq!((sent, blocks.len()), (100, 100));
            (out, blocks)
        };
        let (out, blocks) = write(1);
        let mut at = 0;
        for (number, found) in blocks.iter().enumerate() {
            assert_eq!(found.start, 96 + at as u64);
            let size = (found.size & !PLAIN) as usize;
            let bytes = &out[at..at + size];
            at += size;
            if found.size & PLAIN == 0 {
                assert!(number.is_multiple_of(2) && zstd::decode_all(bytes).expect("zstd") == block(number));
            } else {
                assert!(!number.is_multiple_of(2) && bytes == block(number));
            }
        }
        assert_eq!(at, out.len());
        assert!(write(4) == (out, blocks));
    }

    /// A disk with room for some bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn full_disk_ends_whoever_sends_and_their_error_ends_the_writer() {
        let endless = |sender: &mut BlockSender| -> Result<()> {
            loop {
                sender.buffer()?.extend_from_slice(&block(1));
                sender.send()?;
            }
        };
        for cores in [1, 3] {
            let error = write_blocks(&mut Full(50_000), 0, (ZSTD, cores), endless).expect_err("full");
            assert_eq!(error.kind(), ErrorKind::StorageFull);
            let failing = |sender: &mut BlockSender| {
                sender.buffer()?.push(1);
                sender.send()?;
                Err::<(), _>(Error::from(ErrorKind::NotFound))
            };
            let error = write_blocks(&mut Vec::new(), 0, (ZSTD, cores), failing).expect_err("failed");
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
    }
}
