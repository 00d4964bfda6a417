//! Diagnoses of status codes of the driver, NVRTC, cuBLAS, cuDNN and NCCL, by number and by name.
//!
//! `envforge_protocol::status` owns the codes and their texts; a group without texts refers to a row of the diagnosis.

use std::sync::LazyLock;

pub use envforge_protocol::status::Library;
use envforge_protocol::status::{StatusGroup, groups};

use super::entry::Diagnosis;
use super::table::entries;

/// What frameworks say of a status without its name, in lower case.
const WORDS: &[(&str, (Library, i32))] = &[
    ("cuda out of memory", (Library::Driver, 2)),
    ("resource_exhausted: out of memory while trying to allocate", (Library::Driver, 2)),
    ("cudaerrormemoryallocation", (Library::Driver, 2)),
    ("cuda error: device-side assert triggered", (Library::Driver, 710)),
    ("an illegal memory access was encountered", (Library::Driver, 700)),
    ("cuda error: an illegal instruction was encountered", (Library::Driver, 715)),
    ("cuda error: misaligned address", (Library::Driver, 716)),
    ("cuda error: unspecified launch failure", (Library::Driver, 719)),
    ("cuda error: the launch timed out and was terminated", (Library::Driver, 702)),
    ("cuda error: too many resources requested for launch", (Library::Driver, 701)),
    ("cuda error: invalid device ordinal", (Library::Driver, 101)),
    ("cuda error: invalid device function", (Library::Driver, 98)),
    ("device kernel image is invalid", (Library::Driver, 200)),
    ("cuda error: initialization error", (Library::Driver, 3)),
    ("cuda error: operation not supported", (Library::Driver, 801)),
];

fn diagnosis(group: &StatusGroup) -> Option<Diagnosis> {
    let StatusGroup { id, what, why, fix, .. } = *group;
    if what.is_empty() {
        return entries().find(|entry| entry.id == id).map(Diagnosis::from);
    }
    let [what, why, cure] = [what, why, fix].map(str::to_owned);
    Some(Diagnosis { id, what, why, cure, source: source(group.library) })
}

/// Returns the header that defines a library's statuses.
fn source(library: Library) -> &'static str {
    match library {
        Library::Driver => "cuda.h of CUDA 12.8 (nvidia-cuda-runtime-cu12 12.8.90)",
        Library::Nvrtc => "nvrtc.h, nvrtcResult of CUDA 13",
        Library::Cublas => "cublas_api.h, cublasStatus_t",
        Library::Cudnn => "cudnn_graph.h, cudnnStatus_t of cuDNN 9; 1 to 15: cuDNN 8",
        Library::Nccl => "nccl.h, ncclResult_t",
        Library::Nvml => "nvml.h, nvmlReturn_t",
        Library::Math => "cufft.h, cusolver_common.h, cusparse.h, curand.h",
    }
}

/// Returns the diagnosis of a status; `None` for success and for unknown codes.
pub fn of_status(library: Library, code: i32) -> Option<Diagnosis> {
    diagnosis(library.status(code)?.0)
}

/// Returns the diagnosis of the longest status name in a lower-case text, or of the words for one.
pub(super) fn named_in(text: &str) -> Option<Diagnosis> {
    if let Some((_, (library, code))) = WORDS.iter().find(|(words, _)| text.contains(words)) {
        return of_status(*library, *code);
    }
    if !FAMILIES.iter().any(|family| text.contains(family)) {
        return None;
    }
    let found = NAMES.iter().filter(|(_, name)| has_word(text, name));
    diagnosis(found.max_by_key(|(_, name)| name.len())?.0)
}

/// What the names begin with, in lower case.
const FAMILIES: &[&str] = &["cuda_error_", "nvrtc_error_", "cublas_status_", "cudnn_status_", "nccl"];

/// Each status that has a diagnosis, with its name in lower case.
static NAMES: LazyLock<Vec<(&StatusGroup, String)>> = LazyLock::new(|| {
    let named = groups().filter(|group| !group.id.is_empty());
    named
        .flat_map(|group| group.statuses.iter().map(move |status| (group, status.name.to_ascii_lowercase())))
        .collect()
});

/// Whether a text contains a word on its own.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}
