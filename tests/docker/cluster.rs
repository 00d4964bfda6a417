//! What is exported for Slurm and Apptainer, run with the real tools: a controller and a node on loopback, a real SIF.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::export::buildkit_client;
use crate::scene::{SPEC, Scene};

/// A munged, a slurmctld and a slurmd of our own, ended with this value.
struct Slurm {
    conf: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("state")).expect("ours");
        fs::create_dir_all(folder.join("spool")).expect("ours");
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        fs::write(at("munge.key"), "envforge".repeat(128)).expect("ours");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(at("munge.key"), mode).expect("ours");
        let conf = format!(
            "ClusterName=envforge\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=16817\nSlurmdPort=16818\n\
             SlurmUser=root\nAuthType=auth/munge\nAuthInfo=socket={}\nMpiDefault=none\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
             SlurmctldPidFile={}\nSlurmdPidFile={}\nSlurmdSpoolDir={}\nStateSaveLocation={}\n\
             NodeName=localhost NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n",
            at("munge.socket"),
            at("slurmctld.pid"),
            at("slurmd.pid"),
            at("spool"),
            at("state"),
        );
        fs::write(at("slurm.conf"), conf).expect("ours");
        let mut slurm = Self { conf: at("slurm.conf").into(), daemons: Vec::new() };
        slurm.daemon(
            Command::new("munged")
                .args(["--force", "--foreground"])
                .arg(format!("--socket={}", at("munge.socket")))
                .arg(format!("--key-file={}", at("munge.key")))
                .arg(format!("--pid-file={}", at("munged.pid")))
                .arg(format!("--log-file={}", at("munged.log")))
                .arg(format!("--seed-file={}", at("munged.seed"))),
        );
        slurm.daemon(Command::new("slurmctld").arg("-D"));
        slurm.daemon(Command::new("slurmd").args(["-D", "-N", "localhost"]));
        let end = Instant::now() + Duration::from_mins(5);
        while !slurm.says("sinfo", &["-h", "-o", "%T"]).contains("idle") {
            assert!(Instant::now() < end, "no node after five minutes: {}", slurm.says("sinfo", &[]));
            std::thread::sleep(Duration::from_millis(300));
        }
        slurm
    }

    fn daemon(&mut self, command: &mut Command) {
        let name = command.get_program().to_string_lossy().into_owned();
        command.env("SLURM_CONF", &self.conf).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|_| {
            panic!("{name} is not installed: apt-get install slurmctld slurmd slurm-client munge")
        });
        self.daemons.push(child);
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", &self.conf);
        command
    }

    fn says(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program, args).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for child in self.daemons.iter_mut().rev() {
            let id = child.id().to_string();
            drop(Command::new("kill").args(["-TERM", &id]).status());
            drop(child.wait());
        }
    }
}

const PROJECT: &str = r#"
schema = 1
name = "small"
copy = [{ from = "configs", to = "/opt/my configs" }]
run = ["echo \"$GREETING\" > ~/greeting"]
[variables]
GREETING = "hello $HOME"
"#;

/// The project exported below `out`, with the secrets that its build needs.
fn exported(scene: &Scene, form: &str) -> PathBuf {
    let text = PROJECT.replace("name =", &format!("spec = \"{SPEC}\"\nname ="));
    fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    fs::create_dir(scene.program.path("configs")).expect("ours");
    fs::write(scene.program.path("configs/a"), "a file\n").expect("ours");
    scene.succeed(&["export", form, "out dir"]);
    let out = scene.program.path("out dir");
    fs::create_dir(out.join("secrets")).expect("ours");
    let index = format!("export ENVFORGE_FRAMEWORK_INDEX='{}/cu118'\n", scene.index.url());
    fs::write(out.join("secrets/index"), index).expect("ours");
    let bundle = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if bundle.is_file() {
        fs::copy(bundle, out.join("secrets/ca")).expect("ours");
    }
    out
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{}{}", both[0], both[1]);
    both[0].clone()
}

