//! Serializes the protocol's enums by their stable names.

use std::borrow::Cow;

use envforge_protocol::{Outcome, SkipReason};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// An outcome, which must be known.
pub(super) mod outcome {
    use super::{Cow, Deserialize as _, Deserializer, Outcome, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(in super::super) fn serialize<S: Serializer>(value: &Outcome, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.as_str())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
        use super::Error as _;
        let name = Cow::<str>::deserialize(from)?;
        Outcome::parse(&name).ok_or_else(|| D::Error::custom(format_args!("unknown outcome `{name}`")))
    }
}

/// A reason to skip; an unknown one counts as none, so that it allows nothing.
pub(super) mod skip {
    use super::{Cow, Deserialize as _, Deserializer, Serializer, SkipReason};

    #[expect(
        clippy::ref_option,
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(in super::super) fn serialize<S: Serializer>(
        value: &Option<SkipReason>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(reason) => to.serialize_str(reason.as_str()),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SkipReason>, D::Error> {
        let name = Option::<Cow<str>>::deserialize(from)?;
        Ok(name.and_then(|name| SkipReason::parse(&name)))
    }
}
