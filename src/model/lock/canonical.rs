//! The canonical form of a lock, which its hash is taken of (schemas 2 and 3).
//!
//! The hash of a lock is the SHA-256, in lower-case hex, of its canonical JSON. To compute it with other tools:
//!
//! 1. Read the lock file as TOML and turn it into JSON.
//! 2. Remove `records`, `base.content`, `base.image`, `wheels[].index-name`, and of `stack`: `name`, `glibc`, `status`, `experimental`,
//!    `local`, `licence`, `requires`, `shared`, `matrix`, `reasons`, `forward_compat.source`, `source_build.job_memory_gb`, `source_build.time` and
//!    `source_build.experimental`.
//! 3. Remove every member whose value is null, an empty array or an empty object, from the inside out.
//! 4. Write it without white space, the members of each object sorted by the UTF-8 bytes of their names, numbers as
//!    integers, text as UTF-8. In text only `"`, `\` and the characters below U+0020 are escaped: `\b`, `\t`, `\n`, `\f`,
//!    `\r`, the others as `\u00` and two lower-case hex digits.
//!
//! Test vector: `tests/fixtures/lock/vector.lock` has the canonical form and the hash of `tests/fixtures/lock/vector.json`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::added::UserAdditions;
use super::choice::StackChoice;
use super::types::{
    BaseProvider, IndexKind, Lock, LockedBase, LockedDeb, LockedSource, LockedTool, LockedWheel, WheelLayer,
};

#[derive(Serialize)]
struct HashedLock<'a> {
    schema: u32,
    spec: &'a str,
    added: &'a UserAdditions,
    stack: StackChoice<'a>,
    base: HashedBase<'a>,
    tools: &'a [LockedTool],
    system: &'a [LockedDeb],
    unpacked: &'a [LockedDeb],
    apt: &'a [LockedDeb],
    wheels: Vec<HashedWheel<'a>>,
    sources: &'a [LockedSource],
    environment: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct HashedBase<'a> {
    provider: BaseProvider,
    name: &'a str,
    suite: &'a str,
    digest: Option<&'a str>,
    cuda: Option<bool>,
    packages: &'a [LockedDeb],
}

#[derive(Serialize)]
struct HashedWheel<'a> {
    name: &'a str,
    version: &'a str,
    file: &'a str,
    sha256: &'a str,
    size: Option<u64>,
    index: IndexKind,
    layer: WheelLayer,
}

impl<'a> HashedLock<'a> {
    fn of(lock: &'a Lock) -> Self {
        let Lock {
            schema,
            spec,
            added,
            stack,
            base,
            tools,
            system,
            unpacked,
            apt,
            wheels,
            sources,
            environment,
            records: _,
        } = lock;
        Self {
            schema: *schema,
            spec,
            added,
            stack: StackChoice::of(stack),
            base: HashedBase::of(base),
            tools,
            system,
            unpacked,
            apt,
            wheels: wheels.iter().map(HashedWheel::of).collect(),
            sources,
            environment,
        }
    }
}

impl<'a> HashedBase<'a> {
    fn of(base: &'a LockedBase) -> Self {
        // The packages decide; the content digest records what they came to.
        let LockedBase { provider, name, suite, digest, content: _, image: _, cuda, packages } = base;
        Self {
            provider: *provider,
            name,
            suite,
            digest: digest.as_deref(),
            cuda: cuda.then_some(true),
            packages,
        }
    }
}

impl<'a> HashedWheel<'a> {
    fn of(wheel: &'a LockedWheel) -> Self {
        let LockedWheel { name, version, file, sha256, size, index, index_name: _, layer } = wheel;
        Self { name, version, file, sha256, size: *size, index: *index, layer: *layer }
    }
}

/// The canonical JSON of a lock's hashed part.
pub(super) fn canonical_json(lock: &Lock) -> String {
    let value = serde_json::to_value(HashedLock::of(lock)).expect("every value of a lock has a JSON form");
    let mut text = String::new();
    write(&value, &mut text);
    text
}

/// Whether a value counts as absent.
fn is_absent(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_absent),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> = members.iter().filter(|(_, value)| !is_absent(value)).collect();
            text.push('{');
            for (number, (name, value)) in members.into_iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write_scalar(&Value::from(name.as_str()), text);
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        scalar => write_scalar(scalar, text),
    }
}

/// Writes a text, a truth value or an integer; `serde_json` escapes no more than it must.
fn write_scalar(value: &Value, text: &mut String) {
    debug_assert!(!value.is_f64(), "a lock holds no fractions");
    text.push_str(&value.to_string());
}
