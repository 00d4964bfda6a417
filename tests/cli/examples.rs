//! The scripts below examples/ run as they stand and say what their README says.

use std::path::Path;
use std::process::Command;

#[test]
fn a_fleet_with_a_v100_gets_the_newest_release_that_still_has_code_for_it() {
    let program = Path::new(env!("CARGO_BIN_EXE_envforge"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plan-for-a-fleet/run.sh");
    let folder = program.parent().expect("a folder").display();
    let output = Command::new("sh")
        .arg(script)
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .output()
        .expect("a shell");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built = stdout.lines().next().expect("a name");
    assert!(built.starts_with("pytorch-cuda:") && built.contains("-cu126-"), "{stdout}");
    assert!(stdout.contains("Tesla V100-SXM2-32GB (sm_70)"), "{stdout}");
}
