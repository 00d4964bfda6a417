//! Compares the matrix rows of the default channel with the package indexes. It changes nothing itself: people
//! review the rows it drafts, and values missing in an index stay unknown.
//!
//! Owns the reading of a project's page, of a wheel's metadata and of its libraries' architectures, and the comparison, which
//! is pure.

mod architectures;
mod compare;
mod draft;
mod draft_coupled;
mod metadata;
mod page;
mod remote_zip;
mod successor;
mod uploads;

pub(crate) use architectures::{Targets, targets};
pub(crate) use compare::{
    MatrixDifference, Published, findings, missing, newer, target_findings, unlisted, unlisted_findings,
};
pub(crate) use draft::{DraftRow, NewRelease, draft, draft_of_sibling, name_contradiction, unmeasured};
pub(crate) use draft_coupled::draft_coupled;
pub(crate) use metadata::metadata;
pub(crate) use page::{IndexWheel, listed, releases};
pub(crate) use successor::{FamilyMember, Succession, draft_of_successor, own_extras, relatives};
pub(crate) use uploads::upload_days;
