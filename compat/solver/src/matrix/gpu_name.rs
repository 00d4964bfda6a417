//! Maps the name of a GPU, as drivers or people spell it, to its compute capability.
//!
//! Owns the rules by which two spellings are the same product; they are exact (prefixes, MIG and vGPU suffixes, case).
//! Must not guess: an unknown name is an error that lists the closest known names.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::tables::{Chip, Gpu, Matrix};
use crate::versions::{ComputeCapability, Machine};

/// The number of names that an error suggests.
const NEAREST: usize = 3;
/// Prefixes that do not distinguish products. `Quadro` does: a Quadro RTX 4000 is not an RTX 4000 Ada.
const VENDOR_WORDS: [&str; 4] = ["nvidia", "tesla", "geforce", "grid"];
/// The class of GPUs that are one module with an Arm processor.
const SUPERCHIP: &str = "superchip";
/// The classes of GPUs for servers, which alone support forward-compatibility packages.
pub(crate) const DATA_CENTRE: [&str; 2] = ["datacenter", SUPERCHIP];
/// Series words that may be omitted before a family number: `4090` matches every `GeForce RTX 4090`.
const SERIES_WORDS: [&str; 6] = ["quadro", "rtx", "gtx", "gts", "gt", "titan"];

/// A GPU found by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedGpu<'a> {
    /// The name in the matrix; the given name, if it is a family such as `A100`.
    pub name: String,
    /// The architecture's name.
    pub arch: &'a str,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// The source of the capability.
    pub source: &'a str,
    /// The product's own row, if there is one and the name is exact.
    pub product: Option<&'a Gpu>,
}

/// An error of a GPU name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GpuNameError {
    /// The name is unknown.
    #[error("unknown GPU `{name}`")]
    Unknown {
        /// The name given.
        name: String,
        /// The closest known names, closest first.
        nearest: Vec<String>,
    },
    /// The name is one of something that no row of the matrix is for.
    #[error("`{name}` is {what}")]
    OtherKind {
        /// The name given.
        name: String,
        /// What it is, and that the matrix has nothing for it.
        what: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// Products of this name have different compute capabilities.
    #[error("ambiguous GPU `{name}`: {}", listed(found))]
    Ambiguous {
        /// The name given.
        name: String,
        /// The capabilities, each with its architecture.
        found: Vec<(ComputeCapability, String)>,
    },
}

impl GpuNameError {
    /// What a person can do about it, one imperative per line.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { nearest, .. } => {
                let mut hints = Vec::new();
                if !nearest.is_empty() {
                    let names: Vec<_> = nearest.iter().map(|name| format!("`{name}`")).collect();
                    hints.push(format!("closest known names: {}", names.join(", ")));
                }
                hints.push("pass the compute capability: `--gpu sm_XX`".to_owned());
                hints
            }
            Self::OtherKind { hint, .. } => vec![(*hint).to_owned()],
            Self::Ambiguous { found, .. } => {
                let options: Vec<_> = found.iter().map(|(cc, _)| format!("`--gpu {cc}`")).collect();
                vec![format!(
                    "pass the compute capability of the chip: {}; `nvidia-smi --query-gpu=compute_cap --format=csv` prints it",
                    options.join(" or ")
                )]
            }
        }
    }
}

fn listed(found: &[(ComputeCapability, String)]) -> String {
    found.iter().map(|(cc, arch)| format!("{cc} ({arch})")).collect::<Vec<_>>().join(", ")
}

/// The names of the GPUs that a matrix knows.
pub struct GpuNames<'a> {
    matrix: &'a Matrix,
    candidates: Candidates<'a>,
}

