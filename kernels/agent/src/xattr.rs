//! Extended attributes of a path, links not followed: std has no call for them, the C library has.
#![expect(unsafe_code, reason = "two calls of the C library")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use envforge_protocol::content::counts;

unsafe extern "C" {
    fn llistxattr(path: *const c_char, list: *mut c_char, size: usize) -> isize;
    fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize;
}

/// Linux gives no longer list and no longer value.
const MOST: usize = 64 * 1024;

/// `EOPNOTSUPP`: a file system without extended attributes has none.
const NOT_SUPPORTED: i32 = 95;

/// The attributes that count, by name. `buffer` is scratch space, kept from call to call.
pub(crate) fn counted(path: &Path, buffer: &mut Vec<u8>) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| ErrorKind::InvalidInput)?;
    buffer.resize(MOST, 0);
    // SAFETY: the path ends in a zero byte, the list has room for `MOST` bytes.
    let length = unsafe { llistxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), MOST) };
    let length = match usize::try_from(length) {
        Ok(length) => length,
        Err(_) if Error::last_os_error().raw_os_error() == Some(NOT_SUPPORTED) => 0,
        Err(_) => return Err(Error::last_os_error()),
    };
    let names: Vec<CString> = buffer[..length]
        .split_inclusive(|byte| *byte == 0)
        .filter_map(|name| CStr::from_bytes_with_nul(name).ok())
        .filter(|name| counts(name.to_bytes()))
        .map(CStr::to_owned)
        .collect();
    let mut found = BTreeMap::new();
    for name in names {
        // SAFETY: path and name end in a zero byte, the value has room for `MOST` bytes.
        let length = unsafe { lgetxattr(path.as_ptr(), name.as_ptr(), buffer.as_mut_ptr().cast(), MOST) };
        let length = usize::try_from(length).map_err(|_| Error::last_os_error())?;
        found.insert(name.into_bytes(), buffer[..length].to_vec());
    }
    Ok(found)
}
