//! `push`, as far as no engine is needed.

use crate::{assert_message, envforge, program};

#[test]
fn reference_without_registry_or_with_digest_is_a_usage_error() {
    let pinned = format!("box.test/torch@sha256:{}", "0".repeat(64));
    for target in ["torch:2.8", "team/torch:2.8", &pinned] {
        assert_message(&envforge(&["push", "torch:2.8", target]), 2, &["nothing to push"]);
        let both = envforge(&["push", "torch:2.8", "box.test/torch:2.8", target]);
        assert_message(&both, 2, &["nothing to push"]);
    }
    assert_message(&envforge(&["push", "torch:2.8", "box.test/UPPER"]), 2, &["invalid image reference"]);
    assert_message(&envforge(&["push", "torch:2.8"]), 2, &["nothing to push"]);
    assert_message(&envforge(&["push"]), 2, &["<REF>"]);
}

#[test]
fn engine_not_running_is_reported() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    let run = program.run(&["push", "torch:2.8", "box.test/torch:2.8", "--json"]);
    assert_message(&run, 3, &["/nonexistent.sock"]);
    assert_eq!(run.stdout, "");
}
