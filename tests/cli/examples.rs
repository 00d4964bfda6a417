//! The scripts below examples/ run as they stand and say what their README says.

use std::path::Path;
use std::process::Command;

use clap::Parser as _;
use envforge::cli::Cli;
use envforge::model::export::kubernetes::admitting_image;
use envforge::model::image_ref::ImageRef;
use envforge::model::lock::Lock;

use crate::evidence::{Place, with_driver};
use crate::example::{assert_said, examples, projects};
use crate::manifest::{documents, misfits, words};
use crate::memory_registry::Habits;
use crate::program;
use crate::program::Run;
use crate::verify::{H200, lock, report};

#[test]
fn fleet_with_a_v100_gets_the_newest_release_with_its_code() {
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

/// The headings of every README, in this order.
const HEADINGS: [&str; 5] = ["What it shows", "Run it", "Expected output", "What to change", "GPU"];

#[test]
fn every_example_has_a_readme_of_one_form() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let index = std::fs::read_to_string(root.join("README.md")).expect("the index");
    let examples = examples();
    assert_eq!(examples.len(), 12);
    let fleet = ("plan-for-a-fleet".to_owned(), root.join("plan-for-a-fleet"));
    let admit = ("admit".to_owned(), root.join("admit"));
    for (name, folder) in examples.into_iter().map(|one| (one.name, one.folder)).chain([fleet, admit]) {
        assert!(index.contains(&format!("({name}/README.md)")), "{name} is not in the index");
        let readme = std::fs::read_to_string(folder.join("README.md")).expect("a README");
        let headings: Vec<_> = readme.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, HEADINGS, "{name}");
        assert!(!readme.contains("$("), "{name}: a command that is not typed as it stands");
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let file = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            let of_all = ["README.md", "envforge.toml", "envforge.lock", "__pycache__"];
            assert!(of_all.contains(&&*file) || readme.contains(&file), "{name}/{file} is not in its README");
        }
    }
}

#[test]
fn every_example_can_be_planned() {
    let projects = projects();
    assert_eq!(projects.len(), 4);
    for folder in projects {
        let program = program();
        let run =
            Run::of(&program.command(&["plan", "--json"]).current_dir(&folder).output().expect("starts"));
        assert_eq!(run.code, 0, "{}: {}", folder.display(), run.stderr);
    }
}

#[test]
fn every_example_lock_is_up_to_date_without_addresses() {
    let mut lines = 0;
    for folder in projects() {
        let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
        let mut command = program.command(&["lock", "--check"]);
        let run = Run::of(&command.current_dir(&folder).output().expect("starts"));
        assert_eq!(run.code, 0, "{}: {}", folder.display(), run.stderr);
        let path = folder.join("envforge.lock");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(!text.contains("://"), "{}: an address", folder.display());
        let written = Lock::from_toml("envforge.lock", &text).expect("a lock").to_toml();
        if std::env::var_os("UPDATE_EXAMPLES").is_some() {
            std::fs::write(&path, &written).expect("written");
        } else {
            assert!(
                text == written,
                "{}: `UPDATE_EXAMPLES=1 cargo test --test cli examples`",
                path.display()
            );
        }
        lines += written.lines().count();
    }
    assert!(lines <= 2000, "{lines} lines of locks");
}

