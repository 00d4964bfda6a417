//! The GPU targets of a published wheel, read from its remote libraries: each range is downloaded, unpacked
//! and dropped, so memory holds one range only. Parses only exact matches of CUDA's code containers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::{Decompress, FlushDecompress, Status};

use super::page::IndexWheel;
use super::remote_zip::{Member, Part, members, part};
use crate::fetch::Fetcher;
use crate::model::versions::ComputeCapability;

/// Size of one range of a library.
const PART: u64 = 16 << 20;
/// A smaller library holds no framework's kernels.
const SMALLEST: u64 = 64 << 10;
/// The head of a member of a zip archive, before its name.
const LOCAL_HEAD: usize = 30;

/// The architectures a wheel is for: those that at least half as much machine code was found for as for the middle one. A few
/// kernels are often made for others too, which makes no framework run there, and some are made for the newest alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Targets {
    /// Machine code.
    pub(crate) arch: BTreeSet<ComputeCapability>,
    /// PTX.
    pub(crate) ptx: BTreeSet<ComputeCapability>,
    /// The version of the PTX, `9.0`; `None`: it was not read, or differs.
    pub(crate) ptx_isa: Option<String>,
}

/// Number of code images of each kind per architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    arch: BTreeMap<ComputeCapability, usize>,
    ptx: BTreeMap<ComputeCapability, usize>,
    /// Versions of the PTX that was read.
    ptx_isa: BTreeSet<String>,
}

impl Found {
    /// `None` without code.
    fn targets(&self) -> Option<Targets> {
        let counted = if self.arch.is_empty() { &self.ptx } else { &self.arch };
        let mut counts: Vec<_> = counted.values().copied().collect();
        counts.sort_unstable();
        let middle = *counts.get(counts.len() / 2)?;
        let common = |all: &BTreeMap<ComputeCapability, usize>| {
            all.iter().filter(|(_, count)| **count * 2 >= middle).map(|(one, _)| *one).collect()
        };
        let ptx_isa = self.ptx_isa.first().filter(|_| self.ptx_isa.len() == 1).cloned();
        Some(Targets { arch: common(&self.arch), ptx: common(&self.ptx), ptx_isa })
    }
}

/// Returns the GPU targets of the wheel's own libraries; an error says why they are unknown.
pub(crate) async fn targets(fetcher: &Fetcher, wheel: &IndexWheel) -> Result<Targets, String> {
    let members = members(fetcher, wheel).await?;
    let mut scan = Scan::default();
    for member in
        members.iter().filter(|one| is_own_library(&wheel.name.package, &one.name) && one.size >= SMALLEST)
    {
        scan.next_library();
        read(fetcher, wheel, member, &mut scan).await.map_err(|why| format!("{}: {why}", member.name))?;
    }
    scan.found.targets().ok_or_else(|| "no GPU code found".to_owned())
}

/// Bundled libraries by the beginning of their names: those of CUDA have code for other GPUs.
const BUNDLED: [&str; 13] = [
    "libcuda",
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcupti",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnv",
    "libnccl",
    "libtriton",
    "libmagma",
];

/// Whether a library is from the framework's own build.
fn is_own_library(package: &str, name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    // The others of vLLM are attention for some GPUs each: it chooses among them.
    let is_needed = package != "vllm" || file.starts_with("_C") || file.starts_with("_moe_C");
    // `.so`, or `.so.12`: a file name's parts, as the linker reads them.
    is_needed
        && file.split('.').skip(1).any(|part| part == "so")
        && !BUNDLED.iter().any(|start| file.starts_with(start))
        && !name
            .split('/')
            .any(|folder| folder == "nvidia" || folder.split('.').skip(1).any(|part| part == "libs"))
}

