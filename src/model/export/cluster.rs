//! A lock's image for clusters: Apptainer's definition file, Slurm's batch script.
//!
//! Pure. Both are text next to the directory `image`, which contains the exported Dockerfile and its context.

use std::fmt::Write as _;

use camino::Utf8Path;
use serde_json::{Value, json};

use crate::model::cluster::ClusterRuntime;
use crate::model::image::plan::{BaseSource, BuildPlan};
use crate::model::image::render::{rendered, shell_word, values};
use crate::model::image_ref::{DEFAULT_REGISTRY, ImageRef};
use crate::model::lock::Lock;
use crate::model::project::Shell;

/// The choice of the container runtime on a node, and its options for GPUs: one text for jobs and for `verify --on`.
pub(crate) const RUNTIME: &str = include_str!("../../../templates/cluster/runtime.sh");

/// Returns the files (name, text) that `apptainer build image.sif image.def` needs in addition to the directory `image`.
///
/// `published` is true if the base is in a registry, false if it is only on the local engine.
pub fn apptainer(plan: &BuildPlan, bottom: &BaseSource, published: bool) -> [(&'static str, String); 3] {
    let mut values = values(&plan.image);
    let agent = match (bottom, published) {
        (BaseSource::Archive(_), _) => "scratch",
        (BaseSource::Image(_), true) => "docker",
        (BaseSource::Image(_), false) => "docker-daemon",
    };
    let reference = match bottom {
        BaseSource::Image(reference) => reference.as_str(),
        BaseSource::Archive(_) => "",
    };
    values["bootstrap"] = json!(agent);
    values["reference"] = json!(reference);
    values["archive"] = values["base"]["archive"].clone();
    [
        ("image.def", rendered(include_str!("../../../templates/image.def.j2"), &values)),
        ("image.sh", rendered(include_str!("../../../templates/image.sh.j2"), &values)),
        ("environment.sh", environment(plan)),
    ]
}

/// Returns the definition file of an image in a registry: `apptainer build image.sif image.def` takes it from there.
pub fn apptainer_of(lock: &Lock, pushed: &ImageRef) -> String {
    let values = json!({
        "name": crate::model::image::plan::name(lock),
        "envforge": env!("CARGO_PKG_VERSION"),
        "lock": lock.hash(),
        "image": pushed.to_string(),
    });
    rendered(include_str!("../../../templates/pushed.def.j2"), &values)
}

/// The file that Apptainer makes: a pushed image has its own, so that another one never stands in for it.
fn sif(pushed: Option<&ImageRef>) -> String {
    let digest =
        pushed.and_then(ImageRef::digest).map(|digest| digest.as_str().trim_start_matches("sha256:"));
    digest.map_or_else(|| "image.sif".to_owned(), |hex| format!("image-{}.sif", &hex[..12]))
}

/// Returns the image's variables for a shell; a line break becomes a space, as in the Dockerfile.
fn environment(plan: &BuildPlan) -> String {
    let mut out = String::new();
    for (name, value) in &plan.image.environment {
        let _ = writeln!(out, "export {name}={}", shell_word(&value.replace(['\n', '\r'], " ")));
    }
    out
}

/// Returns a pushed image as enroot and `srun --container-image` name it: `registry.example.com#team/vision@sha256:…`. With the registry
/// named, no release of enroot takes what stands before the `@` for a user.
pub(crate) fn enroot_name(image: &ImageRef) -> String {
    let registry = match image.registry() {
        DEFAULT_REGISTRY => "registry-1.docker.io",
        registry => registry,
    };
    let between = if image.digest().is_some() { '@' } else { ':' };
    format!("{registry}#{}{between}{}", image.repository(), image.wanted())
}

/// Where a job gets its image from.
#[derive(Debug, Clone, Copy)]
pub enum JobImage<'a> {
    /// The directory `image` next to the job, from which it is built.
    Folder,
    /// A registry.
    Pushed(&'a ImageRef),
    /// A registry, through pyxis on each node.
    Pyxis(&'a ImageRef),
    /// A file that all nodes have, with the runtime that starts it.
    File(ClusterRuntime, &'a Utf8Path),
}

/// Returns the text of `job.sbatch`, which runs a command in the image on every task of a job.
pub fn slurm(lock: &Lock, shell: &Shell, image: JobImage<'_>) -> String {
    let (pushed, container, file) = match image {
        JobImage::Folder => (None, None, None),
        JobImage::Pushed(reference) => (Some(reference), None, None),
        JobImage::Pyxis(reference) => (Some(reference), Some(enroot_name(reference)), None),
        JobImage::File(runtime, path) => (None, None, Some((runtime, path))),
    };
    let runtime = file.map(|(runtime, _)| runtime).or(container.as_ref().map(|_| ClusterRuntime::Pyxis));
    let run = lock.added.run.iter().filter(|_| pushed.is_none());
    let mut secrets: Vec<_> = run.flat_map(|run| run.secrets.iter()).collect();
    secrets.sort();
    secrets.dedup();
    let mounts: Vec<&str> = shell.mounts.iter().map(|mount| mount.as_str()).collect();
    let values: Value = json!({
        "name": crate::model::image::plan::name(lock),
        "envforge": env!("CARGO_PKG_VERSION"),
        "lock": lock.hash(),
        "mounts": mounts,
        "secrets": secrets,
        "image": pushed.map(ToString::to_string),
        "sif": sif(pushed),
        "file": file.map(|(_, path)| path),
        "container": container,
        "starter": runtime.map(ClusterRuntime::as_str),
        "call": file.map(|(runtime, _)| runtime.kind().call()),
        "runtime": RUNTIME.trim_end(),
    });
    rendered(include_str!("../../../templates/job.sbatch.j2"), &values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::image::plan::{ContextFiles, plan};
    use crate::model::lock::{LockedCopy, LockedRun, sample};
    use crate::model::project::ProjectFile;

    fn exported(bottom: &BaseSource, published: bool) -> (Lock, [(&'static str, String); 3]) {
        let mut lock = sample::lock();
        lock.added.project = Some("vision".to_owned());
        let copy = |from: &str, to: &str, folder| LockedCopy {
            from: from.to_owned(),
            to: to.to_owned(),
            folder,
            sha256: "c".repeat(64),
        };
        lock.added.copy = vec![copy("configs", "/opt/it's", true), copy("a", "/opt/a.txt", false)];
        lock.added.run = vec![
            LockedRun { command: "echo 'a' \\\n  \"$B\"".to_owned(), secrets: vec![] },
            LockedRun { command: "wc /run/secrets/hf".to_owned(), secrets: vec!["hf".to_owned()] },
        ];
        lock.environment.insert("GREETING".to_owned(), "it's $HOME\n{{ x }}".to_owned());
        let file = |name: &str| crate::model::image::plan::CachedFile {
            path: format!("/cache/{name}").into(),
            size: 1,
            sha256: "d".repeat(64),
        };
        let paths = |count: usize| vec!["/cache/deb".into(); count];
        let files = ContextFiles {
            bottom: bottom.clone(),
            debs: paths(lock.system.len()),
            unpacked: paths(lock.unpacked.len()),
            apt: paths(lock.apt.len()),
            copies: Vec::new(),
            wheels: Vec::new(),
            local: Vec::new(),
            uv: file("uv"),
            agent: bytes::Bytes::new(),
        };
        let plan = plan(&lock, files);
        let out = apptainer(&plan, bottom, published);
        (lock, out)
    }

    /// Asserts that the text is valid shell.
    #[expect(clippy::disallowed_methods, reason = "asks bash")]
    fn assert_shell(text: &str) {
        let mut bash = std::process::Command::new("bash");
        let mut child = bash.arg("-n").stdin(std::process::Stdio::piped()).spawn().expect("bash starts");
        let mut input = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut input, text.as_bytes()).expect("it reads");
        drop(input);
        assert!(child.wait().expect("a child of ours").success(), "{text}");
    }

    /// The options that a task of the job gives to a tool on a node, whose devices lie in `folder`.
    #[expect(clippy::disallowed_methods, reason = "asks bash")]
    fn rdma_options(folder: &str, call: &str) -> String {
        let text = slurm(&sample::lock(), &Shell::default(), JobImage::Folder);
        let start = text.find("rdma_options() {").expect("the function");
        let end = start + text[start..].find("\n}\n").expect("its end");
        let function = text[start..end].replace("/dev/infiniband/uverbs", &format!("{folder}/uverbs"));
        let script = format!(
            "set -euo pipefail\n{function}\n}}\noptions=()\n{call}\necho ${{options[@]+\"${{options[@]}}\"}}\n"
        );
        let output = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "writes a file for bash")]
    fn job_passes_rdma_where_the_node_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_str().expect("UTF-8");
        assert_eq!(rdma_options(path, "GPUS=0; rdma_options docker"), "", "the node has none");
        fs_err::write(folder.path().join("uverbs0"), "").expect("written");
        let device = "--device /dev/infiniband";
        assert_eq!(rdma_options(path, "GPUS=0; rdma_options docker"), device, "gpu_options has the limit");
        assert_eq!(rdma_options(path, "GPUS=; rdma_options docker"), format!("{device} --ulimit memlock=-1"));
        let bounded = "ulimit() { echo 64; }; GPUS=0; rdma_options podman";
        assert_eq!(rdma_options(path, bounded), device, "a rootless podman cannot raise the job's limit");
        let unbounded = "ulimit() { echo unlimited; }; GPUS=0; rdma_options podman";
        assert_eq!(rdma_options(path, unbounded), format!("{device} --ulimit memlock=-1:-1"));
        let job = slurm(&sample::lock(), &Shell::default(), JobImage::Folder);
        assert!(job.contains("\n    rdma_options \"$tool\"\n"));
    }

    #[test]
    fn a_project_becomes_a_definition_file() {
        let (lock, files) = exported(&BaseSource::Image("debian@sha256:ab".to_owned()), true);
        let short = lock.hash()[..12].to_owned();
        for (name, text) in files {
            let text = text.replace(&lock.hash(), "LOCK").replace(&short, "LOCK");
            if name != "image.def" {
                assert_shell(&text);
            }
            insta::assert_snapshot!(name, text);
        }
    }

    #[test]
    fn a_base_of_packages_is_unpacked_and_a_local_one_comes_from_the_engine() {
        let archive =
            crate::model::image::plan::CachedFile { path: "/x".into(), size: 1, sha256: "e".repeat(64) };
        let (_, [(_, definition), ..]) = exported(&BaseSource::Archive(archive), false);
        assert!(definition.contains("Bootstrap: scratch\n\n%setup"), "{definition}");
        assert!(definition.contains("image/base.tar"), "{definition}");
        let (_, [(_, definition), ..]) = exported(&BaseSource::Image("mine:1".to_owned()), false);
        assert!(definition.contains("Bootstrap: docker-daemon\nFrom: mine:1\n"), "{definition}");
    }

    #[test]
    fn a_project_becomes_a_batch_script() {
        let text = include_str!("../../../tests/fixtures/project/whole.toml");
        let file = ProjectFile::parse("whole.toml", text).expect("reads");
        let (lock, _) = exported(&BaseSource::Image("x".to_owned()), true);
        let script = slurm(&lock, &file.default.shell, JobImage::Folder);
        assert_shell(&script);
        insta::assert_snapshot!(script.replace(&lock.hash(), "LOCK").replace(&lock.hash()[..12], "LOCK"));
        assert_shell(&slurm(&sample::lock(), &Shell::default(), JobImage::Folder));
        let reference: ImageRef = format!("registry.example.com/team/vision@sha256:{}", "a".repeat(64))
            .parse()
            .expect("a reference");
        let pushed = slurm(&lock, &file.default.shell, JobImage::Pushed(&reference));
        assert_shell(&pushed);
        assert!(pushed.contains("image-aaaaaaaaaaaa.sif") && !pushed.contains("image.sif "), "{pushed}");
        assert!(pushed.contains("pull") && !pushed.contains("docker build"), "{pushed}");
        let definition = apptainer_of(&lock, &reference);
        assert!(definition.contains(&format!("\nBootstrap: docker\nFrom: {reference}\n")), "{definition}");
    }

    #[test]
    fn job_of_a_file_starts_it_with_the_runtime_of_the_cluster() {
        let text = include_str!("../../../tests/fixtures/project/whole.toml");
        let shell = ProjectFile::parse("whole.toml", text).expect("reads").default.shell;
        let lock = sample::lock();
        for (runtime, path) in [
            (ClusterRuntime::Pyxis, "/shared/it's here/$(id)/vision-0123456789ab.sqsh"),
            (ClusterRuntime::Apptainer, "/shared/images/vision-0123456789ab.sif"),
        ] {
            let job = slurm(&lock, &shell, JobImage::File(runtime, Utf8Path::new(path)));
            assert_shell(&job);
            assert!(!job.contains("docker build") && !job.contains(":prepare"), "{job}");
            let job = job.replace(&lock.hash(), "LOCK").replace(&lock.hash()[..12], "LOCK");
            insta::assert_snapshot!(format!("job_of_a_file_with_{}", runtime.as_str()), job);
        }
    }

    #[test]
    fn image_of_a_registry_has_the_form_of_enroot() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (name, of_enroot) in [
            (format!("box.test:5000/team/vision@{digest}"), format!("box.test:5000#team/vision@{digest}")),
            (format!("box.test/team/vision:2@{digest}"), format!("box.test#team/vision@{digest}")),
            (format!("debian@{digest}"), format!("registry-1.docker.io#library/debian@{digest}")),
            ("team/vision".to_owned(), "registry-1.docker.io#team/vision:latest".to_owned()),
        ] {
            assert_eq!(enroot_name(&name.parse().expect("a reference")), of_enroot);
        }
    }

    /// No file is looked for, and nothing is built: each word reaches `srun` whole.
    #[test]
    fn job_of_a_pushed_image_with_pyxis_names_it_by_its_digest() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let reference = format!("box.test/team/vision@{digest}").parse().expect("a reference");
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let job = slurm(&sample::lock(), &Shell::default(), JobImage::Pyxis(&reference));
        assert_shell(&job);
        assert!(!job.contains(":prepare") && !job.contains("docker"), "{job}");
        let words = words_of(&job, folder).expect("it runs");
        let image = format!("--container-image=box.test#team/vision@{digest}");
        let mounts = "--container-mounts=HERE:/workspace";
        let expected = [
            "--kill-on-bad-exit=1",
            &image,
            mounts,
            "--container-workdir=/workspace",
            "python",
            "my train.py",
        ];
        assert_eq!(words, expected);
    }

    #[expect(clippy::disallowed_methods, reason = "writes a file for the job")]
    fn words_of_job(runtime: ClusterRuntime, mounts: &[&str], has_file: bool) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let file = folder.join("it's $HOME.sqsh");
        if has_file {
            fs_err::write(&file, "").expect("written");
        }
        let toml = format!("schema = 1\nspec = \"pytorch-cuda\"\n[shell]\nmounts = {mounts:?}\n");
        let shell = ProjectFile::parse("p.toml", &toml).expect("reads").default.shell;
        words_of(&slurm(&sample::lock(), &shell, JobImage::File(runtime, &file)), folder)
    }

    /// Runs a job with an `srun` that prints its words; returns the words, or the error.
    #[expect(clippy::disallowed_methods, reason = "runs a job with a stand-in")]
    fn words_of(job: &str, folder: &Utf8Path) -> Result<Vec<String>, String> {
        let script = format!("srun() {{ printf '%s\\n' \"$@\"; }}\n{job}");
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script, "job", "python", "my train.py"])
            .current_dir(folder)
            .env("SLURM_JOB_ID", "7");
        let output = bash.output().expect("bash starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(folder.as_str(), "HERE");
        if output.status.success() {
            Ok(text(&output.stdout).lines().map(str::to_owned).collect())
        } else {
            Err(text(&output.stderr))
        }
    }

    #[test]
    fn job_of_a_file_passes_each_word_whole_and_names_a_missing_file() {
        let mounts = ["/data:/data:ro", "./my sets:/sets"];
        let binds = "HERE:/workspace,/data:/data:ro,HERE/./my sets:/sets";
        let words = |list: &[&str]| Ok(list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let (image, of_pyxis) =
            ("--container-image=HERE/it's $HOME.sqsh", format!("--container-mounts={binds}"));
        let kill = "--kill-on-bad-exit=1";
        let pyxis = [kill, image, &of_pyxis, "--container-workdir=/workspace", "python", "my train.py"];
        assert_eq!(words_of_job(ClusterRuntime::Pyxis, &mounts, true), words(&pyxis));
        let file = "HERE/it's $HOME.sqsh";
        let exec = [kill, "apptainer", "exec", "--nv", "--bind", binds, "--pwd", "/workspace", file];
        let apptainer = [&exec[..], &["python", "my train.py"]].concat();
        assert_eq!(words_of_job(ClusterRuntime::Apptainer, &mounts, true), words(&apptainer));
        let missing = words_of_job(ClusterRuntime::Pyxis, &[], false).expect_err("no file");
        let says =
            "error: image file not found: HERE/it's $HOME.sqsh (`envforge export squashfs` in the project";
        assert!(missing.starts_with(says), "{missing}");
        let comma = words_of_job(ClusterRuntime::Pyxis, &["/a,b:/data"], true).expect_err("two mounts");
        assert!(comma.contains("cannot contain a comma: /a,b:/data"), "{comma}");
    }
}