impl<'a> GpuNames<'a> {
    /// Returns the GPU with this name, as [`Matrix::gpu_named`] does.
    pub fn named(&self, name: &str) -> Result<NamedGpu<'a>, GpuNameError> {
        let found = self.matching(name).or_else(|| self.loosely(name)).or_else(|| self.of_architecture(name));
        found.unwrap_or_else(|| {
            let spelling = Spelling::of(name);
            if let Some((what, hint)) = other_kind(&spelling.whole) {
                return Err(GpuNameError::OtherKind { name: name.to_owned(), what, hint });
            }
            let nearest = nearest(&spelling, &self.candidates);
            Err(GpuNameError::Unknown { name: name.to_owned(), nearest })
        })
    }

    /// Returns the GPU with this name; `None`: no GPU has it.
    fn matching(&self, name: &str) -> Option<Result<NamedGpu<'a>, GpuNameError>> {
        let spelling = Spelling::of(name);
        for key in
            [Some(spelling.whole.as_str()), spelling.physical(), spelling.vgpu_board()].into_iter().flatten()
        {
            if let Some(matches) = self.candidates.get(key) {
                return Some(one_capability(name, matches.iter(), |gpu| gpu.name.clone()));
            }
        }
        if let Some(board) = spelling.vgpu_board()
            && let Some(chip) = self.matrix.chips.iter().find(|chip| has_board(chip, board))
        {
            return Some(Ok(named(name.trim(), chip)));
        }
        self.family(name, spelling.physical().unwrap_or(&spelling.whole))
    }

    /// The GPUs whose names begin with a family's words.
    fn family(&self, name: &str, family: &str) -> Option<Result<NamedGpu<'a>, GpuNameError>> {
        let members: Vec<_> = self.members(family).collect();
        if members.is_empty() {
            return None;
        }
        let gpu = one_capability(name, members.into_iter(), |_| name.trim().to_owned());
        Some(gpu.map(|gpu| NamedGpu { product: None, ..gpu }))
    }

    fn members(&self, family: &str) -> impl Iterator<Item = &NamedGpu<'a>> {
        self.candidates.iter().filter(move |(key, _)| is_member(key, family)).flat_map(|(_, rows)| rows)
    }

    /// The same for a name that is written in one word, or with a memory or a form that no name here has: neither changes the chip.
    fn loosely(&self, name: &str) -> Option<Result<NamedGpu<'a>, GpuNameError>> {
        let spelling = Spelling::of(name);
        let (loose, has_form) = spelling.without_board();
        let classes = self.classes_of_family(&loose);
        if has_form && (classes.is_empty() || !classes.iter().all(|class| DATA_CENTRE.contains(class))) {
            return None;
        }
        if let Some(matches) = self.candidates.get(&loose) {
            return Some(one_capability(name, matches.iter(), |gpu| gpu.name.clone()));
        }
        self.family(name, &loose)
    }

    /// All GPUs of an architecture, by its name.
    fn of_architecture(&self, name: &str) -> Option<Result<NamedGpu<'a>, GpuNameError>> {
        let wanted = plain(name);
        let rows = self.matrix.capabilities.iter().filter(|row| row.arch.to_lowercase() == wanted);
        let all: Vec<_> = rows
            .map(|row| NamedGpu {
                name: name.trim().to_owned(),
                arch: &row.arch,
                compute_capability: row.cc,
                source: &row.source,
                product: None,
            })
            .collect();
        (!all.is_empty()).then(|| one_capability(name, all.iter(), |gpu| gpu.name.clone()))
    }

    /// Returns the classes of the products that a name may mean: of its own row, else of all products of the family. Empty: no product has
    /// that name.
    pub fn classes(&self, name: &str) -> BTreeSet<&'a str> {
        if let Some(row) = self.named(name).ok().and_then(|named| named.product) {
            return [row.class.as_str()].into();
        }
        self.classes_of_family(&Spelling::of(name).without_board().0)
    }

    fn classes_of_family(&self, family: &str) -> BTreeSet<&'a str> {
        let rows = self.members(family).filter_map(|gpu| gpu.product);
        rows.map(|row| row.class.as_str()).collect()
    }

    /// Returns the only processor of machines with a GPU of that name, if there is only one.
    pub fn only_machine(&self, name: &str) -> Option<Machine> {
        let named = self.named(name).ok()?;
        let chip = self.matrix.chips.iter().find(|chip| chip.names.contains(&named.name));
        if let Some(machine) = chip.and_then(|chip| chip.machine) {
            return Some(machine);
        }
        let classes = self.classes(name);
        let is_module = !classes.is_empty() && classes.iter().all(|class| *class == SUPERCHIP);
        is_module.then_some(Machine::Aarch64)
    }

    /// Returns the matrix's name of that GPU; what it does not know is named as it is.
    pub fn canonical(&self, name: &str) -> String {
        let known = self.matching(name).and_then(Result::ok).map(|gpu| gpu.name);
        known.unwrap_or_else(|| name.trim().to_owned())
    }
}