/// Passes one member by the scan.
async fn read(fetcher: &Fetcher, wheel: &IndexWheel, member: &Member, scan: &mut Scan) -> Result<(), String> {
    // Its local header repeats the name, with extra fields of its own length.
    let first = part(fetcher, wheel, &range(member.start, LOCAL_HEAD as u64), LOCAL_HEAD as u64).await?;
    let length =
        |at: usize| first.bytes.get(at..at + 2).map(|two| u64::from(u16::from_le_bytes([two[0], two[1]])));
    let head = length(26).zip(length(28)).map(|(name, extra)| LOCAL_HEAD as u64 + name + extra);
    let mut at = member.start + head.ok_or("truncated header")?;
    let end = at + member.stored;
    let mut unpack = match member.method {
        0 => None,
        8 => Some(Decompress::new(false)),
        other => return Err(format!("unsupported compression method {other}")),
    };
    let mut out = vec![0; 1 << 18];
    while at < end {
        let wanted = PART.min(end - at);
        let Part { start, bytes } = part(fetcher, wheel, &range(at, wanted), wanted).await?;
        if start != at || bytes.len() as u64 != wanted {
            return Err("the index sent another range".to_owned());
        }
        at += wanted;
        match &mut unpack {
            None => scan.feed(&bytes)?,
            Some(unpack) => inflate(unpack, &bytes, &mut out, scan)?,
        }
    }
    scan.end()
}

/// `100-199`.
fn range(at: u64, length: u64) -> String {
    format!("{at}-{}", at + length - 1)
}

fn inflate(unpack: &mut Decompress, mut bytes: &[u8], out: &mut [u8], scan: &mut Scan) -> Result<(), String> {
    loop {
        let (before_in, before_out) = (unpack.total_in(), unpack.total_out());
        let status =
            unpack.decompress(bytes, out, FlushDecompress::None).map_err(|error| error.to_string())?;
        let took = usize::try_from(unpack.total_in() - before_in).unwrap_or(bytes.len());
        let gave = usize::try_from(unpack.total_out() - before_out).unwrap_or(out.len());
        scan.feed(&out[..gave])?;
        bytes = &bytes[took..];
        if status == Status::StreamEnd || (bytes.is_empty() && gave < out.len()) {
            return Ok(());
        }
        if took == 0 && gave == 0 {
            return Err("cannot unpack it".to_owned());
        }
    }
}

