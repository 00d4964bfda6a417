//! Which package indexes this machine has seen: a mirror that serves an older one than before is replaying it.
//!
//! Owns the comparison. Mirrors differ in age, so each has a record of its own; locked packages read no index at all.

use jiff::Timestamp;

use crate::model::address::Address;
use crate::store::{Store, StoreError, newest_index, remember_index};

/// An index that was read, with a valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenIndex {
    /// `mirror.test/debian`: without scheme and login.
    mirror: String,
    /// `bookworm-updates`.
    suite: String,
    /// Its `Date`.
    date: Timestamp,
}

/// A mirror's index is older than one it served before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "outdated index of `{suite}` at `{mirror}`: dated {date}, but an index of {newest} was seen there before"
)]
pub struct OlderIndex {
    /// The mirror.
    pub mirror: String,
    /// The suite.
    pub suite: String,
    /// The date of the index.
    pub date: Timestamp,
    /// The date of the newest one.
    pub newest: Timestamp,
}

impl OlderIndex {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        "use another mirror or try again later (this one is behind, or replays an old index); to accept the older index pass \
         `--accept-older`"
            .to_owned()
    }
}

impl SeenIndex {
    /// The index of a suite below the root of a mirror.
    pub(crate) fn of(mirror: &Address, suite: &str, date: Timestamp) -> Self {
        let url = mirror.url();
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let path = url.path().trim_end_matches('/');
        let mirror = format!("{}{port}{path}", url.host_str().unwrap_or_default());
        Self { mirror, suite: suite.to_owned(), date }
    }

    /// The index that apt keeps under this name: `mirror.test_debian_dists_bookworm_InRelease`.
    pub(crate) fn of_apt(file: &str, date: Timestamp) -> Option<Self> {
        let name = file.strip_suffix("_InRelease").or_else(|| file.strip_suffix("_Release"))?;
        // A flat repository has no suites.
        let (mirror, suite) = name.rsplit_once("_dists_").unwrap_or((name, "/"));
        Some(Self { mirror: unescaped(mirror), suite: unescaped(suite), date })
    }

    fn name(&self) -> String {
        format!("{} {}", self.mirror, self.suite)
    }

    /// Fails if a newer index of the suite was seen on this mirror, unless that is accepted; else records this one.
    pub(crate) fn check<E: From<OlderIndex> + From<StoreError>>(
        &self,
        store: &Store,
        accept_older: bool,
    ) -> Result<(), E> {
        let name = self.name();
        match newest_index(store, &name)? {
            Some(newest) if newest > self.date => {
                tracing::debug!(index = %name, date = %self.date, %newest, accept_older, "older index");
                if accept_older {
                    return Ok(());
                }
                let Self { mirror, suite, date } = self.clone();
                Err(OlderIndex { mirror, suite, date, newest }.into())
            }
            Some(newest) if newest == self.date => Ok(()),
            _ => Ok(remember_index(store, &name, self.date)?),
        }
    }
}

/// Undoes apt's way to write an address as a file name: `_` for `/`, and `%5f` for `_`.
fn unescaped(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        shown.push_str(&rest[..at].replace('_', "/"));
        let code = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let character = code.filter(u8::is_ascii).map(char::from);
        shown.push(character.unwrap_or('%'));
        rest = &rest[at + if character.is_some() { 3 } else { 1 }..];
    }
    shown + &rest.replace('_', "/")
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;
    use crate::base::BaseError;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn index(mirror: &str, suite: &str, date: &str) -> SeenIndex {
        SeenIndex::of(&mirror.parse().expect("an address"), suite, at(date))
    }

    fn store(folder: &tempfile::TempDir) -> Store {
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        Store::open(&root.join("cache"), &root.join("state")).expect("a store")
    }

    #[test]
    fn older_index_of_the_same_mirror_and_suite_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(&folder);
        let check = |index: &SeenIndex, accept| index.check::<BaseError>(&store, accept);
        let (new, old) = ("2026-11-20T06:00:00Z", "2026-11-20T00:00:00Z");
        let mirror = "http://mirror.test/debian";
        check(&index(mirror, "bookworm", new), false).expect("the first");
        check(&index(mirror, "bookworm", new), false).expect("the same again");
        let error =
            check(&index("https://me:pw@mirror.test/debian/", "bookworm", old), false).expect_err("older");
        let BaseError::Older(error) = error else { panic!("{error}") };
        for part in ["`bookworm`", "`mirror.test/debian`", new, old] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(error.hint().contains("--accept-older"), "{}", error.hint());
        check(&index(mirror, "bookworm-updates", old), false).expect("another suite");
        check(&index("http://lags.test/debian", "bookworm", old), false).expect("another mirror");
        check(&index(mirror, "bookworm", old), true).expect("accepted");
        check(&index(mirror, "bookworm", old), false).expect_err("accepted once, not for ever");
        check(&index(mirror, "bookworm", "2026-11-21T00:00:00Z"), false).expect("newer");
        check(&index(mirror, "bookworm", new), false).expect_err("older than the newest");
    }

    #[test]
    fn names_of_apt_are_the_same_mirrors() {
        let date = "2026-11-20T06:00:00Z";
        let of_apt = |file| SeenIndex::of_apt(file, at(date)).expect("an index");
        let cases = [
            ("mirror.test:81_debian_dists_bookworm_InRelease", "http://mirror.test:81/debian/", "bookworm"),
            ("m.test_a%5fb%7e_dists_bookworm-security_Release", "http://m.test/a_b~", "bookworm-security"),
            ("m.test_debian_dists_bookworm_updates_InRelease", "http://m.test/debian", "bookworm/updates"),
            ("m.test_cuda_debian12_x86%5f64_InRelease", "http://m.test/cuda/debian12/x86_64", "/"),
        ];
        for (file, mirror, suite) in cases {
            assert_eq!(of_apt(file), index(mirror, suite, date));
        }
        assert_eq!(SeenIndex::of_apt("m.test_debian_dists_bookworm_main_Packages", at(date)), None);
        assert_eq!(of_apt("100%_é%zz_Release").mirror, "100%/é%zz");
    }
}
