//! The hash of a lock as schema 1 had it: SHA-256 of JSON whose members have the order that the types had then.
//!
//! Frozen: labels of images and names of files carry these hashes. Fields that schema 1 did not have are left out.

use std::collections::BTreeMap;

use serde_json::Value;

use super::types::{Lock, LockMetadata};
use crate::model::sha256::sha256_hex;

/// The members of a table in their order, and those that are tables or lists of tables themselves.
struct Shape(&'static str, &'static [(&'static str, &'static Shape)]);

const DEB: Shape = Shape("name version architecture sha256 size path", &[]);
const WHEEL: Shape = Shape("name version file sha256 size index layer", &[]);
const TOOL: Shape = Shape("name version file sha256", &[]);
const SOURCE: Shape = Shape("name version file sha256 size build", &[("build", &TOOL)]);
const BASE: Shape = Shape("provider name suite digest content cuda packages", &[("packages", &DEB)]);
const ALLOWED_SOURCE: Shape = Shape("name build", &[]);
const COPY: Shape = Shape("from to folder sha256", &[]);
const RUN: Shape = Shape("command secrets", &[]);
const CHECK: Shape = Shape("name command", &[]);
const ADDED: Shape = Shape(
    "project python apt allow-source indexes variables copy run checks may-lack",
    &[("allow-source", &ALLOWED_SOURCE), ("copy", &COPY), ("run", &RUN), ("checks", &CHECK)],
);
const REQUIRES: Shape = Shape("driver driver_native gpu ptx", &[]);
const FORWARD_COMPAT: Shape = Shape("package source", &[]);
const REPOSITORY: Shape = Shape("path key fingerprint", &[]);
const NVCC: Shape = Shape("source packages component gcc repository", &[("repository", &REPOSITORY)]);
const SOURCE_BUILD: Shape =
    Shape("archive sha256 patches arch job_memory_gb time experimental nvcc parts", &[("nvcc", &NVCC)]);
const GPU: Shape = Shape("name compute_capability", &[]);
const TARGET: Shape = Shape("source driver gpus machine", &[("gpus", &GPU)]);
const STACK: Shape = Shape(
    "name product framework package version cuda toolkit cudnn nccl triton companions python glibc flavour machine channel \
     status experimental base suite requires forward_compat install parts nvcc source_build numpy target matrix reasons",
    &[
        ("requires", &REQUIRES),
        ("forward_compat", &FORWARD_COMPAT),
        ("nvcc", &NVCC),
        ("source_build", &SOURCE_BUILD),
        ("target", &TARGET),
    ],
);
const RECORDS: Shape = Shape("created envforge matrix", &[]);
const LOCK: Shape = Shape(
    "schema spec added stack base tools system unpacked apt wheels sources environment records",
    &[
        ("added", &ADDED),
        ("stack", &STACK),
        ("base", &BASE),
        ("tools", &TOOL),
        ("system", &DEB),
        ("unpacked", &DEB),
        ("apt", &DEB),
        ("wheels", &WHEEL),
        ("sources", &SOURCE),
        ("records", &RECORDS),
    ],
);

/// The hash of schema 1; `None` for a lock that schema 1 could not express.
pub(super) fn schema_1_hash(lock: &Lock) -> Option<String> {
    if lock.added.as_of.is_some() {
        return None;
    }
    let mut decisive = Lock { schema: 1, records: LockMetadata::default(), ..lock.clone() };
    decisive.base.content = None;
    decisive.stack.matrix.clear();
    decisive.stack.reasons.clear();
    let value = serde_json::to_value(&decisive).expect("every value of a lock has a JSON form");
    let mut text = String::new();
    write(&value, Some(&LOCK), &mut text);
    Some(sha256_hex(text.as_bytes()))
}

/// Writes a value in the order of its shape; what has none is a map, whose order is that of its keys.
fn write(value: &Value, shape: Option<&Shape>, text: &mut String) {
    match (value, shape) {
        (Value::Object(members), Some(Shape(names, nested))) => {
            let shape = |name: &str| nested.iter().find(|(key, _)| *key == name).map(|(_, shape)| *shape);
            let members =
                names.split_whitespace().filter_map(|name| Some((name, members.get(name)?, shape(name))));
            write_object(members, text);
        }
        (Value::Object(members), None) => {
            let members: BTreeMap<_, _> = members.iter().collect();
            write_object(members.into_iter().map(|(name, value)| (name.as_str(), value, None)), text);
        }
        (Value::Array(items), shape) => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push(',');
                }
                write(item, shape, text);
            }
            text.push(']');
        }
        (scalar, _) => text.push_str(&scalar.to_string()),
    }
}

fn write_object<'a>(
    members: impl Iterator<Item = (&'a str, &'a Value, Option<&'static Shape>)>,
    text: &mut String,
) {
    text.push('{');
    for (number, (name, value, shape)) in members.enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        write(value, shape, text);
    }
    text.push('}');
}
