//! The owner process of a temporary object, by which the next run finds the orphans of a killed envforge.
//!
//! Names and labels contain the owner as `PID-START-PLACE-BOOT`: START is the start time of the process (the system reuses
//! process ids), PLACE is this machine by id and host name, and its pid namespace, BOOT is this boot.
#![expect(clippy::disallowed_methods, reason = "edge: reads /proc")]

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use crate::model::sha256::sha256_hex;

/// The owner process of temporary objects.
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
    let namespace = namespace.display().to_string();
    let place = place_of(&read("/etc/machine-id"), &read("/proc/sys/kernel/hostname"), &namespace);
    Owner {
        pid,
        start: start_of(pid).unwrap_or_default(),
        place,
        boot: short(&read("/proc/sys/kernel/random/boot_id")),
    }
});

impl Owner {
    /// Returns this process.
    pub(crate) fn this() -> &'static Self {
        &THIS
    }

    /// Returns whether the process has certainly ended. The processes of another machine or pid namespace are unknown.
    pub(crate) fn is_gone(&self) -> bool {
        let this = Self::this();
        self.place == this.place && (self.boot != this.boot || start_of(self.pid) != Some(self.start))
    }
}

/// Returns what tells a machine and pid namespace from others. Clones of a virtual machine have one machine id, containers often
/// none, and the first namespace has the same number everywhere: the host name tells those apart.
fn place_of(machine: &str, host: &str, namespace: &str) -> String {
    short(&format!("{machine}{host}{namespace}"))
}

/// Returns a unique name: the owner and 16 random hex digits.
pub(crate) fn unique_name() -> String {
    format!("{}-{:016x}", Owner::this(), rand::random::<u64>())
}

/// Parses the owner of a name by [`unique_name`] with any prefix: `.envforge-…`, `envforge-run-…`, `envforge-scratch:…`.
pub(crate) fn owner_of(name: &str) -> Option<Owner> {
    let parts: Vec<_> = name.rsplitn(6, ['-', ':']).collect();
    let [_random, boot, place, start, pid, ..] = parts.as_slice() else { return None };
    format!("{pid}-{start}-{place}-{boot}").parse().ok()
}

fn short(text: &str) -> String {
    sha256_hex(text.as_bytes())[..8].to_owned()
}

/// Returns the start time of a process; `None` if it has ended, including as a zombie.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain any character.
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
pub(crate) mod tests {
    use super::*;

    /// Returns a name by [`unique_name`] of a process that has ended.
    pub(crate) fn name_of_an_ended_process() -> String {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let start = start_of(child.id()).expect("it runs");
        let owner = Owner { pid: child.id(), start, ..Owner::this().clone() };
        child.kill().expect("a child of this process");
        child.wait().expect("a child of this process");
        format!("{owner}-0011223344556677")
    }

    /// Returns a name by [`unique_name`] of a process on another machine.
    pub(crate) fn name_of_another_host() -> String {
        let owner = Owner { place: "00000000".to_owned(), start: 1, ..Owner::this().clone() };
        format!("{owner}-0011223344556677")
    }

    #[test]
    fn owner_of_parses_a_name_with_any_prefix() {
        for prefix in ["", ".envforge-", "envforge-run-", "envforge-scratch:", "localhost/envforge-scratch:"]
        {
            let name = format!("{prefix}{}", unique_name());
            assert_eq!(owner_of(&name).as_ref(), Some(Owner::this()), "{name}");
        }
        for other in ["envforge-Xyz123", "envforge-run-0011223344556677", "", "a-b-c-d-e-f"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }

    #[test]
    fn owner_is_gone_when_its_process_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let owner =
            Owner { pid: child.id(), start: start_of(child.id()).expect("it runs"), ..Owner::this().clone() };
        assert!(!owner.is_gone());
        assert!(Owner { start: owner.start + 1, ..owner.clone() }.is_gone(), "its process id was reused");
        child.kill().expect("a child of this process");
        child.wait().expect("a child of this process");
        assert!(owner.is_gone());
        assert!(owner_of(&name_of_an_ended_process()).is_some_and(|owner| owner.is_gone()));
        assert!(owner_of(&unique_name()).is_some_and(|owner| !owner.is_gone()), "this process runs");
    }

    #[test]
    fn hosts_with_the_same_machine_id_are_told_apart_by_name() {
        let place = |machine: &str, host: &str| place_of(machine, host, "pid:[4026531836]");
        assert_eq!(place("7\n", "one\n"), place("7\n", "one\n"));
        for (machine, host) in [("7\n", "two\n"), ("8\n", "one\n"), ("", "one\n")] {
            assert_ne!(place("7\n", "one\n"), place(machine, host));
        }
        let name = fs_err::read_to_string("/proc/sys/kernel/hostname").expect("Linux");
        let id = fs_err::read_to_string("/etc/machine-id").unwrap_or_default();
        let namespace = fs_err::read_link("/proc/self/ns/pid").expect("Linux");
        let clone = place_of(&id, &format!("other-{name}"), &namespace.display().to_string());
        // It booted at another time, and its processes are not here.
        let owner = Owner { place: clone, boot: "00000000".into(), ..Owner::this().clone() };
        assert!(!owner.is_gone());
    }

    #[test]
    fn owner_of_another_host_is_never_gone() {
        assert!(owner_of(&name_of_another_host()).is_some_and(|owner| !owner.is_gone()));
    }

    #[test]
    fn owner_of_an_earlier_boot_is_gone() {
        assert!(Owner { boot: "00000000".into(), ..Owner::this().clone() }.is_gone());
    }
}