/// A job that builds the image with that engine on its node, and one that finds it there.
fn assert_jobs_run(scene: &Scene, engine: &str, environment: &[(&str, String)]) {
    let out = exported(scene, "slurm");
    let slurm = Slurm::start(&scene.program.path("slurm"));
    let work = scene.program.path("work");
    fs::create_dir(&work).expect("ours");
    let submit = |tasks: &str, command: &[&str]| {
        let mut sbatch = slurm.command("sbatch", &["--wait", "-n", tasks, "--output=said.txt"]);
        sbatch.arg(out.join("job.sbatch")).args(command).current_dir(&work);
        sbatch.env("ENVFORGE_WITH", engine).envs(environment.iter().cloned()).output().expect("sbatch starts")
    };
    let said = || fs::read_to_string(work.join("said.txt")).unwrap_or_default();
    let program = "import os, torch; number = os.environ['SLURM_PROCID']; \
                   open(number + '.txt', 'w').write(torch.version.cuda + ' ' + open('/opt/my configs/a').read())";
    let output = submit("2", &["python", "-c", program]);
    assert!(output.status.success(), "{}", said());
    for task in ["0.txt", "1.txt"] {
        assert_eq!(fs::read_to_string(work.join(task)).expect("each task wrote"), "11.8 a file\n");
    }
    // The exit code of a task is that of the job, and the image is not built again.
    let output = submit("1", &["sh", "-c", "cat /home/dev/greeting; exit 3"]);
    assert_eq!((output.status.code(), said().contains("hello $HOME")), (Some(3), true), "{}", said());
    let again = ["CACHED", "STEP "].iter().any(|word| said().contains(word));
    assert!(!again, "{}", said());
}

#[test]
#[ignore = "nightly: needs docker and Slurm, three minutes; `cluster_file` runs the script of the job without an engine"]
fn slurm_job_builds_image_and_runs_every_task_in_it() {
    let scene = Scene::new();
    let client = buildkit_client();
    let path = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{path}", client.parent().expect("a folder").display());
    assert_jobs_run(&scene, "docker", &[("PATH", path)]);
    let containers = scene.added().containers;
    assert!(containers.is_empty(), "{containers:?}");
}

/// Podman with storage of its own, and limits of files that it may set where root may not raise them.
#[test]
#[ignore = "by hand: needs docker, podman and Slurm"]
fn slurm_job_runs_with_podman() {
    let scene = Scene::new();
    let folder = scene.program.path("podman");
    fs::create_dir(&folder).expect("ours");
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let storage =
        format!("[storage]\ndriver = 'overlay'\ngraphroot = '{}'\nrunroot = '{}'\n", at("root"), at("run"));
    fs::write(at("storage.conf"), storage).expect("ours");
    let limit = Command::new("sh").args(["-c", "ulimit -Hn"]).output().expect("a shell");
    let limit = succeeded(&limit);
    let limits = format!("default_ulimits = ['nofile={0}:{0}', 'nproc=1024:1024']", limit.trim());
    fs::write(at("containers.conf"), format!("[containers]\n{limits}\n[engine]\nruntime = 'runc'\n"))
        .expect("ours");
    let environment =
        [("CONTAINERS_STORAGE_CONF", at("storage.conf")), ("CONTAINERS_CONF", at("containers.conf"))];
    assert_jobs_run(&scene, "podman", &environment);
    let mut podman = Command::new("podman");
    let listed = podman.args(["ps", "-aq"]).envs(environment).output().expect("podman starts");
    assert_eq!(succeeded(&listed), "", "a container is left");
}

#[test]
#[ignore = "by hand: needs docker and apptainer"]
fn apptainer_builds_image_without_docker_or_host_changes() {
    let scene = Scene::new();
    let out = exported(&scene, "apptainer");
    let kept = out.join("secrets/index");
    let apptainer = |args: &[&str]| {
        let mut command = Command::new("apptainer");
        command.args(args).current_dir(&out).output().expect("apptainer is installed")
    };
    let marker = tempfile::NamedTempFile::new().expect("a file in /tmp");
    succeeded(&apptainer(&["build", "image.sif", "image.def"]));
    assert!(marker.path().exists() && kept.exists(), "the build emptied a folder of this machine");
    let program = "import torch; print(torch.version.cuda)";
    assert_eq!(succeeded(&apptainer(&["run", "image.sif", "python", "-c", program])), "11.8\n");
    let look = "cat /home/dev/greeting '/opt/my configs/a'; echo \"$GREETING\"; ls /run";
    let said = succeeded(&apptainer(&["run", "image.sif", "sh", "-c", look]));
    assert!(said.starts_with("hello $HOME\na file\nhello $HOME\n"), "{said}");
    assert!(!said.contains("secrets") && !said.contains("envforge"), "{said}");
}
