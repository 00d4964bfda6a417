//! A package of which there is no wheel: refused, or built once from its source distribution by the image's own compiler.

use crate::engine::docker;
use crate::scene::{Scene, files_below, shared_cache};
use crate::wheels::{Wheel, sha256};

/// Compiled in C. Its build looks for a network and for credentials, and asks the image's framework which one it is.
const SETUP: &str = r#"
import os, socket, torch
from setuptools import Extension, setup
assert not os.path.isdir("/run/secrets") or not os.listdir("/run/secrets"), os.listdir("/run/secrets")
assert not [name for name in os.environ if "INDEX" in name or "proxy" in name.lower()], os.environ
try:
    socket.create_connection(("HOST", PORT), timeout=5)
except OSError:
    pass
else:
    raise SystemExit("the build has a network")
version = '"%s"' % torch.__version__
setup(
    name="compiled-here", version="1.0", install_requires=["needed-by-it"],
    ext_modules=[Extension("compiled_here", ["compiled_here.c"], define_macros=[("TORCH", version)])],
)
"#;
const CODE: &str = r#"
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static PyObject *built_beside(PyObject *self, PyObject *none) { return PyUnicode_FromString(TORCH); }
static PyMethodDef methods[] = {{"built_beside", built_beside, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "compiled_here", "", -1, methods};
PyMODINIT_FUNC PyInit_compiled_here(void) { return PyModule_Create(&module); }
"#;

/// A source distribution of those files, for an index to serve like a wheel.
pub(crate) fn source_distribution(name: &str, version: &str, files: &[(&str, &str)]) -> Wheel {
    let stem = format!("{}-{version}", name.replace('-', "_"));
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, text) in [("PKG-INFO", metadata.as_str())].iter().chain(files) {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("{stem}/{path}"), text.as_bytes()).expect("memory takes all");
    }
    let bytes = tar.into_inner().and_then(flate2::write::GzEncoder::finish).expect("memory takes all");
    Wheel { project: name.to_owned(), file: format!("{stem}.tar.gz"), bytes, metadata }
}

fn project(allow: &str) -> String {
    format!(
        "schema = 1\nname = \"source\"\nspec = \"pytorch-cuda:2.7-cu118\"\n[packages]\npython = [\"compiled-here\"]\n\
         indexes = [\"own\"]\n{allow}\n[verify]\nchecks = [{{ name = \"answers\", command = \"python -c 'import compiled_here'\" }}]\n"
    )
}

#[test]
#[ignore = "nightly: needs docker and compiles for five minutes; `source` builds a smaller one"]
fn allowed_source_distribution_is_built_once_and_pinned() {
    let scene = Scene::new();
    let url = scene.index.url();
    let (host, port) = url.trim_start_matches("http://").split_once(':').expect("an address with a port");
    let setup = SETUP.replace("HOST", host).replace("PORT", port);
    let archive = source_distribution(
        "compiled-here",
        "1.0",
        &[
            (
                "pyproject.toml",
                "[build-system]\nrequires = [\"setuptools<80\"]\nbuild-backend = \"setuptools.build_meta\"\n",
            ),
            ("setup.py", &setup),
            ("compiled_here.c", CODE),
        ],
    );
    let hash = sha256(&archive.bytes);
    // That it is needed shows only when the other is built.
    let setup = "from setuptools import setup\nsetup(name='needed-by-it', version='2.0', py_modules=['needed_by_it'])\n";
    let files = [("setup.py", setup), ("needed_by_it.py", "HERE = True\n")];
    let needed = source_distribution("needed-by-it", "2.0", &files);
    let broken =
        source_distribution("broken-there", "1.0", &[("setup.py", "raise SystemExit('it is broken')\n")]);
    scene.index.publish(vec![archive, needed, broken]);
    let address = format!("{}/own", scene.index.url());
    let scene = scene.set("ENVFORGE_INDEX_OWN", address);
    let write = |text: &str| std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");

    write(&project(""));
    scene.fail(&["lock"], 1, &["`allow-source = [\"compiled-here\"]`", "envforge.toml"]);
    write(&project("allow-source = [\"compiled-here>1\"]"));
    scene.fail(&["lock"], 2, &["envforge.toml", "invalid Python package name `compiled-here>1`"]);

    write(&project("allow-source = [\"Compiled_Here\", \"needed-by-it\"]"));
    let run = scene.succeed(&["build"]);
    assert!(run.stderr.contains("no compatible wheel of compiled-here 1.0"), "{}", run.stderr);
    let tag = run.stdout.lines().next().expect("a tag").to_owned();
    let code = "import compiled_here, needed_by_it; print(compiled_here.built_beside(), needed_by_it.HERE)";
    let said = docker(&["run", "--rm", "--network", "none", &tag, "python", "-c", code]);
    assert_eq!(said, "2.7.1+cu118 True");
    // What only the build asked for is not in the image.
    let said = docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        &tag,
        "sh",
        "-c",
        "ls /opt/env/lib/python3*/site-packages",
    ]);
    assert!(!said.contains("setuptools-7"), "{said}");
    let text = std::fs::read_to_string(scene.program.path("envforge.lock")).expect("beside the project file");
    assert!(text.contains("sources = [") && text.contains(&hash) && !text.contains("://"), "{text}");
    scene.succeed(&["lock", "--check"]);

    // Nothing is built again, until the wheel is lost: then the same bytes come of the same source.
    let is_wheel = |line: &&str| line.contains("name = \"compiled-here\"") && line.contains(".whl\"");
    let wheel = text.lines().find(is_wheel).expect("locked");
    let wheel = wheel.split("sha256 = \"").nth(1).and_then(|rest| rest.get(..64)).expect("a hash");
    let compiles = |run: &crate::program::Run| run.stderr.contains("sh /run/envforge/source.sh");
    let again = scene.succeed(&["build", "--locked", "-v"]);
    assert!(!compiles(&again), "{}", again.stderr);
    let of_wheel = |path: &std::path::PathBuf| path.to_string_lossy().ends_with(wheel);
    let blobs: Vec<_> = files_below(shared_cache()).into_iter().filter(of_wheel).collect();
    assert_eq!(blobs.len(), 1, "{blobs:?}");
    std::fs::remove_file(&blobs[0]).expect("ours");
    let lost = scene.succeed(&["build", "--locked", "-v"]);
    assert!(compiles(&lost) && blobs[0].is_file(), "the lock's wheel is built again: {}", lost.stderr);

    // A build that fails says so, in its own words; nothing is left.
    write(
        &project("allow-source = [\"broken-there\"]")
            .replace("python = [\"compiled-here\"]", "python = [\"broken-there\"]"),
    );
    let before = scene.added();
    scene.fail(&["build"], 3, &["it is broken"]);
    assert_eq!(format!("{:?}", scene.added()), format!("{before:?}"));
    scene.assert_only_tags_added();
}
