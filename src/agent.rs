//! The embedded in-image agent. Its source is `kernels/agent/`; build.rs compiles it.

use crate::model::versions::GlibcVersion;

/// The agent's executable.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// Returns the glibc version that the agent requires: the highest among its symbols.
pub fn needed_glibc() -> Option<GlibcVersion> {
    highest_glibc(AGENT)
}

fn highest_glibc(program: &[u8]) -> Option<GlibcVersion> {
    const MARK: &[u8] = b"GLIBC_";
    let version = |at: usize| {
        let rest = &program[at + MARK.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.')?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    };
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    marks.filter_map(|(at, _)| version(at)).max()
}

/// Returns the SHA-256 of the agent, in hex, for the lock.
pub fn sha256() -> String {
    crate::model::sha256::sha256_hex(AGENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_is_an_elf_file_of_at_most_1_5_megabytes() {
        let needed = needed_glibc().expect("it is linked with the C library");
        assert!(needed.to_string().starts_with("2."), "{needed}");
        assert!(AGENT.starts_with(b"\x7fELF") && AGENT.len() <= 1_500_000, "{} bytes", AGENT.len());
    }

    #[test]
    fn highest_glibc_compares_versions_by_number() {
        let program = b"\0GLIBC_2.4\0GLIBC_2.17\0GLIBC_2.9.1\0GLIBC_PRIVATE\0GLIBC_2";
        assert_eq!(highest_glibc(program).expect("one").to_string(), "2.17");
        assert_eq!(highest_glibc(b"static"), None);
    }
}
