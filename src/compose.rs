//! A lock's image as a Compose project: built from the exported Dockerfile, opened as the project says.
//!
//! Pure. YAML takes JSON's words, so every value is written as one.

use std::fmt::Write as _;

use crate::lock::Lock;
use crate::plan::UNVERIFIED;
use crate::project::Shell;

/// The text of `compose.yaml` beside the folder `image`, which holds the exported Dockerfile.
pub fn compose(lock: &Lock, shell: &Shell) -> String {
    let word = |text: &str| serde_json::Value::from(text).to_string();
    // What Compose builds, nothing has checked.
    let name = crate::plan::name(lock) + UNVERIFIED;
    let mut out = format!(
        "# Made by envforge {} from lock {}: `docker compose run --rm --build dev` builds and opens the same image.\n\
         # PROJECT=/path docker compose ... mounts another folder than this one at /workspace.\n\
         services:\n  dev:\n    image: {}\n    build:\n      context: \"./image\"\n",
        env!("CARGO_PKG_VERSION"),
        &lock.hash()[..12],
        word(&name),
    );
    let mut secrets: Vec<_> = lock.added.run.iter().flat_map(|run| run.secrets.iter().cloned()).collect();
    secrets.sort();
    secrets.dedup();
    if !secrets.is_empty() {
        out.push_str("      secrets:\n");
        for secret in &secrets {
            let _ = writeln!(out, "        - {}", word(&format!("user-{secret}")));
        }
    }
    if shell.jupyter == Some(true) {
        out.push_str("    command: [\"jupyter\", \"lab\", \"--ip=0.0.0.0\", \"--no-browser\"]\n");
    }
    out.push_str("    stdin_open: true\n    tty: true\n    working_dir: \"/workspace\"\n    volumes:\n      - \"${PROJECT:-.}:/workspace\"\n");
    for mount in &shell.mounts {
        let _ = writeln!(out, "      - {}", word(mount));
    }
    let mut ports: Vec<String> = shell.ports.iter().map(|port| published(port)).collect();
    if shell.jupyter == Some(true) && !ports.iter().any(|port| port.ends_with(":8888")) {
        ports.push(published("8888"));
    }
    if !ports.is_empty() {
        out.push_str("    ports:\n");
    }
    for port in &ports {
        let _ = writeln!(out, "      - {}", word(port));
    }
    let _ = writeln!(out, "    shm_size: {}", word(shell.shm_size.as_deref().unwrap_or("8g")));
    if let Some(memory) = &shell.memory {
        let _ = writeln!(out, "    mem_limit: {}", word(memory));
    }
    if let Some(cpus) = shell.cpus {
        let _ = writeln!(out, "    cpus: {cpus}");
    }
    out.push_str(
        "    # Without a GPU on the engine leave this part out.\n    deploy:\n      resources:\n        reservations:\n          \
         devices:\n            - driver: \"nvidia\"\n              count: \"all\"\n              capabilities: [\"gpu\"]\n",
    );
    if !secrets.is_empty() {
        out.push_str("secrets:\n");
        for secret in &secrets {
            let variable = secret.to_ascii_uppercase().replace(['-', '.'], "_");
            let _ =
                writeln!(out, "  {}:\n    environment: {}", word(&format!("user-{secret}")), word(&variable));
        }
    }
    out
}

/// A port as Compose takes it: on this machine alone, unless an address is named.
fn published(port: &str) -> String {
    match port.matches(':').count() {
        0 => format!("127.0.0.1:{port}:{port}"),
        1 => format!("127.0.0.1:{port}"),
        _ => port.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{LockedRun, sample};
    use crate::project::ProjectFile;

    #[test]
    fn a_project_becomes_a_compose_file() {
        let text = include_str!("../tests/fixtures/project/whole.toml");
        let file = ProjectFile::parse("whole.toml", text).expect("reads");
        let mut lock = sample::lock();
        lock.added.project = Some("vision".to_owned());
        lock.added.run = vec![LockedRun { command: "x".to_owned(), secrets: vec!["hf-token".to_owned()] }];
        let text = compose(&lock, &file.default.shell);
        let text = text.replace(&lock.hash()[..12], "LOCK");
        insta::assert_snapshot!(text);
        let bare = compose(&sample::lock(), &Shell::default());
        assert!(!bare.contains("secrets") && !bare.contains("ports"), "{bare}");
    }
}