impl Matrix {
    /// Returns the GPU with this name, in any exact spelling.
    ///
    /// A MIG slice or vGPU maps to its physical GPU. A family name (`A100`, `4090`) is accepted if all its products have
    /// one capability.
    pub fn gpu_named(&self, name: &str) -> Result<NamedGpu<'_>, GpuNameError> {
        self.gpu_names().named(name)
    }

    /// Returns all names of GPUs, for whoever asks for many.
    pub fn gpu_names(&self) -> GpuNames<'_> {
        GpuNames { matrix: self, candidates: self.candidates() }
    }

    /// Returns every known name under its plain key; full rows come before bare names.
    fn candidates(&self) -> Candidates<'_> {
        let mut all = Candidates::new();
        for gpu in &self.gpus {
            for name in std::iter::once(&gpu.name).chain(&gpu.aliases) {
                all.entry(plain(name)).or_default().push(NamedGpu {
                    name: gpu.name.clone(),
                    arch: &gpu.arch,
                    compute_capability: gpu.compute_capability,
                    source: &gpu.source,
                    product: Some(gpu),
                });
            }
        }
        for chip in &self.chips {
            for name in &chip.names {
                all.entry(plain(name)).or_default().push(named(name, chip));
            }
        }
        all
    }
}

/// What a plain name is, if it is known to be something without rows here, and what to do.
fn other_kind(plain: &str) -> Option<(&'static str, &'static str)> {
    let words: Vec<_> = plain.split([' ', '-', '(', ')']).filter(|word| !word.is_empty()).collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let begins = |start: &str| {
        words.iter().any(|word| {
            word.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    };
    if has(&["orin", "xavier", "nano", "tx1", "tx2", "nvgpu", "jetson", "tegra"]) {
        return Some((
            "a Jetson: its driver is part of JetPack, and wheels for it are in NVIDIA's own index, which the matrix does not have",
            "use the containers of NVIDIA's JetPack for it; Jetson Thor has the usual driver: `--gpu \"NVIDIA Thor\"`",
        ));
    }
    if words.first() == Some(&"mig") {
        return Some((
            "a slice, which does not say of which GPU",
            "name the GPU in front of it: `--gpu \"NVIDIA H100 80GB HBM3 MIG 1g.10gb\"`",
        ));
    }
    if begins("gfx") || begins("mi") || has(&["amd", "radeon", "instinct"]) {
        return Some(("an AMD GPU: every row of the matrix is for CUDA", "use images with ROCm for it"));
    }
    if has(&["intel", "arc", "gaudi", "gaudi2", "gaudi3", "tpu", "apple", "m1", "m2", "m3", "m4"]) {
        return Some((
            "no GPU of NVIDIA: every row of the matrix is for CUDA",
            "name an NVIDIA GPU, or its capability: `--gpu sm_XX`",
        ));
    }
    None
}

type Candidates<'a> = BTreeMap<String, Vec<NamedGpu<'a>>>;

fn named<'a>(name: &str, chip: &'a Chip) -> NamedGpu<'a> {
    NamedGpu {
        name: name.to_owned(),
        arch: &chip.arch,
        compute_capability: chip.compute_capability,
        source: &chip.source,
        product: None,
    }
}

fn has_board(chip: &Chip, board: &str) -> bool {
    chip.vgpu_boards.iter().any(|known| known.eq_ignore_ascii_case(board))
}

/// Returns the first match, if all have one capability.
fn one_capability<'a, 'm>(
    name: &str,
    matches: impl Iterator<Item = &'m NamedGpu<'a>>,
    name_of: impl Fn(&NamedGpu<'a>) -> String,
) -> Result<NamedGpu<'a>, GpuNameError>
where
    'a: 'm,
{
    let matches: Vec<_> = matches.collect();
    let found: BTreeSet<_> =
        matches.iter().map(|gpu| (gpu.compute_capability, gpu.arch.to_owned())).collect();
    match matches.first() {
        Some(first) if found.len() == 1 => Ok(NamedGpu { name: name_of(first), ..(*first).clone() }),
        _ => Err(GpuNameError::Ambiguous { name: name.to_owned(), found: found.into_iter().collect() }),
    }
}

/// Returns the name without case, extra spaces and vendor prefixes.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let mut words = lower.split_whitespace().peekable();
    while words.next_if(|word| VENDOR_WORDS.contains(word)).is_some() {}
    words.collect::<Vec<_>>().join(" ")
}

