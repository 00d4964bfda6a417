//! Diagnoses of status codes of the driver, NVRTC, cuBLAS, cuDNN and NCCL, by number and by name.
//!
//! `envforge_protocol::status` owns the codes and their texts; a group without texts refers to a row of the diagnosis.

pub use envforge_protocol::status::Library;
use envforge_protocol::status::{StatusGroup, groups};

use super::entry::Diagnosis;
use super::table::entries;

/// What frameworks say of a status without its name, in lower case.
const WORDS: &[(&str, (Library, i32))] = &[
    ("cuda out of memory", (Library::Driver, 2)),
    ("resource_exhausted: out of memory while trying to allocate", (Library::Driver, 2)),
    ("cudaerrormemoryallocation", (Library::Driver, 2)),
];

fn diagnosis(group: &StatusGroup) -> Option<Diagnosis> {
    let StatusGroup { id, what, why, fix, .. } = *group;
    if what.is_empty() {
        return entries().find(|entry| entry.id == id).map(Diagnosis::from);
    }
    Some(Diagnosis { id, what, why, cure: fix, source: source(group.library) })
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
    let names = groups().flat_map(|group| group.statuses.iter().map(move |status| (group, status.name)));
    let found =
        names.filter(|(group, name)| !group.id.is_empty() && has_word(text, &name.to_ascii_lowercase()));
    diagnosis(found.max_by_key(|(_, name)| name.len())?.0)
}

/// Whether a text contains a word on its own.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(inside) && !text[at + word.len()..].starts_with(inside))
}
