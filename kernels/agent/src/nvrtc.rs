//! NVRTC of 10.2 to 13.x: compiles CUDA C++ to machine code or PTX. It needs neither a GPU nor a driver.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use super::dlopen::Library;
use super::kernels::Capability;

/// `nvrtcProgram`.
type Program = *mut c_void;
type Status = c_int;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status;
type Count = unsafe extern "C" fn(*mut c_int) -> Status;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Status;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status;
type Size = unsafe extern "C" fn(Program, *mut usize) -> Status;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> Status;
type Destroy = unsafe extern "C" fn(*mut Program) -> Status;

/// The functions of one libnvrtc.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nvrtc {
    version: Version,
    /// `None` before 11.2.
    machine_code: Option<MachineCode>,
    create: Create,
    compile: Compile,
    destroy: Destroy,
    log: (Size, Bytes),
    ptx: (Size, Bytes),
}

/// The functions of 11.2 and later: the list of architectures, and machine code for them (from 11.1).
#[derive(Debug, Clone, Copy)]
struct MachineCode {
    count: Count,
    list: Count,
    cubin: (Size, Bytes),
}

/// What to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Machine code of one chip: `sm_90`.
    Cubin(Capability),
    /// PTX that the driver of this or any later chip compiles: `compute_90`.
    Ptx(Capability),
}

impl Target {
    /// Machine code where the toolkit knows the chip; else PTX of the highest chip it knows that is older; `None` if the
    /// chip is older than all.
    pub(crate) fn for_chip(chip: Capability, known: &[Capability]) -> Option<Self> {
        if known.contains(&chip) {
            return Some(Self::Cubin(chip));
        }
        known.iter().copied().filter(|known| *known < chip).max().map(Self::Ptx)
    }

    /// `sm_90` or `compute_90`.
    pub(crate) fn name(self) -> String {
        let (prefix, (major, minor)) = match self {
            Self::Cubin(chip) => ("sm", chip),
            Self::Ptx(chip) => ("compute", chip),
        };
        format!("{prefix}_{major}{minor}")
    }
}

/// Why nothing was compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `nvrtcResult`.
    pub(crate) status: i32,
    /// The compiler's own text.
    pub(crate) log: String,
}

impl Failure {
    /// One line: the status in words, and the first line of the log that tells more.
    pub(crate) fn text(&self) -> String {
        let line = self.log.lines().map(str::trim).find(|line| line.contains("error")).or_else(|| {
            let mut lines = self.log.lines().map(str::trim);
            lines.find(|line| !line.is_empty())
        });
        let words = words(self.status);
        line.map_or_else(|| words.clone(), |line| format!("{words}: {line}"))
    }

    /// What to do.
    pub(crate) fn hint(&self) -> &'static str {
        match self.status {
            1 => "give the container more memory",
            5 => {
                "this NVRTC does not know the architecture: it is older than the chip, or no longer supports it"
            }
            6 => "report this with the log: the kernel's source is invalid for this NVRTC",
            7 => {
                "reinstall NVRTC: libnvrtc-builtins of the same version must be next to libnvrtc, and libstdc++.so.6 be installed"
            }
            _ => "reinstall NVRTC: its files do not match",
        }
    }
}

/// `nvrtcResult` in words, as `nvrtc.h` of 11.8 to 13.x names it.
fn words(status: i32) -> String {
    let name = match status {
        1 => "out of memory",
        2 => "the program could not be created",
        3 => "invalid input",
        4 => "invalid program",
        5 => "invalid option",
        6 => "the source does not compile",
        7 => "the built-in functions could not be loaded",
        8..=10 => "a name expression is not valid",
        11 => "internal error",
        12 | 17 => "the file of times could not be written",
        13..=15 => "a precompiled header could not be made",
        16 => "cancelled",
        _ => return format!("unknown NVRTC error {status}"),
    };
    format!("NVRTC error {status}, {name}")
}

/// Loads the built-in functions next to a libnvrtc, as PyTorch does before its first kernel: NVRTC 13.0 has no run
/// path, and finds them only where they are loaded already or on the loader's own path (seen with 13.0.88; those of 11.8,
/// 12.4, 12.8 and the newest 13 find them by themselves).
pub(crate) fn load_builtins(libnvrtc: &Path) {
    let folder = libnvrtc.parent().unwrap_or(libnvrtc);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("libnvrtc-builtins") && !name.contains(".alt.") {
            // The first compilation reports one that cannot be loaded.
            let _ = Library::open(&entry.path());
        }
    }
}

