//! The GPU and its libraries, one file for each: hand-written signatures, plain statuses, memory that frees itself.
//!
//! Every function is looked up at run time and every return is a plain number, so that a driver or library newer than
//! this program is data and never undefined behaviour.

/// A table of a library's functions, all of which return a status.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($field:ident = $symbol:literal ($($arg:ty),* $(,)?);)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name { $($field: unsafe extern "C" fn($($arg),*) -> std::ffi::c_int,)* }

        impl $name {
            fn load(library: crate::dlopen::Library) -> Result<Self, String> {
                // SAFETY: the signatures are those of the library's header.
                Ok(unsafe { Self { $($field: library.function($symbol)?,)* } })
            }
        }
    };
}

pub(crate) mod cublas;
pub(crate) mod cudnn;
pub(crate) mod cufft;
pub(crate) mod curand;
pub(crate) mod cusolver;
pub(crate) mod cusparse;
pub(crate) mod device;
pub(crate) mod driver;
pub(crate) mod health;
pub(crate) mod ipc;
pub(crate) mod mapped;
pub(crate) mod nccl;
pub(crate) mod nvml;
pub(crate) mod status;
