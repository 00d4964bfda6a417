//! Who made a temporary thing, and whether that process is gone: what a killed envforge leaves is found by it.
//!
//! An owner is written into names and labels: `PID-START-PLACE-BOOT`, of which START is when the process began (a number
//! the system may give out twice is not enough), PLACE is this machine and pid namespace, BOOT is this boot.
#![expect(clippy::disallowed_methods, reason = "edge: reads /proc")]

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::sha256::sha256_hex;

/// A process that makes temporary things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    /// Clock ticks after boot.
    start: u64,
    place: String,
    boot: String,
}

static THIS: LazyLock<Owner> = LazyLock::new(|| {
    let pid = std::process::id();
    let read = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let namespace = fs_err::read_link("/proc/self/ns/pid").unwrap_or_default();
    let place = format!("{}{}", read("/etc/machine-id"), namespace.display());
    Owner {
        pid,
        start: start_of(pid).unwrap_or_default(),
        place: short(&place),
        boot: short(&read("/proc/sys/kernel/random/boot_id")),
    }
});

impl Owner {
    /// This process.
    pub(crate) fn this() -> &'static Self {
        &THIS
    }

    /// True only if it is certain that the process has ended. What runs on another machine or in another pid namespace
    /// cannot be known from here.
    pub(crate) fn is_gone(&self) -> bool {
        let this = Self::this();
        self.place == this.place && (self.boot != this.boot || start_of(self.pid) != Some(self.start))
    }
}

/// A name of this process's own that nobody else has: the owner and 16 random hex digits.
pub(crate) fn own_name() -> String {
    format!("{}-{:016x}", Owner::this(), rand::random::<u64>())
}

/// The owner of a thing named by [`own_name`], whatever stands before it: `.envforge-…`, `envforge-run-…`.
pub(crate) fn owner_of(name: &str) -> Option<Owner> {
    let parts: Vec<_> = name.rsplitn(6, '-').collect();
    let [_random, boot, place, start, pid, ..] = parts.as_slice() else { return None };
    format!("{pid}-{start}-{place}-{boot}").parse().ok()
}

fn short(text: &str) -> String {
    sha256_hex(text.as_bytes())[..8].to_owned()
}

/// When the process of that id began; none if there is none, or only its remains wait to be collected.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (state != "Z").then(|| fields.nth(18)?.parse().ok()).flatten()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.pid, self.start, self.place, self.boot)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<_> = text.split('-').collect();
        let [pid, start, place, boot] = parts.as_slice() else { return Err(()) };
        let hash = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hash(place) || !hash(boot) {
            return Err(());
        }
        let number = |text: &str| text.parse::<u64>().map_err(drop);
        Ok(Self {
            pid: u32::try_from(number(pid)?).map_err(drop)?,
            start: number(start)?,
            place: (*place).to_owned(),
            boot: (*boot).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_owner() {
        let name = format!("envforge-run-{}", own_name());
        assert_eq!(owner_of(&name).as_ref(), Some(Owner::this()));
        assert!(!Owner::this().is_gone(), "this process runs");
        for other in ["envforge-Xyz123", "envforge-run-0011223344556677", "", "a-b-c-d-e-f"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_that_ended_is_gone_and_a_later_one_of_its_number_is_another() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let owner =
            Owner { pid: child.id(), start: start_of(child.id()).expect("it runs"), ..Owner::this().clone() };
        assert!(!owner.is_gone());
        assert!(
            Owner { start: owner.start + 1, ..owner.clone() }.is_gone(),
            "its number was given out again"
        );
        child.kill().expect("a child of ours");
        child.wait().expect("a child of ours");
        assert!(owner.is_gone());
    }

    #[test]
    fn what_another_machine_made_is_never_judged_and_an_earlier_boot_is_over() {
        let this = Owner::this().clone();
        assert!(!Owner { place: "00000000".into(), start: 1, ..this.clone() }.is_gone());
        assert!(Owner { boot: "00000000".into(), ..this }.is_gone());
    }
}
