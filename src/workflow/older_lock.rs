//! What the image of a lock of an earlier release lacks: it stays as it is until `lock` adds it.

use crate::model::lock::{Difference, Lock, SCHEMA};
use crate::model::stack::Stack;
use crate::packages::catalogue;

/// How the image of a lock differs from the one that a new lock gives. None unless the lock is renewed, as `lock` does: a build takes
/// locks of earlier releases as they are.
pub(crate) fn image_differences(lock: &Lock, stack: &Stack, renews: bool) -> Vec<Difference> {
    if !renews || lock.schema >= SCHEMA {
        return Vec::new();
    }
    let one = |what: &str, wanted: &str| Difference {
        what: what.to_owned(),
        locked: None,
        wanted: Some(wanted.to_owned()),
    };
    let packages = missing_packages(lock, stack).into_iter().map(|name| one("distribution package", name));
    packages.chain([one("PATH of login shells", "that of the image")]).collect()
}

/// What a new lock adds to the image, in one phrase; `None`: nothing.
pub(crate) fn additions(lock: &Lock, stack: &Stack) -> Option<String> {
    if lock.schema >= SCHEMA {
        return None;
    }
    let login = "the image's PATH in login shells";
    let packages = missing_packages(lock, stack);
    Some(if packages.is_empty() {
        login.to_owned()
    } else {
        format!("{} for InfiniBand and RoCE, and {login}", packages.join(", "))
    })
}

/// Packages of the stack that the lock has not.
fn missing_packages<'a>(lock: &Lock, stack: &'a Stack) -> Vec<&'a str> {
    let has = |name: &str| lock.base.packages.iter().chain(lock.debs()).any(|deb| deb.name == name);
    catalogue().replaceable(stack).map(|(name, _)| name).filter(|name| !has(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn older_lock_says_what_a_new_one_adds() {
        let old = Lock { schema: 2, ..sample::lock() };
        let said = |lock: &Lock| additions(lock, &lock.stack);
        assert_eq!(
            said(&old).as_deref(),
            Some(
                "libibverbs1, ibverbs-providers, librdmacm1 for InfiniBand and RoCE, and the image's PATH in login shells"
            )
        );
        let mut other = old.clone();
        other.stack.nccl = None;
        assert_eq!(said(&other).as_deref(), Some("the image's PATH in login shells"));
        other = old.clone();
        other.apt.push(sample::deb("libibverbs1", "44.0-2"));
        assert!(said(&other).expect("more").starts_with("ibverbs-providers, "), "{other:?}");
        assert_eq!(said(&sample::lock()), None);
    }

    #[test]
    fn only_lock_renews_an_older_lock() {
        let old = Lock { schema: 2, ..sample::lock() };
        assert_eq!(image_differences(&old, &old.stack, false), [], "a build takes it as it is");
        let found: Vec<_> =
            image_differences(&old, &old.stack, true).iter().map(ToString::to_string).collect();
        assert_eq!(found[0], "distribution package: requested `libibverbs1`, not locked");
        assert_eq!(found[3], "PATH of login shells: requested `that of the image`, not locked");
        let new = sample::lock();
        assert_eq!(image_differences(&new, &new.stack, true), []);
    }
}
