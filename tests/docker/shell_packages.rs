//! Packages installed in a shell: from this machine's index with its certificates, beside the framework and not over it.

use crate::scene::TAG;
use crate::shell::Shells;

#[test]
#[ignore = "needs docker"]
fn pip_and_uv_install_no_second_torch() {
    let shells = Shells::new();
    // Both need torch; neither is in the image.
    shells.script("pip install --quiet torchmetrics >&2 && uv pip install --quiet pytorch-ranger >&2");
    let script = "which python; python -c 'import torch; from importlib.metadata import version as v; print(v(\"torchmetrics\"), v(\"pytorch-ranger\")); print(torch.__version__, torch.__file__)'; \
                  find ~/.venv -maxdepth 5 -iname 'torch' -o -maxdepth 5 -iname 'nvidia*' -o -maxdepth 5 -iname 'torch-*'";
    let shown = shells.script(script);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "a second torch: {shown}");
    assert_eq!(lines[0], "/home/dev/.venv/bin/python");
    assert!(lines[2].starts_with("2.7.1+cu118 /opt/env/"), "{shown}");

    // What is put there past pip is told when the next container starts.
    shells.script("mkdir ~/.venv/lib/python3.11/site-packages/torch-9.0.dist-info");
    let run = shells.run(&["shell", TAG, "--new", "--", "true"]);
    let told = "~/.venv holds packages in place of those this image was checked with: torch";
    assert!(run.code == 0 && run.stderr.contains(told), "{run:?}");
}
