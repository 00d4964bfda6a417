//! What a build came to: the image, its tags and its verdict, and the error that ends the command.

use serde::Serialize;

use crate::engine::ImageInfo;
use crate::model::image::plan::name;
use crate::model::misfit::Misfit;
use crate::model::verdict::tag_policy::TagStatus;
use crate::model::verdict::{Verdict, VerdictStatus};
use crate::workflow::check_error::CheckError;
use crate::workflow::error::CommandError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::push::Pushed;
use crate::workflow::stage_timings::StageTimings;

/// An image that was built and checked: what `build --json` prints. It has tags only if every check passed.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "fields of the JSON output")]
pub(crate) struct Built {
    pub(super) schema: u32,
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pushed: Vec<Pushed>,
    /// What was signed: the image by its digest, and the key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) attested: Vec<String>,
    /// What went wrong after the image was pushed.
    #[serde(skip)]
    pub(crate) undone: Option<CommandError>,
    pub(super) image: String,
    pub(crate) size: u64,
    pub(super) base: String,
    pub(super) lock: String,
    pub(super) lock_file: String,
    pub(super) content: Option<String>,
    /// What of the locked packages does not go together.
    pub(super) misfits: Vec<Misfit>,
    pub(super) verified: bool,
    /// Why the tags end in `-unverified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unverified_because: Option<String>,
    #[serde(skip)]
    pub(super) required_gpu: bool,
    /// Whether an earlier run had finished the image: nothing was made or checked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) present: bool,
    /// Whether the checks are those of an earlier run of the same image under the same conditions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stands: bool,
    pub(crate) seconds: StageTimings,
    pub(crate) verdict: Verdict,
}

impl Built {
    /// Returns an image of a lock with its tags and what its checks came to.
    pub(super) fn new(
        locked: &LockedBuild,
        image: ImageInfo,
        (claim, verdict): (TagStatus, Verdict),
        tags: Vec<String>,
    ) -> Self {
        Self {
            schema: 1,
            name: name(&locked.lock),
            tags,
            pushed: Vec::new(),
            attested: Vec::new(),
            undone: None,
            image: image.id,
            size: image.size,
            base: locked.base.reference.clone(),
            lock: locked.lock.hash(),
            lock_file: locked.path.to_string(),
            content: None,
            misfits: Vec::new(),
            verified: claim.is_verified(),
            unverified_because: match claim {
                TagStatus::Unverified { because } => Some(because),
                TagStatus::Verified | TagStatus::Failed => None,
            },
            required_gpu: false,
            present: false,
            stands: false,
            seconds: StageTimings::default(),
            verdict,
        }
    }

    /// The error of an image that has no tag: its checks failed, or a GPU was required and none counted.
    pub(crate) fn rejection(&self) -> Option<CommandError> {
        let failed = self.verdict.failures();
        let image = self.image.clone();
        if failed > 0 {
            return Some(CheckError::ChecksFailed { failed, image }.into());
        }
        if self.is_undecided() {
            return None;
        }
        let because = self.unverified_because.clone().filter(|_| self.required_gpu)?;
        Some(CheckError::NotProven { because, image: Some(image) }.into())
    }

    /// The rejection, or the reason why the host left the checks undecided: then the image has its unverified tags.
    pub(crate) fn failure(&self) -> Option<CommandError> {
        self.rejection().or_else(|| {
            let because = self.unverified_because.clone().filter(|_| self.is_undecided())?;
            let image = self.tags.first().unwrap_or(&self.image).clone();
            Some(CheckError::Undecided { because, image }.into())
        })
    }

    fn is_undecided(&self) -> bool {
        self.verdict.verdict == VerdictStatus::Undecided
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::failure::Exit;
    use crate::model::image::info::ImageInfo;
    use crate::model::image_digest::Digest;
    use crate::model::markdown::{documented_fields, printed_fields};
    use crate::model::verdict::{ImageExpectations, judge};

    /// A build whose required check came out so, with the reason why its tag is unverified.
    pub(in crate::workflow) fn built(outcome: &str, because: Option<&str>) -> Built {
        let line = format!(
            r#"{{"id":"gemm-large","stage":"gpu","detail":"NVIDIA H200 (sm_90) is busy",{outcome}}}
{{"done":true,"seconds":1.0}}"#
        );
        let expected = ImageExpectations { required: vec!["gemm-large".to_owned()], ..Default::default() };
        let image = ImageInfo { user: "1000:1000".to_owned(), ..ImageInfo::default() };
        Built {
            schema: 1,
            name: "pytorch".to_owned(),
            tags: vec!["pytorch:1-unverified".to_owned()],
            pushed: Vec::new(),
            attested: Vec::new(),
            undone: None,
            image: "sha256:1".to_owned(),
            size: 1,
            base: String::new(),
            lock: String::new(),
            lock_file: String::new(),
            content: None,
            misfits: Vec::new(),
            verified: false,
            unverified_because: because.map(str::to_owned),
            required_gpu: false,
            present: false,
            stands: false,
            seconds: StageTimings::default(),
            verdict: judge(&line, "agent exited with code 0", &image, &expected),
        }
    }

    /// Nothing is wrong with the image: the build must neither pass silently nor blame it.
    #[test]
    fn undecided_checks_end_with_the_exit_code_of_the_outside() {
        let busy = r#""outcome":"skipped","skip":"host-busy""#;
        let undecided = built(busy, Some("the host is busy: NVIDIA H200 (sm_90) is busy"));
        let error = undecided.failure().expect("an error");
        assert_eq!(error.exit(), Exit::Outside);
        assert_eq!(
            error.to_string(),
            "the image was built but not verified: the host is busy: NVIDIA H200 (sm_90) is busy"
        );
        assert_eq!(error.hints(), ["when the GPU is free, run `envforge verify pytorch:1-unverified`"]);
        assert!(undecided.rejection().is_none(), "it can be used, as without a GPU");
        let required = Built { required_gpu: true, tags: Vec::new(), ..undecided };
        assert_eq!(required.failure().map(|error| error.exit()), Some(Exit::Outside));
    }

    #[test]
    fn every_field_is_documented() {
        let pushed =
            vec![Pushed { reference: "box.test/a:1".to_owned(), digest: Digest::of(b"x"), index: None }];
        let built = Built {
            pushed,
            attested: vec![String::new()],
            present: true,
            stands: true,
            ..built(r#""outcome":"passed""#, Some("nothing ran on a GPU"))
        };
        let documented = documented_fields("envforge build pytorch-cuda:2.8-cu128");
        assert_eq!(printed_fields(&built), documented);
        assert_eq!(printed_fields(&built.pushed[0]), ["digest", "reference"].map(str::to_owned).into());
    }

    #[test]
    fn failed_and_unproven_images_are_rejected() {
        let failed = built(r#""outcome":"failed""#, None);
        assert_eq!(failed.failure().map(|error| error.exit()), Some(Exit::No));
        let passed = || built(r#""outcome":"passed""#, Some("nothing ran on a GPU"));
        assert!(passed().failure().is_none());
        let required = Built { required_gpu: true, ..passed() };
        assert_eq!(required.rejection().map(|error| error.exit()), Some(Exit::No));
    }
}