/// A given name in normalized form.
struct Spelling {
    whole: String,
}

impl Spelling {
    fn of(name: &str) -> Self {
        Self { whole: plain(name) }
    }

    /// Returns the name without its MIG slice: `a100-sxm4-80gb` of `a100-sxm4-80gb mig 3g.40gb`. The slice may include a
    /// compute instance (`1c.3g.40gb`) and media engines (`1g.10gb+me`).
    fn physical(&self) -> Option<&str> {
        let (board, slice) = self.whole.rsplit_once(" mig ")?;
        let (compute, memory) = slice.rsplit_once('.')?;
        let memory = memory.split('+').next().unwrap_or(memory);
        let instance = compute.rsplit('.').next().unwrap_or(compute);
        let is_slice =
            instance.strip_suffix('g').is_some_and(digits) && memory.strip_suffix("gb").is_some_and(digits);
        is_slice.then_some(board)
    }

    /// Returns the name with its words apart, and without memory and form of the board: `rtx 3060 ti` of `rtx3060ti`, `a100` of
    /// `a100-40gb`; and whether it named a form.
    fn without_board(&self) -> (String, bool) {
        let words = self.whole.split([' ', '-', '_']).filter(|word| !word.is_empty());
        let mut all: Vec<&str> = Vec::new();
        let mut has_form = false;
        for word in words {
            let series = SERIES_WORDS.iter().find(|series| {
                word.strip_prefix(**series).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            });
            let rest = series.map_or(word, |series| &word[series.len()..]);
            all.extend(series.copied());
            let (number, suffix) =
                rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
            if !number.is_empty() && ["ti", "super"].contains(&suffix) {
                all.extend([number, suffix]);
            } else if all.is_empty() || !(is_memory(rest) || is_form(rest)) {
                all.push(rest);
            } else {
                has_form |= is_form(rest);
            }
        }
        (all.join(" "), has_form)
    }

    /// Returns the board of a vGPU: `a100d` of `a100d-80c`, and of `a100d-3-40c`, which is backed by a MIG slice. The profile is
    /// digits and one of the series A, B, C, Q, perhaps with media engines (`10cme`) or a display variant (`2b4`).
    fn vgpu_board(&self) -> Option<&str> {
        let (board, profile) = self.physical().unwrap_or(&self.whole).rsplit_once('-')?;
        let profile = profile.strip_suffix("me").or_else(|| profile.strip_suffix('4')).unwrap_or(profile);
        if !profile.strip_suffix(['a', 'b', 'c', 'q']).is_some_and(digits) {
            return None;
        }
        Some(board.rsplit_once('-').filter(|(_, slices)| digits(slices)).map_or(board, |(board, _)| board))
    }
}

/// Whether a word is a board's memory: `80gb`.
fn is_memory(word: &str) -> bool {
    word.strip_suffix("gb").or_else(|| word.strip_suffix('g')).is_some_and(digits)
}

