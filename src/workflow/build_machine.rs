//! The machine that compiles.
#![expect(clippy::disallowed_methods, reason = "looks at this machine")]

use crate::model::resolve::BuildMachine;
use crate::workflow::session::Session;

/// The machine that compiles: what another machine's engine has is not known.
pub(crate) fn build_machine(session: &Session<'_>) -> BuildMachine {
    if session.engine.info().local { this_machine() } else { BuildMachine::default() }
}

/// This machine's processors and memory, as far as it says.
pub(crate) fn this_machine() -> BuildMachine {
    let cores = std::thread::available_parallelism().ok().and_then(|count| u64::try_from(count.get()).ok());
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_gb(&text));
    BuildMachine { cores, memory_gb: memory }
}

/// `MemTotal` of /proc/meminfo in GB, rounded.
fn total_gb(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1024 + 500_000_000) / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::total_gb;

    #[test]
    fn memory_is_read_in_gb() {
        assert_eq!(total_gb("MemTotal:       65536000 kB\nMemFree: 1 kB\n"), Some(67));
        assert_eq!(total_gb("MemFree: 1 kB\n"), None);
    }
}
