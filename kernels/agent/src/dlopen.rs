//! Loads shared libraries: `dlopen` and `dlsym` of the C library.
//!
//! A library is opened by its path, so that a check knows which file it judged; only the driver's is asked for by name,
//! since only the loader knows where the container runtime put it. No library is ever closed: those of CUDA start threads
//! and register exit handlers, and the process of a check ends soon anyway.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

/// A loaded library. It stays loaded to the end of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Loads a file, or what the loader finds for a name without a slash. The error is the loader's own text.
    ///
    /// Its initializers run: a damaged or hostile file can end this process. That is why each check has its own.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| format!("`{}` holds a zero byte", path.display()))?;
        // Local, so that two versions of one library do not find each other's symbols.
        // SAFETY: the text ends with a zero byte and outlives the call.
        let handle = unsafe { dlopen(text.as_ptr(), RTLD_NOW) };
        if handle.is_null() { Err(last_error()) } else { Ok(Self { handle }) }
    }

    /// The function of that name; the error names the symbol that is not there.
    ///
    /// # Safety
    /// `F` must be an `unsafe extern "C" fn` type with the signature that the library's header gives the symbol.
    pub(crate) unsafe fn function<F: Copy>(self, name: &CStr) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "F is a function pointer") };
        // SAFETY: the handle came from dlopen and was never closed; the name ends with a zero byte.
        let address = unsafe { dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return Err(format!("it has no `{}`", name.to_string_lossy()));
        }
        // SAFETY: both are of one size, the address is not null, and the caller vouches for the signature.
        Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }
}

fn last_error() -> String {
    // SAFETY: dlerror may be called at any time.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return "the loader gave no reason".to_owned();
    }
    // SAFETY: it ends with a zero byte and is valid until this thread's next call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_c_library_can_be_called() {
        let library = Library::open(Path::new("libc.so.6")).expect("every test runs on it");
        // SAFETY: `int abs(int)`.
        let abs: unsafe extern "C" fn(c_int) -> c_int = unsafe { library.function(c"abs") }.expect("there");
        // SAFETY: abs has no precondition for -7.
        assert_eq!(unsafe { abs(-7) }, 7);
        // SAFETY: it is never called.
        let gone = unsafe { library.function::<unsafe extern "C" fn()>(c"envforge_no_such") };
        assert_eq!(gone.err().as_deref(), Some("it has no `envforge_no_such`"));
    }

    #[test]
    fn what_cannot_be_loaded_says_why() {
        let missing = Library::open(Path::new("/nonexistent/libx.so")).unwrap_err();
        assert!(missing.contains("/nonexistent/libx.so"), "{missing}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b"\x7fELF").expect("written");
        assert!(Library::open(file.path()).unwrap_err().contains("file too short"));
    }
}