/// Whether a word is the form of a board for servers: `hbm3`, `sxm5`, `pcie`, `nvl`.
fn is_form(word: &str) -> bool {
    ["hbm", "sxm", "pcie", "nvl"].iter().any(|form| word.starts_with(form))
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the product's name starts with the family's words, ignoring series words: `a100` of `a100-sxm4-80gb`, `4090`
/// of `rtx 4090 laptop gpu`. A family name contains a number.
fn is_member(product: &str, family: &str) -> bool {
    let words = |text: &str| text.split([' ', '-']).map(str::to_owned).collect::<Vec<_>>();
    let (product, family) = (words(product), words(family));
    let numbered = family.iter().any(|word| word.bytes().any(|byte| byte.is_ascii_digit()));
    let series = product.iter().take_while(|word| SERIES_WORDS.contains(&word.as_str())).count();
    numbered && (0..=series).any(|skipped| product[skipped..].starts_with(&family))
}

fn nearest(spelling: &Spelling, candidates: &Candidates<'_>) -> Vec<String> {
    let wanted = spelling.physical().unwrap_or(&spelling.whole);
    let mut scored: Vec<_> = candidates
        .iter()
        .map(|(key, rows)| (strsim::normalized_damerau_levenshtein(wanted, key), rows[0].name.as_str()))
        .filter(|(score, _)| *score >= 0.4)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().map(|(_, name)| name.to_owned()).take(NEAREST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capability(name: &str) -> Result<String, GpuNameError> {
        Matrix::embedded().gpu_named(name).map(|gpu| gpu.compute_capability.dotted())
    }

    #[test]
    fn spellings_of_real_gpus_give_their_capability() {
        let spellings = [
            // As NVML prints them.
            ("NVIDIA A100-SXM4-80GB", "8.0"),
            ("NVIDIA H100 80GB HBM3", "9.0"),
            ("NVIDIA H200", "9.0"),
            ("NVIDIA B200", "10.0"),
            ("NVIDIA B300 SXM6 AC", "10.3"),
            ("NVIDIA GB10", "12.1"),
            ("Tesla T4", "7.5"),
            ("Tesla V100-SXM2-32GB", "7.0"),
            ("NVIDIA GeForce RTX 4090", "8.9"),
            ("NVIDIA GeForce RTX 5090", "12.0"),
            ("Quadro RTX 4000", "7.5"),
            ("NVIDIA RTX 4000 Ada Generation", "8.9"),
            // Case, spacing, and without the vendor's words.
            ("nvidia a100-sxm4-80gb", "8.0"),
            ("  NVIDIA   L40S ", "8.9"),
            ("GeForce RTX 3090", "8.6"),
            ("RTX 3090", "8.6"),
            ("T4", "7.5"),
            ("GeForce GTX 1080 Ti", "6.1"),
            // Laptop and Max-Q.
            ("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9"),
            ("NVIDIA GeForce RTX 3080 Laptop GPU", "8.6"),
            ("NVIDIA GeForce RTX 5090 Laptop GPU", "12.0"),
            ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", "12.0"),
            ("NVIDIA GeForce RTX 3050 A Laptop GPU", "8.9"),
            ("NVIDIA GeForce RTX 2080 with Max-Q Design", "7.5"),
            ("NVIDIA GeForce GTX 1650 with Max-Q Design", "7.5"),
            ("Quadro RTX 5000 with Max-Q Design", "7.5"),
            ("NVIDIA RTX A2000 Laptop GPU", "8.6"),
            ("NVIDIA GeForce MX570", "8.6"),
            // Old ones.
            ("Tesla K80", "3.7"),
            ("Tesla K40m", "3.5"),
            ("Tesla K20Xm", "3.5"),
            ("Tesla K10", "3.0"),
            ("GeForce GTX 680", "3.0"),
            ("GeForce GTX 780 Ti", "3.5"),
            ("GeForce GTX TITAN X", "5.2"),
            ("GeForce GTX 580", "2.0"),
            ("GeForce GTX 460", "2.1"),
            ("Quadro K6000", "3.5"),
            // MIG slices.
            ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "8.0"),
            ("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", "8.0"),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "9.0"),
            // vGPUs.
            ("GRID A100D-80C", "8.0"),
            ("GRID A100DX-3-40C", "8.0"),
            ("GRID A100D-1-10CME", "8.0"),
            ("NVIDIA A40-48Q", "8.6"),
            ("NVIDIA H100XM-80C", "9.0"),
            ("NVIDIA RTX6000-Ada-48Q", "8.9"),
            ("NVIDIA RTXA6000-48Q", "8.6"),
            ("GRID T4-2B4", "7.5"),
            ("GRID V100DX-32C", "7.0"),
            // Families of one capability.
            ("A100", "8.0"),
            ("H100", "9.0"),
            ("V100", "7.0"),
            ("P100", "6.0"),
            ("4090", "8.9"),
            ("A4000", "8.6"),
            // In one word, and with the memory or form of a board.
            ("RTX5090", "12.0"),
            ("rtx3060ti", "8.6"),
            ("RTX 2080Super", "7.5"),
            ("A100-40GB", "8.0"),
            ("H200 141GB", "9.0"),
            ("h100-sxm", "9.0"),
            ("RTX 3080 12GB", "8.6"),
            ("V100 32GB", "7.0"),
            // An architecture of one capability.
            ("Hopper", "9.0"),
            ("ada", "8.9"),
        ];
        let wrong: Vec<_> = spellings
            .iter()
            .filter_map(|(name, wanted)| match capability(name) {
                Ok(found) if found == *wanted => None,
                other => Some((name, wanted, other)),
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn names_that_people_have_are_known_or_said_to_be_something_else() {
        for (name, wanted) in [
            ("NVIDIA DGX Spark", "12.1"),
            ("dgx spark", "12.1"),
            ("NVIDIA Thor", "11.0"),
            ("Jetson AGX Thor", "11.0"),
            ("Jetson Thor", "11.0"),
        ] {
            assert_eq!(capability(name).as_deref(), Ok(wanted), "{name}");
        }
        for (name, says) in [
            ("Orin (nvgpu)", "is a Jetson"),
            ("NVIDIA Jetson AGX Orin", "is a Jetson"),
            ("MIG 1g.10gb", "a slice, which does not say of which GPU"),
            ("gfx942", "an AMD GPU"),
            ("MI300X", "an AMD GPU"),
            ("AMD Instinct MI250X", "an AMD GPU"),
            ("Radeon RX 7900 XTX", "an AMD GPU"),
            ("Apple M3", "no GPU of NVIDIA"),
        ] {
            let error = capability(name).expect_err(name).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(capability("RTX 9999"), Err(GpuNameError::Unknown { .. })));
    }

    #[test]
    fn name_with_several_chips_is_ambiguous() {
        let GpuNameError::Ambiguous { found, .. } = capability("GeForce GT 730").unwrap_err() else {
            panic!("GT 730 was sold with Fermi and two kinds of Kepler")
        };
        let found: Vec<_> = found.iter().map(|(cc, _)| cc.dotted()).collect();
        assert_eq!(found, ["2.1", "3.0", "3.5"]);
        for name in ["RTX 4000", "3050", "RTX 6000", "80GB A100"] {
            assert!(capability(name).is_err(), "{name}");
        }
    }

    #[test]
    fn unknown_name_lists_closest_names_and_suggests_the_capability() {
        let error = capability("NVIDIA GeForce RTX 4091").unwrap_err();
        let GpuNameError::Unknown { nearest, .. } = &error else { panic!("{error:?}") };
        assert_eq!(nearest.len(), NEAREST);
        assert!(nearest.contains(&"NVIDIA GeForce RTX 4090".to_owned()), "{nearest:?}");
        assert!(error.hints().iter().any(|hint| hint.contains("`--gpu sm_XX`")));
    }

    #[test]
    fn nonsense_is_unknown() {
        assert!(
            matches!(capability("blackwell"), Err(GpuNameError::Ambiguous { .. })),
            "an architecture of several"
        );
        // A professional card is not made as a module of a server.
        for name in
            ["", "GPU", "NVIDIA", "RTX", "Laptop GPU", "hbm3", "NVIDIA A1000-SXM4-80GB", "RTX 4090 NVL"]
        {
            assert!(
                matches!(capability(name), Err(GpuNameError::Unknown { .. })),
                "{name}: {:?}",
                capability(name)
            );
        }
    }

    #[test]
    fn only_slices_and_profiles_are_stripped() {
        for name in [
            "NVIDIA A100-SXM4-80GB MIG big",
            "NVIDIA A40-48X",
            "NVIDIA NOPE-48Q",
            "NVIDIA A100-SXM4-80GB MIG",
        ] {
            assert!(capability(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_family_has_no_figures_but_a_product_has() {
        let matrix = Matrix::embedded();
        assert!(matrix.gpu_named("A100").unwrap().product.is_none());
        assert_eq!(matrix.gpu_named("A100").unwrap().name, "A100");
        let product = matrix.gpu_named("a100-sxm4-80gb mig 3g.40gb").unwrap();
        assert_eq!(product.name, "NVIDIA A100-SXM4-80GB");
        assert_eq!(product.product.and_then(|gpu| gpu.memory_gb), Some(80.0));
    }

    #[test]
    fn every_name_in_the_matrix_is_found() {
        let matrix = Matrix::embedded();
        let names = matrix.gpus.iter().map(|gpu| (&gpu.name, gpu.compute_capability));
        let chips = matrix
            .chips
            .iter()
            .flat_map(|chip| chip.names.iter().map(|name| (name, chip.compute_capability)));
        for (name, wanted) in names.chain(chips) {
            match matrix.gpu_named(name) {
                Ok(gpu) => assert_eq!(gpu.compute_capability, wanted, "{name}"),
                Err(GpuNameError::Ambiguous { found, .. }) => {
                    assert!(found.iter().any(|(cc, _)| *cc == wanted), "{name}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}
