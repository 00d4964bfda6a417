//! Status codes of NVIDIA's libraries: number, name, reason and fix. Codes that mean the same to a user share a group.

mod compute;
mod driver;
mod libraries;

/// A library whose calls return a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The CUDA driver (`CUresult`); the runtime's codes are the same from 34 on.
    Driver,
    /// NVRTC.
    Nvrtc,
    /// cuBLAS.
    Cublas,
    /// cuDNN 8 and 9.
    Cudnn,
    /// NCCL.
    Nccl,
    /// NVML.
    Nvml,
    /// cuFFT, cuSOLVER, cuSPARSE and cuRAND: their codes are reported as numbers.
    Math,
}

/// A status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Number.
    pub code: i32,
    /// Name in the library's header.
    pub name: &'static str,
    /// Reason of this code, where it says more than the group's; else empty.
    pub reason: &'static str,
    /// Fix for this code, if any; else empty.
    pub fix: &'static str,
}

/// Statuses of one library that mean the same to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusGroup {
    /// The library.
    pub library: Library,
    /// Id of the finding in envforge's diagnosis; empty: none.
    pub id: &'static str,
    /// The failure; empty, as the next two, where a row of envforge's diagnosis with that id has the texts.
    pub what: &'static str,
    /// The reason.
    pub why: &'static str,
    /// The fix.
    pub fix: &'static str,
    /// The codes.
    pub statuses: &'static [Status],
}

impl Library {
    /// Returns the status with that code and its group; `None` for success and for unknown codes.
    pub fn status(self, code: i32) -> Option<(&'static StatusGroup, &'static Status)> {
        let of_library = groups().filter(|group| group.library == self);
        of_library
            .flat_map(|group| group.statuses.iter().map(move |status| (group, status)))
            .find(|(_, status)| status.code == code)
    }
}

/// Returns the status with that code, if it has a reason of its own. The agent links these texts only.
pub fn explained_status(library: Library, code: i32) -> Option<&'static Status> {
    let mut of_library = EXPLAINED.iter().filter(|(known, _)| *known == library);
    of_library.find(|(_, status)| status.code == code).map(|(_, status)| status)
}

/// The statuses with a reason of their own, copied from the groups at compile time.
static EXPLAINED: [(Library, Status); count_explained()] = {
    let mut found = [(Library::Driver, plain(0, "")); count_explained()];
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut group = 0;
        while group < TABLES[table].len() {
            let StatusGroup { library, statuses, .. } = TABLES[table][group];
            let mut at = 0;
            while at < statuses.len() {
                if !statuses[at].reason.is_empty() {
                    found[count] = (library, statuses[at]);
                    count += 1;
                }
                at += 1;
            }
            group += 1;
        }
        table += 1;
    }
    found
};

const fn count_explained() -> usize {
    let (mut count, mut table) = (0, 0);
    while table < TABLES.len() {
        let mut group = 0;
        while group < TABLES[table].len() {
            let statuses = TABLES[table][group].statuses;
            let mut at = 0;
            while at < statuses.len() {
                if !statuses[at].reason.is_empty() {
                    count += 1;
                }
                at += 1;
            }
            group += 1;
        }
        table += 1;
    }
    count
}

const TABLES: [&[StatusGroup]; 3] = [driver::GROUPS, compute::GROUPS, libraries::GROUPS];

/// Returns every group.
pub fn groups() -> impl Iterator<Item = &'static StatusGroup> {
    TABLES.into_iter().flatten()
}

const REPORT: &str = "save the output of `envforge verify --json` and report it with the image's lock";
const MIXED: &str = "keep one copy of CUDA on the loader path, and use a build for this driver and GPU";
const MEMORY: &str = "stop other programs on that GPU (`nvidia-smi` lists them) or use another with --gpus";

const fn group(
    library: Library,
    id: &'static str,
    [what, why, fix]: [&'static str; 3],
    statuses: &'static [Status],
) -> StatusGroup {
    StatusGroup { library, id, what, why, fix, statuses }
}

const fn plain(code: i32, name: &'static str) -> Status {
    explained(code, name, "", "")
}

const fn explained(code: i32, name: &'static str, reason: &'static str, fix: &'static str) -> Status {
    Status { code, name, reason, fix }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARIES: [Library; 6] =
        [Library::Driver, Library::Nvrtc, Library::Cublas, Library::Cudnn, Library::Nccl, Library::Nvml];

    #[test]
    fn codes_are_unique_and_found() {
        for library in LIBRARIES {
            let mut codes: Vec<_> = groups()
                .filter(|group| group.library == library)
                .flat_map(|group| group.statuses)
                .map(|status| status.code)
                .collect();
            assert!(
                codes.iter().all(|code| library.status(*code).is_some_and(|(_, found)| found.code == *code))
            );
            let count = codes.len();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), count, "{library:?}: a code twice");
            assert_eq!(library.status(0), None, "{library:?}: success");
        }
    }

    #[test]
    fn groups_have_all_texts_or_none() {
        for group in groups() {
            let texts = [group.what, group.why, group.fix];
            assert!(texts.iter().all(|text| text.is_empty()) || texts.iter().all(|text| !text.is_empty()));
            assert!(!group.statuses.is_empty());
            // The agent prints a reason for each code.
            assert!(group.statuses.iter().all(|status| !status.name.is_empty()
                && (group.library != Library::Nvml || !status.reason.is_empty())));
        }
    }

    #[test]
    fn explained_statuses_are_those_with_a_reason() {
        let with_reason = groups()
            .flat_map(|group| group.statuses.iter().map(move |status| (group.library, status)))
            .filter(|(_, status)| !status.reason.is_empty());
        let mut count = 0;
        for (library, status) in with_reason {
            assert_eq!(explained_status(library, status.code), Some(status), "{}", status.name);
            count += 1;
        }
        assert_eq!((count, EXPLAINED.len()), (68, 68));
        assert_eq!(explained_status(Library::Driver, 102), None, "a name alone");
    }

    #[test]
    fn start_up_failures_have_distinct_fixes() {
        let fixes: Vec<_> = [34, 46, 100, 802, 803, 804, 999]
            .map(|code| Library::Driver.status(code).expect("known").1.fix)
            .into();
        for (at, fix) in fixes.iter().enumerate() {
            assert!(!fix.is_empty() && !fixes[..at].contains(fix), "{fix}");
        }
    }
}
