//! Addresses of wheels where no setting names an index: uv tells where its own default has them.
//!
//! They are kept in the state directory, never in a lock.

use std::collections::BTreeMap;

use camino::Utf8Path;

use super::error::PackagesError;
use super::failure::explain;
use super::inputs::uv_files;
use super::pylock::addresses;
use super::python_target::PythonTarget;
use super::request::ResolverContext;
use super::script_file::file;
use super::uv_run::{UvRun, run_uv};
use crate::model::address::Address;
use crate::model::lock::{Lock, LockedWheel};
use crate::store::Store;

const SCRIPT: &str = "/envforge/addresses.sh";

/// Addresses by SHA-256 of the wheel.
pub type WheelAddresses = BTreeMap<String, Address>;

/// Returns where uv finds these wheels of a lock: from the state directory, else from a run of uv. A wheel that the index no longer
/// offers for its version is not among them. `base_reference` is the lock's base in the engine.
pub async fn wheel_addresses(
    tools: &ResolverContext<'_>,
    lock: &Lock,
    base_reference: &str,
    uv: &Utf8Path,
    wheels: &[&LockedWheel],
) -> Result<WheelAddresses, PackagesError> {
    let mut known = WheelAddresses::new();
    let mut unknown = Vec::new();
    for wheel in wheels {
        match kept(tools.store, &wheel.sha256)? {
            Some(address) => drop(known.insert(wheel.sha256.clone(), address)),
            // A line of another shape could be an option of uv: a lock may come from anybody.
            None if is_plain(&wheel.name) && is_plain(&wheel.version) => unknown.push(*wheel),
            None => {}
        }
    }
    if unknown.is_empty() {
        return Ok(known);
    }
    let line = |wheel: &&LockedWheel| format!("{}=={}", wheel.name, wheel.version);
    let list = unknown.iter().map(line).collect::<Vec<_>>().join("\n");
    let resolver = tools.image.resolver().await?;
    let python =
        PythonTarget::of(tools.engine, base_reference, &lock.base, &lock.system, &lock.stack).await?;
    let mut files = uv_files(tools.settings, &python, uv.file_name().unwrap_or_default());
    files.push(file("addresses.sh", 0o644, include_str!("../../templates/packages/addresses.sh")));
    files.push(file("all.in", 0o644, list));
    // Which packages these are is the lock's choice; what the default index says of them holds for everybody.
    let outcome = run_uv(tools, &resolver, UvRun { script: SCRIPT, files, shares_cache: true }, uv).await?;
    if outcome.code != 0 {
        return Err(explain(outcome.code, &outcome.stderr, false));
    }
    known.extend(remember_addresses(tools.store, &String::from_utf8_lossy(&outcome.stdout))?);
    Ok(known)
}

/// Returns where these wheels are if the state directory has the address of each, as after a lock that was made here.
pub fn remembered_addresses(
    store: &Store,
    wheels: &[&LockedWheel],
) -> Result<Option<WheelAddresses>, PackagesError> {
    let mut known = WheelAddresses::new();
    for wheel in wheels {
        let Some(address) = kept(store, &wheel.sha256)? else { return Ok(None) };
        known.insert(wheel.sha256.clone(), address);
    }
    Ok(Some(known))
}

/// Keeps the addresses of a `pylock.toml` in the state directory, and returns them.
pub(super) fn remember_addresses(store: &Store, pylock: &str) -> Result<WheelAddresses, PackagesError> {
    let found = addresses(pylock)?;
    for (sha256, address) in &found {
        store.write_state(&record(sha256), address.expose().as_bytes())?;
    }
    Ok(found)
}

/// Whether a name or version is one word that is no option.
fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._+!".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(fits)
}

fn record(sha256: &str) -> String {
    format!("wheel-addresses/{sha256}")
}

/// A record that cannot be read as an address is none.
fn kept(store: &Store, sha256: &str) -> Result<Option<Address>, PackagesError> {
    let text = store.read_state(&record(sha256))?.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(text.and_then(|text| text.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn addresses_are_remembered_only_if_each_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let first = sample::lock().wheels.remove(0);
        let second = LockedWheel { sha256: "f".repeat(64), ..first.clone() };
        let pylock = format!(
            "[[packages]]\nname = 'torch'\nwheels = [{{ url = 'https://index.test/a.whl', hashes = {{ sha256 = '{}' }} }}]\n",
            first.sha256
        );
        let written = remember_addresses(&store, &pylock).expect("written");
        assert_eq!(written.len(), 1);
        assert_eq!(remembered_addresses(&store, &[&first]).expect("read"), Some(written));
        assert_eq!(remembered_addresses(&store, &[&first, &second]).expect("read"), None);
        assert_eq!(remembered_addresses(&store, &[]).expect("read"), Some(WheelAddresses::new()));
    }

    #[test]
    fn options_and_addresses_are_no_names() {
        for plain in ["torch", "nvidia-nccl-cu12", "2.8.0+cu128", "1!2.0"] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in ["", "--index-url=x", "a b", "a@b", "a\nb", "https://a"] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
