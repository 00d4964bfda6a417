//! A value with its position in the file.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// A value with its byte range in the file. Two are equal if their values are.
#[derive(Debug, Clone)]
pub struct SpannedValue<T>(Spanned<T>);

impl<T> SpannedValue<T> {
    /// Returns its byte range.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }
    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> Deref for SpannedValue<T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: PartialEq> PartialEq for SpannedValue<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for SpannedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for SpannedValue<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
