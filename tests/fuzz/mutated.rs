//! Changed inputs of a corpus, for as long as `ENVFORGE_FUZZ_SECONDS` says: random bytes are hardly ever UTF-8 or an archive,
//! a corpus with some changed bytes often is.
#![expect(clippy::disallowed_methods, reason = "reads the corpus, the clock and the environment of a test")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Changes of one input.
const MOST_CHANGES: usize = 6;
/// No input becomes longer, bytes.
const LONGEST: usize = 64 << 10;
/// Bytes that parsers treat in a way of their own.
const SPECIAL: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t \"'[]{}:,=/.-+#$@09aZ";

/// Gives changed inputs of this test's corpus to `check`; one that panics is kept beside the corpus.
pub(super) fn for_each(check: impl Fn(&[u8])) {
    let seconds = std::env::var("ENVFORGE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let Some(time) = seconds.map(Duration::from_secs) else { return };
    let thread = std::thread::current();
    let target = thread.name().expect("the name of a test").replace("::", "__");
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/__fuzz__")).join(target);
    let entries =
        fs_err::read_dir(folder.join("corpus")).expect("a corpus").map(|entry| entry.expect("an entry"));
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let corpus: Vec<_> = paths.iter().map(|path| fs_err::read(path).expect("an input")).collect();
    let (began, mut random, mut count) = (Instant::now(), StdRng::seed_from_u64(0), 0_u64);
    while began.elapsed() < time {
        let input = changed(&corpus, &mut random);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let name = crate::model::sha256::sha256_hex(&input);
            fs_err::write(folder.join("corpus").join(&name[..16]), &input).expect("the corpus is writable");
            resume_unwind(panic);
        }
        count += 1;
    }
    #[expect(clippy::print_stderr, reason = "the figure of the run")]
    {
        eprintln!("{count} changed inputs in {} s", time.as_secs());
    }
}

/// One input of the corpus after some changes.
fn changed(corpus: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut input = corpus[random.random_range(..corpus.len())].clone();
    for _ in 0..random.random_range(1..=MOST_CHANGES) {
        let at = random.random_range(..=input.len());
        let end = (at + random.random_range(..=64_usize)).min(input.len());
        match random.random_range(..6_u8) {
            0 if at < input.len() => input[at] ^= 1 << random.random_range(..8_u8),
            1 if at < input.len() => input[at] = SPECIAL[random.random_range(..SPECIAL.len())],
            2 => drop(input.drain(at..end)),
            3 => drop(input.splice(at..at, input[at..end].to_vec())),
            4 => input.insert(at, SPECIAL[random.random_range(..SPECIAL.len())]),
            _ => {
                let other = &corpus[random.random_range(..corpus.len())];
                let from = random.random_range(..=other.len());
                let part = other[from..(from + 256).min(other.len())].to_vec();
                drop(input.splice(at..end, part));
            }
        }
    }
    input.truncate(LONGEST);
    input
}
