//! The in-image agent, as this program embeds it. Its source is `kernels/agent/`; build.rs compiles it.

/// The agent's program.
pub static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent"));

/// SHA-256 of the agent, hex: a record of the lock.
pub fn sha256() -> String {
    crate::sha256::sha256_hex(AGENT)
}

/// The agent's own source, so that its tests and lints run with the program's.
#[cfg(test)]
#[expect(
    dead_code,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::format_push_string,
    reason = "a program of its own: it reads the image and prints its report"
)]
#[path = "../kernels/agent/main.rs"]
mod source;

#[cfg(test)]
mod tests {
    use super::AGENT;

    #[test]
    fn it_is_a_program_under_one_megabyte() {
        assert!(AGENT.starts_with(b"\x7fELF") && AGENT.len() < 1_000_000, "{} bytes", AGENT.len());
    }
}