impl Nvrtc {
    /// Loads a libnvrtc. The path must be canonical: it finds its built-in functions next to the name it is opened by.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let library = Library::open(path)?;
        // SAFETY: the signatures are those of nvrtc.h, unchanged from 11.2 to 13.x; `nvrtcResult` is an int.
        unsafe {
            Ok(Self {
                version: library.function(c"nvrtcVersion")?,
                machine_code: machine_code(library).ok(),
                create: library.function(c"nvrtcCreateProgram")?,
                compile: library.function(c"nvrtcCompileProgram")?,
                destroy: library.function(c"nvrtcDestroyProgram")?,
                log: (library.function(c"nvrtcGetProgramLogSize")?, library.function(c"nvrtcGetProgramLog")?),
                ptx: (library.function(c"nvrtcGetPTXSize")?, library.function(c"nvrtcGetPTX")?),
            })
        }
    }

    /// Major and minor version of the toolkit it belongs to.
    pub(crate) fn version(&self) -> Result<(i32, i32), String> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both point to an int.
        let status = unsafe { (self.version)(&raw mut major, &raw mut minor) };
        if status == 0 { Ok((major, minor)) } else { Err(words(status)) }
    }

    /// The chips it makes machine code for, ascending; none before 11.2, which makes PTX only and reports no list.
    pub(crate) fn architectures(&self) -> Result<Vec<Capability>, String> {
        const MOST: c_int = 1024;
        let Some(calls) = self.machine_code else { return Ok(Vec::new()) };
        let mut count = 0;
        // SAFETY: it points to an int.
        let status = unsafe { (calls.count)(&raw mut count) };
        if status != 0 {
            return Err(words(status));
        }
        if !(1..=MOST).contains(&count) {
            return Err(format!("NVRTC reports {count} architectures"));
        }
        let mut numbers = vec![0; usize::try_from(count).unwrap_or_default()];
        // SAFETY: there is room for as many numbers as it said it has.
        let status = unsafe { (calls.list)(numbers.as_mut_ptr()) };
        if status != 0 {
            return Err(words(status));
        }
        let numbers = numbers.into_iter().filter_map(|number| u32::try_from(number).ok());
        let mut chips: Vec<_> = numbers.map(|number| (number / 10, number % 10)).collect();
        chips.sort_unstable();
        Ok(chips)
    }

    /// Compiles one source. PTX ends with a zero byte, as the driver wants it.
    pub(crate) fn compile(&self, name: &str, source: &str, target: Target) -> Result<Vec<u8>, Failure> {
        let refused = |status, log: &str| Failure { status, log: log.to_owned() };
        let zero = |_| refused(3, "the source holds a zero byte");
        let (name, source) = (CString::new(name).map_err(zero)?, CString::new(source).map_err(zero)?);
        let mut program: Program = std::ptr::null_mut();
        let nothing = std::ptr::null();
        // SAFETY: the texts end with a zero byte; 0 headers need no list.
        let status =
            unsafe { (self.create)(&raw mut program, source.as_ptr(), name.as_ptr(), 0, nothing, nothing) };
        if status != 0 {
            return Err(refused(status, ""));
        }
        let option = CString::new(format!("--gpu-architecture={}", target.name())).map_err(zero)?;
        let options = [option.as_ptr()];
        // SAFETY: the program was created above, and one option is given as a text that ends with a zero byte.
        let status = unsafe { (self.compile)(program, 1, options.as_ptr()) };
        let result = if status == 0 {
            let cubin = self.machine_code.filter(|_| matches!(target, Target::Cubin(_)));
            let image = cubin.map_or(self.ptx, |calls| calls.cubin);
            bytes(program, image).map_err(|status| refused(status, "the result could not be read"))
        } else {
            let log = bytes(program, self.log).unwrap_or_default();
            let log = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
            Err(refused(status, &log))
        };
        // SAFETY: the program was created above and is not used again.
        unsafe { (self.destroy)(&raw mut program) };
        result
    }
}

/// Looks up the functions of 11.2 and later.
fn machine_code(library: Library) -> Result<MachineCode, String> {
    // SAFETY: the signatures are those of nvrtc.h, unchanged from 11.2 to 13.x.
    unsafe {
        Ok(MachineCode {
            count: library.function(c"nvrtcGetNumSupportedArchs")?,
            list: library.function(c"nvrtcGetSupportedArchs")?,
            cubin: (library.function(c"nvrtcGetCUBINSize")?, library.function(c"nvrtcGetCUBIN")?),
        })
    }
}

/// Asks for a size, then for as many bytes.
fn bytes(program: Program, (size, get): (Size, Bytes)) -> Result<Vec<u8>, Status> {
    let mut length = 0;
    // SAFETY: the program is alive and `length` is a size_t.
    let status = unsafe { size(program, &raw mut length) };
    if status != 0 {
        return Err(status);
    }
    let mut bytes = vec![0_u8; length];
    // SAFETY: there is room for as many bytes as it said it has.
    let status = unsafe { get(program, bytes.as_mut_ptr().cast()) };
    if status == 0 { Ok(bytes) } else { Err(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_the_toolkit_knows_gets_machine_code_and_a_newer_one_ptx() {
        let known = [(7, 5), (8, 0), (9, 0)];
        assert_eq!(Target::for_chip((8, 0), &known), Some(Target::Cubin((8, 0))));
        assert_eq!(Target::for_chip((12, 0), &known), Some(Target::Ptx((9, 0))));
        assert_eq!(Target::for_chip((8, 6), &known), Some(Target::Ptx((8, 0))));
        assert_eq!(Target::for_chip((7, 0), &known), None);
        assert_eq!(Target::Cubin((12, 0)).name(), "sm_120");
        assert_eq!(Target::Ptx((9, 0)).name(), "compute_90");
    }

    #[test]
    fn a_failure_says_what_happened_and_what_to_do() {
        let failure = Failure {
            status: 7,
            log: "\nnvrtc: error: failed to open libnvrtc-builtins.so.12.4.\n  Make sure\n".to_owned(),
        };
        let text = failure.text();
        assert!(
            text.contains("built-in functions") && text.ends_with("libnvrtc-builtins.so.12.4."),
            "{text}"
        );
        assert!(failure.hint().contains("libstdc++.so.6"));
        assert!(Failure { status: 99, log: String::new() }.text().contains("99"));
    }
}