#[test]
#[ignore = "needs python3"]
fn every_example_script_compiles() {
    let read = "import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]";
    let scripts = examples().into_iter().flat_map(|example| {
        let files =
            std::fs::read_dir(example.folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        files.filter(|file| file.extension().is_some_and(|end| end == "py")).collect::<Vec<_>>()
    });
    let output = Command::new("python3").args(["-c", read]).args(scripts).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "by hand: needs torch, CuPy, Numba and ninja"]
fn examples_print_the_recorded_output_without_a_gpu() {
    for example in examples() {
        let mut command = Command::new("bash");
        command.args(["-euc", &example.command]).current_dir(&example.project);
        // The caches of what is compiled, and no GPU.
        let temporary = tempfile::tempdir().expect("a temporary folder");
        command
            .env("TORCH_EXTENSIONS_DIR", temporary.path())
            .env("TORCHINDUCTOR_CACHE_DIR", temporary.path());
        command.env("CUDA_VISIBLE_DEVICES", "").env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().expect("a shell");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {stdout}{stderr}", example.name);
        assert_said(&example, &stdout, &stderr);
    }
}

/// The scripts of examples/admit let through what is proven, and nothing else.
#[test]
fn only_what_is_admitted_is_deployed_and_started() {
    let place = Place::new(Habits::default());
    let tester = place.tester(with_driver(&report(&lock(), H200, true), "580.95.05"));
    let run = tester.verify(&["--attest", "--key", "key.pem"]);
    assert_eq!(run.code, 0, "{run:?}");
    let node = Place::node();
    let programs =
        Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder").display().to_string();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/admit");
    let script = |name: &str, more: &[(&str, &str)], args: &[&str]| {
        let mut command = node.command_of(Path::new("sh"), &[]);
        command
            .arg(folder.join(name))
            .args(args)
            .env("PATH", format!("{programs}:/usr/bin:/bin"))
            .env("KEY", "lab.pub");
        Run::of(&command.envs(more.iter().copied()).output().expect("a shell"))
    };
    let image = ("IMAGE", place.image.as_str());
    let deploy =
        |more: &[(&str, &str)]| script("deploy.sh", &[&[image], more].concat(), &["echo", "deployed"]);
    let run = deploy(&[]);
    assert!(
        run.code == 0 && run.stdout.contains("admitted") && run.stdout.ends_with("deployed\n"),
        "{run:?}"
    );
    for more in [("DRIVER", "570"), ("GPU", "NVIDIA A100-SXM4-80GB"), ("KEY", "other.pub")] {
        let run = deploy(&[more]);
        assert!(
            run.code == 1 && run.stdout.contains("refused") && !run.stdout.contains("deployed"),
            "{run:?}"
        );
    }
    assert_eq!(node.run(&["evidence", &place.image, "--key", "lab.pub", "--save", "torch.evidence"]).code, 0);
    place.registry.content().broken = Some(503);
    assert_eq!(deploy(&[]).code, 3);
    let file = ("EVIDENCE", "torch.evidence");
    assert_eq!(deploy(&[file]).code, 0);

    // The node asks its own GPU, and this machine has none: refused, in Slurm's words. Nothing asked: nothing refused. Variables of the job
    // change nothing.
    std::fs::write(node.path("admit"), format!("{}\n", place.image)).expect("ours");
    let text = std::fs::read_to_string(folder.join("task-prolog.sh")).expect("there");
    let prolog = |admit: &str, more: &[(&str, &str)]| {
        let own = |line: &str| match line.split_once('=') {
            Some(("ADMIT", _)) => format!("ADMIT={}", node.path(admit).display()),
            Some(("KEY", _)) => format!("KEY={}", node.path("lab.pub").display()),
            Some(("EVIDENCE", _)) => format!("EVIDENCE={}", node.path("torch.evidence").display()),
            Some(("ENVFORGE", _)) => format!("ENVFORGE={}", env!("CARGO_BIN_EXE_envforge")),
            _ => line.to_owned(),
        };
        let script = node.path("task-prolog.sh");
        let text = text.lines().map(own).fold(String::new(), |all, line| all + &line + "\n");
        std::fs::write(&script, text).expect("ours");
        let mut command = node.command_of(Path::new("/bin/sh"), &[]);
        Run::of(&command.arg(script).envs(more.iter().copied()).output().expect("a shell"))
    };
    for more in [
        &[][..],
        &[("ADMIT", "/nonexistent"), ("EVIDENCE", ""), ("ENVFORGE", "true"), ("PATH", "/nonexistent")],
    ] {
        let run = prolog("admit", more);
        assert!(run.code == 1 && run.stdout.lines().all(|line| line.starts_with("print ")), "{run:?}");
        assert!(run.stdout.contains("this machine has no NVIDIA"), "{run:?}");
    }
    std::fs::write(node.path("empty"), "").expect("ours");
    assert_eq!(prolog("empty", &[]).code, 2);
    assert_eq!(prolog("missing", &[]).code, 0);
}

/// The pod has fields of Kubernetes, the init container a call of this program, about the image that starts; README and manifest agree.
#[test]
fn init_container_asks_about_the_image_that_starts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/admit");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let (pod, readme) = (documents(&read("init-container.yaml")).remove(0), read("README.md"));
    assert_eq!(misfits(&pod), [""; 0]);
    let spec = &pod["spec"];
    let (init, main) = (&spec["initContainers"][0], &spec["containers"][0]);
    let call = [words(&init["command"]), words(&init["args"])].concat();
    if let Err(error) = Cli::try_parse_from(&call) {
        panic!("{call:?}: {error}");
    }
    let image = main["image"].as_str().expect("an image");
    assert_eq!(call, ["envforge", "evidence", "admit", image, "--here", "--key=/keys/gpu-lab.pub"]);
    assert_eq!(init["resources"]["limits"]["nvidia.com/gpu"], main["resources"]["limits"]["nvidia.com/gpu"]);
    let reference: ImageRef = image.parse().expect("a reference");
    let name = format!("IMAGE={}@sha256:", reference.name());
    assert!(reference.digest().is_some() && readme.contains(&name), "`{name}` is not in its README");
    assert_eq!(init["image"], admitting_image(&reference).as_str(), "of this version, next to the image");
    assert!(read("Dockerfile").contains("COPY envforge /usr/local/bin/envforge\n"));
    // The key that README makes a ConfigMap of is the one that is mounted there.
    let mount = &init["volumeMounts"][0];
    let volumes = spec["volumes"].as_array().expect("volumes");
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).expect("its volume");
    let map = volume["configMap"]["name"].as_str().expect("a ConfigMap");
    assert_eq!(mount["mountPath"], "/keys");
    let made = format!("kubectl create configmap {map} --from-file=gpu-lab.pub");
    assert!(readme.contains(&made), "`{made}` is not in its README");
}
