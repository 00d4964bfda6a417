//! Which paths a canonical archive drops, empties or rewrites, and which a layer has nothing of.

/// The time of every file (1980-01-02) as days since 1970, for `/etc/shadow`.
const TIME_DAYS: &str = "3653";

/// Files that an engine mounts its own over. What it leaves there is its own, too: each is an empty file.
pub(crate) const MOUNTED_OVER: [&[u8]; 3] = [b"etc/hostname", b"etc/hosts", b"etc/resolv.conf"];

/// Treatment of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Keep,
    Drop,
    /// A file that is kept without its content.
    Empty,
}

/// Returns the treatment of a path of a newly installed system: traces of the installation are dropped.
pub(crate) fn fate(path: &[u8]) -> Fate {
    const DROPPED_BELOW: [&[u8]; 12] = [
        b"proc/",
        b"sys/",
        b"dev/",
        b"run/",
        b"tmp/",
        b"var/tmp/",
        b"root/.cache/",
        b"var/log/apt/",
        b"var/lib/apt/lists/",
        b"var/cache/apt/",
        b"var/cache/ldconfig/",
        b"var/cache/man/",
    ];
    // `sh.distrib`: dash's script finds the shell that it has just removed where fuse-overlayfs shows it again, and keeps it so.
    const DROPPED: [&[u8]; 16] = [
        b"usr/bin/sh.distrib",
        b".dockerenv",
        b"run/.containerenv",
        b"etc/mtab",
        b"etc/.pwd.lock",
        b"etc/passwd-",
        b"etc/group-",
        b"etc/shadow-",
        b"etc/gshadow-",
        b"etc/subuid-",
        b"etc/subgid-",
        b"var/lib/dbus/machine-id",
        b"var/lib/dpkg/lock",
        b"var/lib/dpkg/lock-frontend",
        b"var/lib/dpkg/triggers/Lock",
        b"root/.wget-hsts",
    ];
    const EMPTIED: [&[u8]; 5] =
        [b"etc/machine-id", b"var/log/btmp", b"var/log/faillog", b"var/log/lastlog", b"var/log/wtmp"];
    let old = |folder: &[u8]| path.starts_with(folder) && path.ends_with(b"-old");
    if EMPTIED.contains(&path) {
        return Fate::Empty;
    }
    let dropped = DROPPED.contains(&path)
        || DROPPED_BELOW.iter().any(|folder| path.starts_with(folder))
        || old(b"var/cache/debconf/")
        || old(b"var/lib/dpkg/")
        || (path.starts_with(b"var/log/") && path.ends_with(b".log"));
    if dropped { Fate::Drop } else { Fate::Keep }
}

/// Whether an engine puts a path into each container: what it leaves of it in a layer differs from engine to engine.
pub(crate) fn is_of_the_engine(path: &[u8]) -> bool {
    const PATHS: [&[u8]; 3] = [b".dockerenv", b"run/.containerenv", b"etc/mtab"];
    // The last two are where steps find their files and secrets.
    const WHOLE: [&[u8]; 5] = [b"proc", b"sys", b"dev", b"run/envforge", b"run/secrets"];
    let is_below = |folder: &[u8]| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    PATHS.contains(&path) || MOUNTED_OVER.contains(&path) || WHOLE.iter().any(|folder| is_below(folder))
}

/// Replaces the day of each password change, which is the day of the bootstrap, by one fixed day.
pub(crate) fn shadow_without_day(text: &str) -> String {
    let line = |line: &str| {
        let mut fields: Vec<&str> = line.split(':').collect();
        if let Some(day) = fields.get_mut(2).filter(|day| !day.is_empty()) {
            *day = TIME_DAYS;
        }
        fields.join(":") + "\n"
    };
    text.lines().map(line).collect()
}
