//! The in-image agent, as this program embeds it. Its source is `kernels/agent/`; build.rs compiles it.

use crate::versions::GlibcVersion;

/// The agent's program.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// The C library an image must have for the agent to start in it: the highest version its symbols name.
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

/// SHA-256 of the agent, hex: a record of the lock.
pub fn sha256() -> String {
    crate::sha256::sha256_hex(AGENT)
}

/// The agent's own source, so that its tests and lints run with the program's.
#[cfg(test)]
#[expect(
    dead_code,
    unsafe_code,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a program of its own: it reads the image, calls its libraries and prints its report"
)]
#[path = "../kernels/agent/main.rs"]
mod source;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_program_under_one_megabyte() {
        let needed = needed_glibc().expect("it is linked with the C library");
        assert!(needed.to_string().starts_with("2."), "{needed}");
        assert!(AGENT.starts_with(b"\x7fELF") && AGENT.len() < 1_000_000, "{} bytes", AGENT.len());
    }

    #[test]
    fn the_highest_version_of_its_symbols_counts_by_number() {
        let program = b"\0GLIBC_2.4\0GLIBC_2.17\0GLIBC_2.9.1\0GLIBC_PRIVATE\0GLIBC_2";
        assert_eq!(highest_glibc(program).expect("one").to_string(), "2.17");
        assert_eq!(highest_glibc(b"static"), None);
    }
}
