//! The notebook of JupyterLab about its environment: a notebook by its format, whose cells run with and without a GPU.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const GPU: &str = "0, NVIDIA H200, 143771 MiB, 512 MiB, 570.124.06";
const TORCH: &str = "
from types import SimpleNamespace
__version__, version = '2.8.0+cu128', SimpleNamespace(cuda='12.8')
cuda = SimpleNamespace(
    device_count=lambda: 1, is_available=lambda: True, get_device_name=lambda index: 'NVIDIA H200',
    mem_get_info=lambda index: (140_000_000_000, 150_754_000_000))
";

fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/jupyter").join(name)
}

fn notebook() -> Value {
    let text = std::fs::read_to_string(template("environment.ipynb")).expect("the notebook");
    serde_json::from_str(&text).expect("JSON")
}

fn source(cell: &Value) -> String {
    cell["source"].as_array().expect("lines").iter().map(|line| line.as_str().expect("a text")).collect()
}

/// Runs the code cells one after the other, with these programs and modules before those of the machine.
fn run(folder: &Path) -> String {
    let code: Vec<_> = notebook()["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter(|cell| cell["cell_type"] == "code")
        .map(source)
        .collect();
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
    let output = Command::new(python)
        .args(["-c", &code.join("\n")])
        .env("PATH", folder)
        .env("PYTHONPATH", folder.join("modules"))
        .current_dir(folder)
        .output()
        .expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn environment_notebook_has_the_shape_of_nbformat_4_5() {
    let notebook = notebook();
    assert_eq!((&notebook["nbformat"], &notebook["nbformat_minor"]), (&4.into(), &5.into()));
    assert_eq!(notebook["metadata"]["kernelspec"]["name"], "python3");
    let cells = notebook["cells"].as_array().expect("cells");
    let mut ids: Vec<_> = cells.iter().map(|cell| cell["id"].as_str().expect("an id")).collect();
    assert!(ids.iter().all(|id| id.len() <= 64 && id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), cells.len(), "ids are unique");
    for cell in cells {
        let fields: Vec<_> = cell.as_object().expect("a cell").keys().map(String::as_str).collect();
        match cell["cell_type"].as_str().expect("a type") {
            "markdown" => assert_eq!(fields, ["cell_type", "id", "metadata", "source"]),
            "code" => {
                assert_eq!(fields, ["cell_type", "execution_count", "id", "metadata", "outputs", "source"]);
                assert_eq!(
                    (&cell["execution_count"], &cell["outputs"]),
                    (&Value::Null, &serde_json::json!([]))
                );
            }
            other => panic!("a cell of type {other}"),
        }
        assert!(!source(cell).is_empty());
    }
}

#[test]
#[ignore = "needs python3"]
fn environment_notebook_shows_gpu_versions_and_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let smi = folder.path().join("nvidia-smi");
    std::fs::write(&smi, format!("#!/bin/sh\necho \"{GPU}\"\n")).expect("written");
    std::fs::set_permissions(&smi, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let package = folder.path().join("modules/torch-2.8.0+cu128.dist-info");
    std::fs::create_dir_all(&package).expect("made");
    std::fs::write(package.join("METADATA"), "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+cu128\n")
        .expect("written");
    std::fs::write(folder.path().join("modules/torch.py"), TORCH).expect("written");
    let shown = run(folder.path());
    for line in [
        "GPU 0: NVIDIA H200, 512 MiB of 143771 MiB in use, driver 570.124.06",
        "torch                            2.8.0+cu128",
        "PyTorch 2.8.0+cu128 for CUDA 12.8",
        "cuda:0: NVIDIA H200, 140.0 GB of 150.8 GB free",
    ] {
        assert!(shown.lines().any(|found| found == line), "`{line}` is not in {shown}");
    }
    assert!(shown.contains("\nmemory: ") && shown.contains("shared memory (/dev/shm): "), "{shown}");
    assert!(!shown.contains("no GPU"), "{shown}");
}

#[test]
#[ignore = "needs python3"]
fn environment_notebook_runs_without_gpu_and_pytorch() {
    let folder = tempfile::tempdir().expect("a folder");
    let shown = run(folder.path());
    assert!(shown.starts_with("no GPU in this container\n"), "{shown}");
    assert!(shown.contains("PyTorch is not in this environment"), "{shown}");
    // A driver that does not answer is reported as it says so.
    let smi = folder.path().join("nvidia-smi");
    std::fs::write(&smi, "#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'\nexit 255\n")
        .expect("written");
    std::fs::set_permissions(&smi, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let shown = run(folder.path());
    assert!(shown.starts_with("Failed to initialize NVML: Unknown Error\n"), "{shown}");
}

/// A JupyterLab that is ended with this value.
struct Lab(Child);

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What it answers, by curl.
fn asked(port: u16, options: &[&str], path: &str) -> Option<Value> {
    let url = format!("http://127.0.0.1:{port}/api/{path}?token=planted");
    let output = Command::new("curl").args(["-sf", &url]).args(options).output().expect("curl starts");
    serde_json::from_slice(&output.stdout).ok()
}

#[test]
#[ignore = "by hand: needs JupyterLab and curl"]
fn jupyterlab_shows_the_notebook_and_writes_nothing_into_the_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let (project, files) = (folder.path().join("project"), folder.path().join("files"));
    std::fs::create_dir_all(files.join("notebook")).expect("made");
    std::fs::create_dir(&project).expect("made");
    std::fs::copy(template("jupyter.py"), files.join("jupyter.py")).expect("copied");
    std::fs::copy(template("environment.ipynb"), files.join("notebook/environment.ipynb")).expect("copied");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|free| free.local_addr())
        .expect("free")
        .port();
    let config = serde_json::json!({
        "ServerApp": { "port": port, "open_browser": false, "root_dir": project, "allow_root": true },
        "IdentityProvider": { "token": "planted" },
    });
    std::fs::write(files.join("jupyter.json"), config.to_string()).expect("written");
    let mut command = Command::new("jupyter");
    command.args(["lab", &format!("--config={}", files.join("jupyter.json").display())]);
    command.current_dir(&project).env("HOME", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let _lab = Lab(command.spawn().expect("JupyterLab starts"));
    let end = Instant::now() + Duration::from_mins(5);
    let listed = loop {
        match asked(port, &[], "contents") {
            Some(listed) => break listed,
            None => assert!(Instant::now() < end, "JupyterLab answers"),
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let names = |listed: &Value| -> Vec<String> {
        let all = listed["content"].as_array().expect("a list").iter();
        all.map(|file| file["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&listed), ["environment.ipynb"]);
    let shown = asked(port, &[], "contents/environment.ipynb").expect("it is there");
    let shown: Vec<_> = shown["content"]["cells"].as_array().expect("cells").iter().collect();
    let cells = notebook();
    let cells = cells["cells"].as_array().expect("cells");
    assert_eq!(shown.len(), cells.len());
    assert!(shown.iter().zip(cells).all(|(shown, cell)| shown["source"] == source(cell)), "{shown:?}");
    let save = [
        "-X",
        "PUT",
        "-d",
        r#"{"type":"notebook","content":{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}}"#,
    ];
    assert!(asked(port, &save, "contents/environment.ipynb").is_some());
    assert!(asked(port, &["-X", "POST"], "contents/environment.ipynb/checkpoints").is_some());
    assert_eq!(std::fs::read_dir(&project).expect("ours").count(), 0, "the project stays as it is");
    // A file of the project with that name is the one that is shown.
    let saved = |text: &str| std::fs::write(project.join("environment.ipynb"), text).expect("ours");
    saved(r#"{"cells":[],"metadata":{"own":true},"nbformat":4,"nbformat_minor":5}"#);
    let listed = asked(port, &[], "contents").expect("it answers");
    assert_eq!(names(&listed), ["environment.ipynb"]);
    let shown = asked(port, &[], "contents/environment.ipynb").expect("it is there");
    assert_eq!(shown["content"]["metadata"]["own"], true);
}
