//! The whole way from a release archive to a checked image, with a CUDA project of a few files in the place of the framework:
//! archive from a server of the test, nvcc 11.8 of the distribution with gcc 11, our patch, a wheel, static checks.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::framework::TORCH_2_8_CU118;
use crate::index::{Fault, Index};
use crate::matrix::matrix_archive;
use crate::program::Run;
use crate::scene::{Scene, files_below, interrupt_when, python_in};
use crate::source::{SPEC, TAG};
use crate::wheels::sha256;

const PROJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/source");
const ARCHIVE: &str = "small-1.tar.gz";

/// A project with the Python files of the framework as a release archive.
fn archive(project: &str) -> Vec<u8> {
    let project = Path::new(PROJECTS).join(project);
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files_below(&project) {
        let name = path.strip_prefix(&project).expect("below it").to_string_lossy().into_owned();
        files.push((name, std::fs::read(&path).expect("a fixture")));
    }
    let wheels = TORCH_2_8_CU118.wheels("cp311", "source");
    let torch = wheels.iter().find(|wheel| wheel.project == "torch").expect("there");
    let mut wheel = zip::ZipArchive::new(std::io::Cursor::new(&torch.bytes)).expect("a wheel");
    for number in 0..wheel.len() {
        let mut file = wheel.by_index(number).expect("a file of it");
        let name = file.name().to_owned();
        if name.starts_with("torch/") {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).expect("memory takes it");
            files.push((name, bytes));
        }
    }
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("small-1/{name}"), bytes.as_slice()).expect("memory takes it");
    }
    tar.into_inner().expect("memory takes it").finish().expect("memory takes it")
}

/// How often the compiler's cache had the answer, as it said last.
fn cache_hits(said: &str) -> u64 {
    let last = |name: &str| {
        let line = said.lines().rev().find_map(|line| line.split_once(name))?;
        line.1.split_whitespace().next()?.parse::<u64>().ok()
    };
    last("direct_cache_hit").unwrap_or(0) + last("preprocessed_cache_hit").unwrap_or(0)
}

/// A scene whose matrix builds a small project in the place of the release.
struct Fixture {
    scene: Scene,
    server: Index,
    sha256: String,
}

impl Fixture {
    fn new(project: &str) -> Self {
        let scene = Scene::new();
        let others = TORCH_2_8_CU118.wheels("cp311", "source");
        scene.index.publish(others.into_iter().filter(|wheel| !wheel.file.contains("+cu118")).collect());
        let server = Index::local(Vec::new());
        let archive = archive(project);
        let sha256 = sha256(&archive);
        server.serve(&format!("/{ARCHIVE}"), archive);
        let scene = scene.set("ENVFORGE_SOURCE_MIRROR", server.url());
        Self { scene, server, sha256 }
    }

    /// Uses a matrix whose row names this archive, with other lines changed.
    fn use_matrix(&self, name: &str, changes: &[(&str, &str)]) {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/compat/pytorch.toml"));
        let text = text.expect("the matrix");
        let (before, row) = text.split_once("[[source_build]]").expect("the row");
        let line = |key: &str| {
            let key = format!("{key} = ");
            row.lines().find(|line| line.starts_with(&key)).expect("a line of the row").to_owned()
        };
        let mut row = row.replacen(&line("archive"), &format!("archive = \"{ARCHIVE}\""), 1).replacen(
            &line("sha256"),
            &format!("sha256 = \"{}\"", self.sha256),
            1,
        );
        for (key, value) in changes {
            row = row.replacen(&line(key), &format!("{key} = {value}"), 1);
        }
        let text = format!("{before}[[source_build]]{row}");
        let hash = matrix_archive(&self.scene.program, name, &[("pytorch.toml", &text)]);
        let file = self.scene.program.path(name);
        self.scene.succeed(&["compat", "use", &file.to_string_lossy(), "--sha256", &hash]);
    }

    fn spawn(&self, args: &[&str]) -> Child {
        self.scene.program.command(args).stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Locks anew, which compiles unless the cache has the wheel.
    fn lock(&self) -> Run {
        self.scene.succeed(&["lock", SPEC, "--target", "any", "--yes", "--upgrade", "-v"])
    }
}

/// Leaves out what a project of one file does not need: the tools of the release's build.
const LEAN: [(&str, &str); 1] = [("build_wheels", r#"["setuptools<80", "wheel"]"#)];

#[test]
#[ignore = "nightly: needs docker and downloads gigabytes of NVIDIA's packages"]
fn source_build_makes_a_checked_image_of_a_cuda_project() {
    let f = Fixture::new("small");
    f.use_matrix("first.tar", &LEAN);
    let lock = ["lock", SPEC, "--target", "any", "--yes", "-v"];

    f.server.fail(ARCHIVE, Fault::Status(404));
    f.scene.fail(&lock, 3, &[ARCHIVE]);
    f.server.heal();

    // Interrupted in the middle of the compiler: nothing is left. The download was cut, too, and goes on by itself.
    f.server.fail(ARCHIVE, Fault::CutOnce);
    let run = interrupt_when(f.spawn(&lock), "compiling twice.cu");
    assert_eq!(run.code, 130, "{}", run.stderr);
    f.scene.assert_nothing_left();

    // Two compilers are too many for the memory, one is not.
    let built = f.lock().stderr;
    assert_eq!(built.matches("retrying with 1").count(), 1, "{built}");
    assert!(f.scene.lock().contains("torch-2.8.0+cu118-cp311-cp311-linux_x86_64.whl"), "{}", f.scene.lock());

    // The same again is not built again.
    let again = f.lock().stderr;
    assert!(again.contains("using cached wheel") && !again.contains("compiling twice.cu"), "{again}");

    // Something else is, and the compiler's cache has what did not change.
    let environment = [LEAN[0], ("BUILD_TEST", "\"0\"\nANOTHER = \"1\"")];
    f.use_matrix("second.tar", &environment);
    let other = f.lock().stderr;
    assert!(cache_hits(&other) > cache_hits(&built), "{other}");

    f.scene.succeed(&["build", SPEC, "--target", "any", "--yes"]);
    let said = python_in(
        TAG,
        "import ctypes, glob, torch; path = glob.glob(torch.__path__[0] + '/twice*.so')[0]; \
         print(torch.__version__, ctypes.CDLL(path).compiled_with())",
    );
    assert_eq!(said, "2.8.0+cu118 11080");
    f.scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker and downloads gigabytes of NVIDIA's packages"]
fn builder_has_every_required_header_library_and_tool() {
    let f = Fixture::new("headers");
    // Our patch is for a file that this project does not have.
    f.use_matrix("headers.tar", &[("patches", "[]")]);
    let built = f.lock().stderr;
    assert_eq!(built.matches("everything is there").count(), 1, "{built}");
    f.scene.assert_nothing_left();
}