const MAGIC: u32 = 0xBA55_ED50;
const CONTAINER: usize = 16;
/// Number of header bytes to read: the architecture is at offset 28.
const ENTRY: usize = 32;
const PTX: u16 = 1;
const CUBIN: u16 = 2;
/// What the linker of the driver compiles on: no GPU runs it by itself.
const INTERMEDIATE: u16 = 8;
/// Size of the beginning of PTX that is read: packed, its first block is smaller.
const TEXT: u64 = 160 << 10;
/// Number of images of PTX whose beginning is read in one library: one compiler made them all.
const TEXTS: usize = 4;
/// How packed PTX begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Returns the version of PTX: `9.0` of `.version 9.0`. What is packed by LZ4 has it as it is.
fn ptx_isa(image: &[u8]) -> Option<String> {
    const WORD: &[u8] = b".version ";
    let mut unpacked = Vec::new();
    if image.starts_with(&ZSTD) {
        // The image is cut off: an error comes after its beginning.
        let _ = zstd::stream::read::Decoder::new(image).ok()?.take(4096).read_to_end(&mut unpacked);
    } else {
        unpacked.extend(image.iter().take(400));
    }
    let at = unpacked.windows(WORD.len()).position(|word| word == WORD)? + WORD.len();
    let number = unpacked[at..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let number: String = number.map(|byte| char::from(*byte)).collect();
    number.contains('.').then_some(number)
}

/// Looks for containers of code in a library that passes by, and reads the heads of their entries.
#[derive(Default)]
struct Scan {
    found: Found,
    /// Bytes of the library that have passed.
    passed: u64,
    /// The beginning of a head, until all of it is there.
    head: Vec<u8>,
    /// The beginning of PTX, and how much of it lacks.
    text: Vec<u8>,
    lacks: usize,
    /// Size of the rest of the head that it begins with.
    head_rest: usize,
    /// Number of images of PTX that were read.
    texts: usize,
    /// Bytes of code to pass over.
    skip: u64,
    /// Remaining bytes of the current container.
    container: u64,
}

impl Scan {
    fn next_library(&mut self) {
        *self = Self { found: std::mem::take(&mut self.found), ..Self::default() };
    }

    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            let taken = if self.lacks > 0 {
                self.read_text(bytes)
            } else if self.skip > 0 {
                let step = self.skip.min(bytes.len() as u64);
                self.skip -= step;
                usize::try_from(step).unwrap_or(bytes.len())
            } else if self.container > 0 {
                self.collect(bytes, ENTRY, Self::entry)?
            } else if self.head.is_empty() {
                self.search(bytes)
            } else {
                self.collect(bytes, CONTAINER, |scan, head| {
                    scan.container_head(head);
                    Ok(())
                })?
            };
            self.passed += taken as u64;
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Passes over bytes up to where a container may begin: at a multiple of eight, with its first byte.
    fn search(&mut self, bytes: &[u8]) -> usize {
        let first = MAGIC.to_le_bytes();
        let aligned = usize::try_from((8 - self.passed % 8) % 8).unwrap_or_default();
        if aligned >= bytes.len() {
            return bytes.len();
        }
        for (at, eight) in bytes[aligned..].chunks(8).enumerate() {
            let known = eight.len().min(first.len());
            if eight[..known] == first[..known] {
                self.head.extend(eight);
                return aligned + at * 8 + eight.len();
            }
        }
        bytes.len()
    }

    /// Completes a head of that size and has it read.
    fn collect(
        &mut self,
        bytes: &[u8],
        size: usize,
        read: impl FnOnce(&mut Self, &[u8]) -> Result<(), String>,
    ) -> Result<usize, String> {
        let taken = (size - self.head.len()).min(bytes.len());
        self.head.extend(&bytes[..taken]);
        if self.head.len() == size {
            let head = std::mem::take(&mut self.head);
            read(self, &head)?;
        }
        Ok(taken)
    }

    /// Takes up the beginning of PTX, and reads its version once all of it is there.
    fn read_text(&mut self, bytes: &[u8]) -> usize {
        let taken = self.lacks.min(bytes.len());
        self.text.extend(&bytes[..taken]);
        self.lacks -= taken;
        if self.lacks == 0 {
            let text = std::mem::take(&mut self.text);
            self.found.ptx_isa.extend(ptx_isa(text.get(self.head_rest..).unwrap_or_default()));
        }
        taken
    }

    /// An invalid header is other data; the search continues after it.
    fn container_head(&mut self, head: &[u8]) {
        let own = u16::from_le_bytes([head[6], head[7]]);
        let length = u64_at(head, 8);
        if head[..4] == MAGIC.to_le_bytes() && head[4..6] == [1, 0] && own == 16 && length < 1 << 40 {
            self.container = length;
        }
    }

    fn entry(&mut self, head: &[u8]) -> Result<(), String> {
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let own = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
        let arch = u32::from_le_bytes([head[28], head[29], head[30], head[31]]);
        let whole = own.checked_add(u64_at(head, 8)).filter(|whole| *whole <= self.container);
        let capability = u8::try_from(arch / 10).ok().filter(|_| (20..1000).contains(&arch));
        let targets = match kind {
            CUBIN => Some(&mut self.found.arch),
            PTX => Some(&mut self.found.ptx),
            INTERMEDIATE => None,
            _ => return Err("unknown layout of GPU code".to_owned()),
        };
        let (Some(whole), Some(major), true) = (whole, capability, own >= ENTRY as u64) else {
            return Err("unknown layout of GPU code".to_owned());
        };
        let minor = u8::try_from(arch % 10).unwrap_or_default();
        if let Some(targets) = targets {
            *targets.entry(ComputeCapability { major, minor }).or_default() += 1;
        }
        self.container -= whole;
        self.skip = whole - ENTRY as u64;
        if kind == PTX && self.texts < TEXTS {
            let read = self.skip.min(TEXT);
            self.skip -= read;
            self.texts += 1;
            self.lacks = usize::try_from(read).unwrap_or_default();
            self.head_rest = usize::try_from(own).unwrap_or(usize::MAX).saturating_sub(ENTRY);
        }
        Ok(())
    }

    /// The library has ended: inside a container, something was not understood.
    fn end(&self) -> Result<(), String> {
        if self.container > 0 || self.skip > 0 || self.lacks > 0 {
            Err("truncated GPU code".to_owned())
        } else {
            Ok(())
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use proptest::prelude::*;
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer};

    use super::super::remote_zip::tests::parts;
    use super::*;
    use crate::fetch::FetchSettings;

    /// A library with two containers of those entries (kind and architecture), among bytes of other kinds.
    fn library(images: &[(u16, u32)]) -> Vec<u8> {
        let mut file = vec![0x7f; 1000];
        for images in images.chunks(2) {
            let mut body = Vec::new();
            for (kind, arch) in images {
                let mut entry = vec![0_u8; 64];
                entry[..2].copy_from_slice(&kind.to_le_bytes());
                entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
                entry[8..16].copy_from_slice(&40_u64.to_le_bytes());
                entry[28..32].copy_from_slice(&arch.to_le_bytes());
                body.extend(entry);
                // Code may hold the magic number itself.
                body.extend([MAGIC.to_le_bytes(); 10].concat());
            }
            file.extend(MAGIC.to_le_bytes());
            file.extend([1, 0, 16, 0]);
            file.extend((body.len() as u64).to_le_bytes());
            file.extend(body);
            file.extend([0; 24]);
        }
        // The magic number alone is not a container.
        file.extend(MAGIC.to_le_bytes());
        file.extend(vec![9; 100_000]);
        file
    }

    fn targets_of(arch: &[&str], ptx: &[&str]) -> Targets {
        let set = |all: &[&str]| all.iter().map(|text| text.parse().expect("a capability")).collect();
        Targets { arch: set(arch), ptx: set(ptx), ptx_isa: None }
    }

    const IMAGES: [(u16, u32); 4] = [(2, 70), (2, 90), (2, 120), (1, 120)];

    proptest! {
        #[test]
        fn code_is_found_regardless_of_range_boundaries(cuts in prop::collection::vec(1_usize..5000, 1..60)) {
            let file = library(&IMAGES);
            let mut scan = Scan::default();
            let mut rest = file.as_slice();
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                scan.feed(now).expect("as measured");
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            scan.end().expect("whole");
            prop_assert_eq!(scan.found.targets(), Some(targets_of(&["7.0", "9.0", "12.0"], &["12.0"])));
        }

        #[test]
        fn parser_never_panics_on_libraries(mut file in prop::collection::vec(any::<u8>(), 0..3000), at in 0_usize..300) {
            let magic = [MAGIC.to_le_bytes(), [1, 0, 16, 0]].concat();
            if file.len() > at * 8 + 8 {
                file[at * 8..at * 8 + 8].copy_from_slice(&magic);
            }
            let mut scan = Scan::default();
            let _ = scan.feed(&file).and_then(|()| scan.end());
        }
    }

    #[test]
    fn few_extra_kernels_are_not_a_target() {
        let mut scan = Scan::default();
        let images = [[(2, 70), (2, 90)].repeat(3), vec![(2, 89), (1, 90)]].concat();
        scan.feed(&library(&images)).expect("as measured");
        assert_eq!(scan.found.targets(), Some(targets_of(&["7.0", "9.0"], &[])));
        assert_eq!(Found::default().targets(), None);
    }

    #[test]
    fn kernels_for_the_newest_alone_do_not_hide_the_others() {
        let arch = [((7, 5), 217), ((8, 0), 308), ((9, 0), 600), ((12, 0), 317), ((12, 1), 1)];
        let arch = arch.map(|((major, minor), count)| (ComputeCapability { major, minor }, count));
        let found = Found { arch: arch.into(), ..Found::default() };
        assert_eq!(found.targets(), Some(targets_of(&["7.5", "8.0", "9.0", "12.0"], &[])));
    }

    #[test]
    fn version_of_ptx_is_read_packed_or_not() {
        let text = b"\n//\n.version 9.4\n.target sm_121\n.address_size 64\n".repeat(9000);
        assert_eq!(ptx_isa(&text).as_deref(), Some("9.4"));
        assert_eq!(ptx_isa(b"<\n//\x03\x00\xf0\x1e\n.version 8.8\n.target").as_deref(), Some("8.8"));
        let packed = zstd::encode_all(text.as_slice(), 1).expect("packed");
        assert_eq!(ptx_isa(&packed).as_deref(), Some("9.4"));
        assert_eq!(ptx_isa(b"no text"), None);
    }

    #[test]
    fn intermediate_code_is_no_target() {
        let mut scan = Scan::default();
        scan.feed(&library(&[(2, 90), (8, 75)])).expect("as measured");
        scan.end().expect("whole");
        assert_eq!(scan.found.targets(), Some(targets_of(&["9.0"], &[])));
    }

    #[test]
    fn unknown_layout_is_reported() {
        let feed = |file: &[u8]| {
            let mut scan = Scan::default();
            scan.feed(file).and_then(|()| scan.end())
        };
        assert!(feed(&library(&[(7, 90)])).unwrap_err().contains("unknown layout"));
        assert!(feed(&library(&[(2, 5)])).unwrap_err().contains("unknown layout"));
        let whole = library(&IMAGES);
        assert!(feed(&whole[..1100]).unwrap_err().contains("truncated"));
    }

    #[test]
    fn only_the_frameworks_own_libraries_count() {
        for own in
            ["torch/lib/libtorch_cuda.so", "cupy/cuda/thrust.cpython-311-x86_64-linux-gnu.so", "a/libx.so.3"]
        {
            assert!(is_own_library("x", own), "{own}");
        }
        for other in [
            "torch/lib/libcudnn_ops_infer.so.8",
            "torch/lib/libnccl.so.2",
            "torch.libs/libgomp.so.1",
            "nvidia/cublas/lib/x.so",
            "torch/README",
        ] {
            assert!(!is_own_library("x", other), "{other}");
        }
        // A framework's name may begin as CUDA's do.
        assert!(is_own_library("libcudf-cu13", "libcudf/lib64/libcudf.so"));
        assert!(is_own_library("vllm", "vllm/_C_stable_libtorch.abi3.so"));
        assert!(!is_own_library("vllm", "vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so"));
    }

    #[tokio::test]
    async fn published_wheel_is_read_in_ranges() {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let packed = |method| zip::write::SimpleFileOptions::default().compression_method(method);
        for (name, method, images) in [
            ("a/lib/libone.so", zip::CompressionMethod::Deflated, &IMAGES[..2]),
            ("a/lib/libtwo.so", zip::CompressionMethod::Stored, &IMAGES[2..]),
            ("a/lib/libcublas.so.12", zip::CompressionMethod::Stored, &[(2, 50)][..]),
        ] {
            writer.start_file(name, packed(method)).expect("entry");
            writer.write_all(&library(images)).expect("written");
        }
        let whole = writer.finish().expect("zip").into_inner();
        let server = MockServer::start().await;
        Mock::given(path("/a-1.0-py3-none-any.whl")).respond_with(parts(whole)).mount(&server).await;
        let base = format!("{}/", server.uri()).parse().expect("an address");
        let fetcher = Fetcher::new(&FetchSettings::default()).expect("a client");
        let listed = super::super::listed("<a href='a-1.0-py3-none-any.whl'>", &base);
        assert_eq!(targets(&fetcher, &listed[0]).await, Ok(targets_of(&["7.0", "9.0", "12.0"], &["12.0"])));
    }
}
