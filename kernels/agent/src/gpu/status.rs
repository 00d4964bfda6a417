//! A failed call of one of NVIDIA's libraries: its status by name, the reason and the fix.

pub(crate) use envforge_protocol::status::Library;
use envforge_protocol::status::{Status, explained_status};

/// A call that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GpuLibraryError {
    pub(crate) library: Library,
    pub(crate) call: String,
    pub(crate) code: i32,
    /// The library's own message, if it has one.
    pub(crate) message: String,
}

/// The fix where NCCL finds no network at all.
const NO_INTERFACE: &str = "NCCL needs one network interface that is up, if only the loopback one: `ip link set lo up` in the container, or name \
                            one by NCCL_SOCKET_IFNAME";

impl GpuLibraryError {
    pub(crate) fn new(library: Library, call: &str, code: i32) -> Self {
        Self { library, call: call.to_owned(), code, message: String::new() }
    }

    fn known(&self) -> Option<&'static Status> {
        // cuDNN 9 counts within thousands: 2003 is a kind of 2000.
        let thousand = (self.library == Library::Cudnn).then_some(self.code / 1000 * 1000);
        explained_status(self.library, self.code).or_else(|| explained_status(self.library, thousand?))
    }

    /// Whether the GPU's memory was full. No check asks for more than a part of what is free: another program holds it.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let codes: &[i32] = match self.library {
            Library::Driver => &[2],
            Library::Cublas => &[3],
            // CUDNN_STATUS_ALLOC_FAILED of cuDNN 8, and cuDNN 9's for the device.
            Library::Cudnn => &[2, 4004],
            // …_ALLOC_FAILED; of cuRAND 102.
            Library::Math => &[2, 102],
            _ => &[],
        };
        codes.contains(&self.code)
    }

    /// Returns the fix, if one is known.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        // One status for several faults: NCCL's own words tell this one from two ranks on one GPU.
        if self.library == Library::Nccl && self.message.contains("no socket interface") {
            return Some(NO_INTERFACE);
        }
        self.known().map(|status| status.fix).filter(|fix| !fix.is_empty())
    }
}

impl std::fmt::Display for GpuLibraryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} returned {}", self.call, self.code)?;
        match self.known() {
            Some(Status { name, reason, .. }) => write!(f, " ({name}): {reason}")?,
            None => f.write_str(", an unknown status")?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

/// The answer of a call of cuFFT, cuRAND, cuSOLVER or cuSPARSE.
pub(crate) fn math_done(call: &str, code: i32) -> Result<(), GpuLibraryError> {
    if code == 0 { Ok(()) } else { Err(GpuLibraryError::new(Library::Math, call, code)) }
}

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// The loader's reason, or the symbol that the file lacks.
    Load(String),
    /// It was loaded, and its first call failed.
    Call(GpuLibraryError),
}

impl From<String> for OpenError {
    fn from(problem: String) -> Self {
        Self::Load(problem)
    }
}

impl From<GpuLibraryError> for OpenError {
    fn from(fault: GpuLibraryError) -> Self {
        Self::Call(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_status_keeps_its_number() {
        let error = GpuLibraryError::new(Library::Driver, "cuInit", 12345);
        assert_eq!(error.to_string(), "cuInit returned 12345, an unknown status");
        assert_eq!(error.hint(), None);
        let error = GpuLibraryError::new(Library::Cudnn, "cudnnCreate", 3002);
        assert!(error.to_string().contains("3002 (CUDNN_STATUS_NOT_SUPPORTED)"), "{error}");
        let mut error = GpuLibraryError::new(Library::Nccl, "ncclCommInitAll", 5);
        assert!(error.hint().is_some_and(|hint| hint.contains("two ranks")), "{error}");
        // As NCCL 2.28.9 said it on an H100 without a network.
        error.message = "Bootstrap : no socket interface found".to_owned();
        assert_eq!(error.hint(), Some(NO_INTERFACE));
        let error = GpuLibraryError::new(Library::Cudnn, "cudnnCreate", 3007);
        assert!(error.to_string().contains("ARCH_MISMATCH") && error.hint().is_some(), "{error}");
    }
}
