//! Asks CUDA's libraries for their versions. None of these calls needs a GPU; only cudart 11 needs a driver.

use std::ffi::{CStr, c_int};

use super::dlopen::Library;
use super::probe::cudnn_version;

type Number = unsafe extern "C" fn() -> usize;
type ByPointer = unsafe extern "C" fn(*mut c_int) -> c_int;
type Property = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;

/// `cudaErrorInsufficientDriver`: what cudart 11 says where there is no driver.
const NO_DRIVER: c_int = 35;

/// The version of a loaded library, as `major.minor.patch` (cudart: `major.minor`); `None` if it cannot tell without a
/// driver. `name` is one of [`super::libraries::NAMES`].
pub(crate) fn version(name: &str, library: Library) -> Result<Option<String>, String> {
    match name {
        "cudart" => cudart(library),
        "cublas" => cublas(library).map(Some),
        // 12.8.4 is 120804.
        "cublasLt" => number(library, c"cublasLtGetVersion").map(|n| Some(three(n, 10_000, 100))),
        "cudnn" => {
            let number = number(library, c"cudnnGetVersion")?;
            cudnn_version(&number.to_string()).map(Some).ok_or(format!("cudnnGetVersion returned {number}"))
        }
        "nccl" => nccl(library).map(Some),
        _ => Err(format!("{name} has no version call here")),
    }
}

fn cudart(library: Library) -> Result<Option<String>, String> {
    // SAFETY: `cudaError_t cudaRuntimeGetVersion(int *)`.
    let call: ByPointer = unsafe { library.function(c"cudaRuntimeGetVersion") }?;
    let mut number = 0;
    // SAFETY: it points to an int.
    match unsafe { call(&raw mut number) } {
        0 => Ok(Some(format!("{}.{}", number / 1000, number % 1000 / 10))),
        NO_DRIVER => Ok(None),
        status => Err(format!("cudaRuntimeGetVersion returned {status}")),
    }
}

fn cublas(library: Library) -> Result<String, String> {
    // SAFETY: `cublasStatus_t cublasGetProperty(libraryPropertyType, int *)`; both enums are ints.
    let call: Property = unsafe { library.function(c"cublasGetProperty") }?;
    let part = |which: c_int| {
        let mut value = 0;
        // SAFETY: 0, 1 and 2 are MAJOR, MINOR and PATCH, and the pointer is to an int.
        let status = unsafe { call(which, &raw mut value) };
        if status == 0 { Ok(value.to_string()) } else { Err(format!("cublasGetProperty returned {status}")) }
    };
    Ok([part(0)?, part(1)?, part(2)?].join("."))
}

fn nccl(library: Library) -> Result<String, String> {
    // SAFETY: `ncclResult_t ncclGetVersion(int *)`.
    let call: ByPointer = unsafe { library.function(c"ncclGetVersion") }?;
    let mut number = 0;
    // SAFETY: it points to an int.
    let status = unsafe { call(&raw mut number) };
    if status != 0 {
        return Err(format!("ncclGetVersion returned {status}"));
    }
    let number = usize::try_from(number).map_err(|_| format!("ncclGetVersion returned {number}"))?;
    // Up to 2.8 one digit for the minor version: 2708; then two: 22703.
    Ok(if number < 10_000 { three(number, 1000, 100) } else { three(number, 10_000, 100) })
}

fn number(library: Library, name: &CStr) -> Result<usize, String> {
    // SAFETY: `size_t cublasLtGetVersion(void)` and `size_t cudnnGetVersion(void)`.
    let call: Number = unsafe { library.function(name) }?;
    // SAFETY: it takes nothing.
    Ok(unsafe { call() })
}

fn three(number: usize, major: usize, minor: usize) -> String {
    format!("{}.{}.{}", number / major, number % major / minor, number % minor)
}

/// Calls a function that takes nothing and gives a status: cuDNN's checks of its parts. `None`: it has none of that name.
pub(crate) fn status(library: Library, name: &CStr) -> Option<c_int> {
    // SAFETY: `cudnnStatus_t cudnn*VersionCheck(void)`; the status is an int.
    let call: unsafe extern "C" fn() -> c_int = unsafe { library.function(name) }.ok()?;
    // SAFETY: it takes nothing. It may abort the process, which is why the check has its own.
    Some(unsafe { call() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_versions() {
        assert_eq!(three(120_804, 10_000, 100), "12.8.4");
        assert_eq!(three(111_103, 10_000, 100), "11.11.3");
        assert_eq!(three(22_703, 10_000, 100), "2.27.3");
        assert_eq!(three(2708, 1000, 100), "2.7.8");
    }
}
