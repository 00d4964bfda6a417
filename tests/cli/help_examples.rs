//! The examples of `--help`: each one runs here as it stands, or says why it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use envforge::cli::Cli;
use envforge::model::lock::{Lock, UserAdditions};

use crate::envforge;
use crate::gpu_daemon::GpuDaemon;
use crate::index::Index;
use crate::pages::example_code;
use crate::program::Run;
use crate::vendor::{base_tag, lock_and_index};
use crate::verify::{H200, Scene, cdi, report};
use crate::wheels::WheelSpec;

/// What becomes of an example.
enum Outcome {
    /// It runs to its end with code 0 and prints that.
    Prints(&'static str),
    /// The same, and it prints nothing.
    Silent,
    /// It ends with code 1 and prints that.
    Refuses(&'static str),
    /// It does not run here.
    Needs(Need),
}

/// Why an example does not run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Containers of an engine: a resolver, a build or a program in them.
    Containers,
    /// A running container of `shell`.
    Shell,
    /// Another program: Apptainer, Slurm, Docker's client.
    OtherProgram,
    /// A terminal that is watched.
    Terminal,
    /// An image in a registry: `evidence` runs them.
    Registry,
}

use Need::{Containers, OtherProgram, Registry, Shell, Terminal};
use Outcome::{Needs, Prints, Refuses, Silent};

const ABI_EXAMPLE: &str =
    "envforge compat abi ./my_extension-1.0-cp311-cp311-linux_x86_64.whl --spec pytorch-cuda:2.8-cu128";

const ABI_OF_INDEX: &str = "envforge compat abi my-extension==1.0 --spec pytorch-cuda:2.8-cu128";
const ABI_OUTCOME: Outcome = Prints(
    "my_extension-1.0-cp311-cp311-linux_x86_64.whl is compatible with pytorch-cuda:2.8.0-cu128-py3.11",
);

const OUTCOMES: &[(&str, Outcome)] = &[
    ("envforge", Prints("next step")),
    ("envforge plan pytorch-cuda:2.8-cu128", Prints("pytorch-cuda:2.8.0-cu128-py3.11")),
    ("envforge build pytorch-cuda:2.8-cu128", Needs(Containers)),
    ("envforge init && envforge build", Needs(Containers)),
    ("envforge verify pytorch-cuda:2.8-cu128", Prints("passed: ")),
    ("envforge shell pytorch-cuda:2.8-cu128", Needs(Containers)),
    ("envforge list --gpu \"NVIDIA A100-SXM4-80GB\"", Prints("pytorch-cuda:")),
    ("envforge export dockerfile pytorch-cuda:2.8 ./image", Prints("/work/./image")),
    ("envforge add einops", Needs(Containers)),
    ("envforge add 'einops>=0.8' rich", Needs(Containers)),
    ("envforge add --apt ffmpeg", Needs(Containers)),
    ("envforge add -E train wandb", Needs(Containers)),
    ("envforge add '{ name = \"ourtool\", index = \"internal\" }'", Needs(Containers)),
    ("envforge add --dry-run 'einops>=0.8'", Prints("envforge.toml: added `einops>=0.8`")),
    ("envforge remove einops", Needs(Containers)),
    ("envforge remove einops rich", Needs(Containers)),
    ("envforge remove --apt ffmpeg", Needs(Containers)),
    ("envforge remove -E train wandb", Needs(Containers)),
    ("envforge remove --dry-run einops", Prints("envforge.toml: removed `einops`")),
    ("envforge build", Needs(Containers)),
    ("envforge build -E train", Needs(Containers)),
    ("envforge build pytorch-cuda:2.8-cu128 --with transformers --apt ffmpeg", Needs(Containers)),
    (
        "envforge build pytorch-cuda:2.8-cu128 -t registry.example.com/team/torch:2.8 --push",
        Needs(Containers),
    ),
    (
        "envforge build pytorch-cuda:2.8-cu128 -t box.test/torch:2.8 --push --attest --key cosign.key",
        Needs(Containers),
    ),
    ("envforge build pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\"", Needs(Containers)),
    ("envforge build pytorch-cuda:2.8-cu128 --locked", Needs(Containers)),
    ("envforge build --offline ./vendor", Needs(Containers)),
    ("envforge build pytorch-cuda:2.8-cu128 --dry-run", Prints("wheels/")),
    ("envforge build pytorch-cuda:2.8-cu128 pytorch-cuda:2.9-cu128", Needs(Containers)),
    ("envforge build --all-supported pytorch-cuda:2.8", Needs(Containers)),
    (ABI_EXAMPLE, ABI_OUTCOME),
    (ABI_OF_INDEX, ABI_OUTCOME),
    ("envforge compat lint", Prints(" 0 faults")),
    ("envforge compat lint ./compat", Prints(" 0 faults")),
    ("envforge compat show \"variant jax 0.8.0\"", Prints("source = ")),
    ("envforge compat show \"toolkit 12.8.1\" --json", Prints("min_driver = ")),
    ("tar -C compat -cf matrix.tar . && sha256sum matrix.tar", Prints("  matrix.tar")),
    ("envforge compat use matrix.tar --sha256 HASH", Prints("using matrix 20")),
    ("envforge compat use --builtin", Prints("using built-in matrix 20")),
    ("envforge ps", Prints("nothing runs")),
    ("envforge ps --watch", Needs(Terminal)),
    ("envforge ps --json", Prints("[]")),
    ("envforge stop", Needs(Shell)),
    ("envforge stop run1", Needs(Shell)),
    ("envforge stop run1 --time 60", Needs(Shell)),
    ("envforge stop --all", Silent),
    ("envforge logs run1", Needs(Shell)),
    ("envforge logs run1 --follow --tail 20", Needs(Shell)),
    ("envforge doctor", Prints("0 errors, ")),
    (
        "envforge doctor --explain \"no kernel image is available for execution on the device\"",
        Prints("no-code-for-gpu"),
    ),
    ("docker logs trainer 2>&1 | envforge doctor --explain -", Prints("no-code-for-gpu")),
    ("envforge doctor --explain slurm-4711.out", Prints("no-code-for-gpu")),
    ("envforge doctor --report > report.json", Prints("\"container_toolkit\"")),
    ("envforge export dockerfile pytorch-cuda:2.8-cu128 ./image", Prints("/work/./image")),
    ("envforge export oci pytorch-cuda:2.8-cu128 ./torch.tar", Needs(Containers)),
    ("envforge export oci ./image", Needs(Containers)),
    ("envforge export squashfs pytorch-cuda:2.8-cu128 ./torch.sqsh", Needs(Containers)),
    ("envforge export squashfs ./image.sqsh", Needs(Containers)),
    ("envforge export squashfs", Needs(Containers)),
    ("srun --container-image=./image.sqsh python train.py", Needs(OtherProgram)),
    ("envforge export sif pytorch-cuda:2.8-cu128 ./torch.sif", Needs(Containers)),
    ("envforge export sif", Needs(Containers)),
    ("envforge export sif ./old.sif --compression gzip", Needs(Containers)),
    ("apptainer run --nv ./torch.sif python train.py", Needs(OtherProgram)),
    ("skopeo copy oci-archive:./torch.tar docker://registry.example.com/team/torch:2.8", Needs(OtherProgram)),
    ("envforge export compose ./compose", Prints("/work/./compose")),
    ("envforge export compose ./compose --build", Prints("/work/./compose")),
    (
        "envforge export compose ./compose --image reg.example.com/vision@sha256:HASH",
        Prints("/work/./compose"),
    ),
    ("envforge export dockerfile ./image", Prints("/work/./image")),
    ("DOCKER_BUILDKIT=1 docker build -t torch ./image", Needs(OtherProgram)),
    ("docker compose -f ./compose/compose.yaml run --rm dev", Needs(OtherProgram)),
    ("envforge export devcontainer .devcontainer", Prints("/work/.devcontainer")),
    ("envforge export devcontainer pytorch-cuda:2.8-cu128 .devcontainer", Prints("/work/.devcontainer")),
    ("envforge export apptainer ./sif", Prints("/work/./sif")),
    ("cd sif && apptainer build image.sif image.def", Needs(OtherProgram)),
    ("envforge export kubernetes ./base --image reg.example.com/vision@sha256:HASH", Prints("/work/./base")),
    ("kubectl apply -k ./base", Needs(OtherProgram)),
    ("kubectl create -f ./base/jobset.yaml", Needs(OtherProgram)),
    ("envforge export slurm ./job", Prints("/work/./job")),
    ("envforge export nfd compatibility.yaml", Prints("/work/compatibility.yaml")),
    ("envforge export nfd pytorch-cuda:2.8-cu128 torch.yaml", Prints("/work/torch.yaml")),
    ("nfd compat validate-node --image reg.example.com/torch:2.8", Needs(OtherProgram)),
    ("envforge export pylock pylock.toml", Prints("/work/pylock.toml")),
    ("envforge export pylock pytorch-cuda:2.8-cu128 pylock.gpu.toml", Prints("/work/pylock.gpu.toml")),
    ("pip install -r pylock.toml", Needs(OtherProgram)),
    (
        "envforge export policy kyverno reg.example.com/team/ policy.yaml --key cosign.pub",
        Prints("/work/policy.yaml"),
    ),
    (
        "envforge export policy sigstore reg.example.com/torch policy.yaml --key cosign.pub --gpu sm_90",
        Prints("/work/policy.yaml"),
    ),
    ("kubectl apply -f policy.yaml", Needs(OtherProgram)),
    ("sbatch --gpus=1 ./job/job.sbatch python train.py", Needs(OtherProgram)),
    (
        "envforge generate completions bash > ~/.local/share/bash-completion/completions/envforge",
        Prints("_envforge_values"),
    ),
    ("envforge generate completions zsh > ~/.zfunc/_envforge", Prints("#compdef envforge")),
    (
        "envforge generate completions fish > ~/.config/fish/completions/envforge.fish",
        Prints("complete -c envforge"),
    ),
    ("envforge generate schema > .envforge.schema.json", Prints("\"title\": \"envforge.toml\"")),
    ("envforge generate man ~/.local/share/man/man1", Prints("envforge-plan.1")),
    ("envforge images", Prints("pytorch-cuda:2.8.0-cu128-py3.11-unverified")),
    ("envforge images --json", Prints("\"images\"")),
    ("envforge inspect", Prints("demo-two")),
    ("envforge inspect pytorch-cuda:2.8-cu128", Prints("demo-two")),
    ("envforge inspect pytorch-cuda:2.8 --sbom > image.spdx.json", Prints("demo-two")),
    ("envforge inspect ./envforge.lock --sbom", Prints("SPDX-2.3")),
    ("envforge diff pytorch-cuda:2.7-cu118 pytorch-cuda:2.8-cu128", Needs(Containers)),
    ("envforge diff envforge.lock -E train", Prints("demo-two")),
    ("envforge diff old.lock", Prints("demo-two")),
    ("envforge diff old.lock envforge.lock", Prints("demo-two")),
    ("envforge size", Prints("base")),
    ("envforge size pytorch-cuda:2.8-cu128", Prints("base")),
    ("envforge size --by gpu", Prints("compute_90")),
    ("envforge size --html size.html", Prints("base")),
    ("envforge prune", Prints("no image to remove")),
    ("envforge prune --yes", Prints("no image to remove")),
    ("envforge prune --cache", Prints("no file of the cache to remove")),
    ("envforge init", Prints("envforge.toml")),
    ("envforge init pytorch-cuda:2.8-cu128", Prints("envforge.toml")),
    ("envforge init --from requirements.txt", Prints("envforge.toml")),
    ("envforge init --from trainer:latest", Needs(Containers)),
    ("envforge list", Prints("pytorch-cuda:")),
    ("envforge list pytorch-cuda --all", Prints("pytorch-cuda:1.8")),
    ("envforge list --for-this-machine", Prints("pytorch-cuda:")),
    ("envforge list pytorch-cuda --gpu sm_61 --json", Prints("\"entries\"")),
    ("envforge lock", Prints("envforge.lock")),
    ("envforge lock pytorch-cuda:2.8-cu128", Prints(".lock")),
    ("envforge lock pytorch-cuda:2.8-cu128 --upgrade", Needs(Containers)),
    ("envforge lock -P transformers", Needs(Containers)),
    ("envforge lock --check", Refuses("uv: locked `0.0.1`")),
    ("envforge lock --diff --upgrade", Needs(Containers)),
    ("envforge lock pytorch-cuda:2.8 --as-of 2026-03-01", Needs(Containers)),
    ("envforge lock --from uv.lock --extra train", Needs(Containers)),
    ("envforge lock --diff --from uv.lock", Needs(Containers)),
    ("envforge lock pytorch-cuda:2.8-cu128 --digest", Needs(Containers)),
    ("envforge lock pytorch-cuda:2.8-cu128 --lockfile ./envforge.lock", Prints("envforge.lock")),
    ("envforge why numpy", Refuses("`numpy` is not in the lock of pytorch-cuda:2.8-cu128")),
    ("envforge why torch pytorch-cuda:2.8-cu128", Refuses("`torch` is not in the lock")),
    ("envforge why einops --json", Refuses("`envforge add einops` adds it")),
    ("envforge outdated", Needs(Containers)),
    ("envforge outdated -E train --json", Needs(Containers)),
    ("envforge outdated pytorch-cuda:2.8-cu128", Needs(Containers)),
    ("envforge lock --upgrade", Needs(Containers)),
    ("envforge plan pytorch-cuda:2.8 --with flash-attn", Prints("flash-attn")),
    ("envforge plan -E train", Prints("pytorch-cuda:2.8.0-cu128-py3.11")),
    ("envforge plan pytorch-cuda --gpu \"NVIDIA GeForce GTX 1080 Ti\" --driver 580.95.05", Prints("-cu126-")),
    ("envforge plan pytorch-cuda:2.8 --gpu sm_90 --gpu sm_80 --json", Prints("\"verdict\"")),
    ("envforge import torch.tar torch:2.8", Needs(Containers)),
    ("envforge verify torch:2.8-unverified", Needs(Containers)),
    ("envforge push box.test/team/vision:1.2", Needs(Containers)),
    ("envforge push -E train box.test/team/vision-train:1.2", Needs(Containers)),
    ("envforge push pytorch-cuda:2.8-cu128 box.test/torch", Needs(Containers)),
    ("envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8", Needs(Containers)),
    ("envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8 box.test/torch:latest", Needs(Containers)),
    ("envforge push box.test/team/vision:1.2 --compression zstd", Needs(Containers)),
    ("envforge push box.test/team/vision:1.2 --platform linux/amd64,linux/arm64", Needs(Containers)),
    ("envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8 --evidence", Needs(Containers)),
    ("envforge push box.test/team/vision:1.2 --attest --key cosign.key", Needs(Containers)),
    ("envforge run python train.py", Needs(Containers)),
    ("envforge run --gpus 0 python train.py", Needs(Containers)),
    ("envforge run -E train -e WANDB_MODE=offline python train.py", Needs(Containers)),
    ("envforge run -- pytest -q", Needs(Containers)),
    ("envforge shell", Needs(Containers)),
    ("envforge shell pytorch-cuda:2.8-cu128 -- python train.py", Needs(Containers)),
    ("envforge shell pytorch-cuda:2.8-cu128 --data /datasets --memory 64g --gpus 0,1", Needs(Containers)),
    ("envforge shell pytorch-cuda:2.8-cu128 --name run1 --detach -- python train.py", Needs(Containers)),
    ("envforge shell run1 -- nvidia-smi", Needs(Shell)),
    ("envforge shell --attach run1", Needs(Shell)),
    ("envforge shell pytorch-cuda:2.8-cu128 --jupyter", Needs(Containers)),
    ("envforge shell pytorch-cuda:2.8-cu128 --ssh --vscode --detach", Needs(Containers)),
    ("tar c src | envforge shell IMAGE -- tar x -C /tmp", Needs(Containers)),
    ("envforge vendor ./vendor", Prints("4 files, 4 of them new")),
    ("envforge vendor pytorch-cuda:2.8-cu128 ./vendor", Prints("4 files, 4 of them new")),
    ("envforge vendor pytorch-cuda:2.8-cu128 ./vendor --layers", Needs(Containers)),
    ("envforge vendor ./vendor --check", Prints("0 findings")),
    ("envforge vendor ./vendor --check --upstream", Prints("0 findings")),
    ("envforge verify", Prints("passed: ")),
    ("envforge verify pytorch-cuda:2.8-cu128 --level quick", Prints("passed: ")),
    ("envforge verify pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", Needs(Containers)),
    ("envforge verify IMAGE --gpu sm_120", Needs(Containers)),
    ("envforge verify IMAGE IMAGE --json --junit report.xml", Prints("\"verdict\"")),
    ("envforge verify IMAGE --html report.html", Prints("passed: ")),
    ("envforge verify box:5000/team/torch:2.8-unverified --push", Needs(Containers)),
    ("envforge verify IMAGE --last", Prints("passed: ")),
    ("envforge verify box:5000/team/torch:2.8 --attest --key cosign.key", Needs(Registry)),
    ("envforge verify IMAGE@sha256:… --attest --key cosign.key", Needs(Registry)),
    ("envforge verify IMAGE@sha256:… --on slurm:gpu", Needs(OtherProgram)),
    ("envforge verify --on slurm", Needs(OtherProgram)),
    ("envforge verify IMAGE@sha256:… --on ssh:node[1-4] --level quick", Needs(OtherProgram)),
    ("envforge verify torch.sqsh", Needs(OtherProgram)),
    ("envforge verify /shared/torch.sqsh --on slurm", Needs(OtherProgram)),
    ("envforge verify IMAGE@sha256:… --on slurm --as-they-free reports", Needs(OtherProgram)),
    ("envforge verify --merge reports", Prints("1 node: 1 ok")),
    ("envforge evidence reg.example.com/torch:2.8", Needs(Registry)),
    ("envforge evidence reg.example.com/torch:2.8 --key cosign.pub --save torch.evidence", Needs(Registry)),
    ("envforge evidence reg.example.com/torch:2.8 --html evidence.html", Needs(Registry)),
    ("envforge evidence admit reg.example.com/torch:2.8 --here --key cosign.pub", Needs(Registry)),
    ("envforge evidence admit IMAGE --here --key cosign.pub", Needs(Registry)),
    ("envforge evidence admit IMAGE --here --driver exact --key cosign.pub", Needs(Registry)),
    (
        "envforge evidence admit IMAGE --gpu \"NVIDIA H200\" --driver 580 --level full --key cosign.pub",
        Needs(Registry),
    ),
    ("envforge evidence admit --evidence torch.evidence --here --key cosign.pub", Needs(Registry)),
    ("envforge evidence withdraw IMAGE --key cosign.key", Needs(Registry)),
    ("envforge evidence withdraw IMAGE --gpu \"NVIDIA H200\" --driver 580 --key cosign.key", Needs(Registry)),
];

/// The visible commands without commands below them, by their words, and the examples of their help.
fn examples(command: &Command, path: &str, found: &mut BTreeMap<String, Vec<String>>) {
    let visible: Vec<_> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help").collect();
    for sub in &visible {
        examples(sub, &format!("{path} {}", sub.get_name()), found);
    }
    let help = command.get_after_long_help().or(command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let of_block = lines.take_while(|line| !line.is_empty());
    // An explanation follows after two blanks.
    let commands = of_block.map(|line| line.trim().split("  ").next().unwrap_or_default().to_owned());
    let commands: Vec<_> = commands.collect();
    if visible.is_empty() || !commands.is_empty() {
        found.insert(path.to_owned(), commands);
    }
}

fn all_examples() -> BTreeMap<String, Vec<String>> {
    let mut cli = Cli::command();
    cli.build();
    let mut found = BTreeMap::new();
    examples(&cli, "envforge", &mut found);
    found
}

/// A folder with a project, its lock and image, and what examples name: `old.lock`, `compat`, `train.py`.
fn scene() -> (Scene, Index) {
    let (of_spec, index) = lock_and_index();
    let project = UserAdditions { project: Some("small".to_owned()), ..UserAdditions::default() };
    let lock = Lock { added: project, ..of_spec.clone() };
    let daemon = GpuDaemon { tags: vec![base_tag(), "IMAGE".to_owned()], ..cdi(report(&lock, H200, true)) };
    let daemon = GpuDaemon { code: example_code(), ..daemon };
    let mut scene = Scene::new(daemon, &lock);
    scene.program.set("ENVFORGE_INDEX", format!("{}/simple", index.url()));
    let write = |name: &str, text: &str| {
        let path = scene.program.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    };
    let spec = "spec = 'pytorch-cuda:2.8-cu128'\n";
    let train = "[environments.train]\nspec = 'pytorch-cuda:2.8-cu128'\n";
    write("work/envforge.toml", &format!("schema = 1\nname = 'small'\n{spec}[target]\nany = true\n{train}"));
    write("work/envforge.lock", &lock.to_toml());
    let older = Lock { wheels: lock.wheels[..1].to_vec(), ..lock.clone() };
    write("work/old.lock", &older.to_toml());
    write("work/cosign.pub", include_str!("../fixtures/evidence/cosign.pub"));
    let name = format!("{}-x86_64.lock", of_spec.stack.name.replace(':', "_"));
    write(&format!("state/locks-of-specs/{name}"), &of_spec.to_toml());
    // Without a library.
    let extension = WheelSpec::new("my-extension", "1.0").tag("cp311-cp311-linux_x86_64").build();
    std::fs::write(scene.program.path("work").join(&extension.file), &extension.bytes).expect("ours");
    index.publish(vec![extension]);
    let compat = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat");
    std::os::unix::fs::symlink(compat, scene.program.path("work/compat")).expect("a link");
    (scene, index)
}

/// Runs an example in a shell, after what must have been done before; what it says is with what it prints.
fn run(example: &str) -> Run {
    run_with(example, "exec 2>&1")
}

/// The same, after a command for the shell itself.
pub(crate) fn run_with(example: &str, first: &str) -> Run {
    let (scene, _index) = scene();
    let before = match example {
        line if line.contains("envforge init --from") => {
            "rm envforge.toml envforge.lock; echo torch==2.8.0 > requirements.txt"
        }
        line if line.contains("slurm-4711.out") => {
            "echo 'no kernel image is available for execution on the device' > slurm-4711.out"
        }
        line if line.contains("remove --dry-run") => {
            "sed -i \"s/^.target.$/[packages]\\npython = ['einops']\\n&/\" envforge.toml"
        }
        line if line.contains("envforge diff envforge.lock -E train") => "cp old.lock envforge.train.lock",
        line if line.contains("envforge init") => "rm envforge.toml envforge.lock",
        line if line.contains("matrix.tar --sha256") => "tar -C compat -cf matrix.tar .",
        line if line.contains("./vendor --") => "envforge vendor ./vendor",
        line if line.contains("--last") => "envforge verify IMAGE",
        line if line.contains("--merge") => {
            "mkdir reports && envforge verify IMAGE --json > reports/node1.json"
        }
        line if line.contains("docker logs") => {
            "docker() { echo 'no kernel image is available for execution on the device'; }"
        }
        line if line.contains("bash-completion") => "mkdir -p ~/.local/share/bash-completion/completions",
        line if line.contains(".zfunc") => "mkdir -p ~/.zfunc",
        line if line.contains("config/fish") => "mkdir -p ~/.config/fish/completions",
        _ => ":",
    };
    let example = example.replace("@sha256:HASH", "@sha256:$(printf 'a%.0s' {1..64})");
    let example = example.replace("HASH", "$(sha256sum matrix.tar | cut -d' ' -f1)");
    // What goes into a file is read from there.
    let example = match example.split_once(" > ") {
        Some((_, file)) => format!("{example} && cat {file}"),
        None => example,
    };
    let line = format!("{first}; {{ {before}; }} >before.log 2>&1 || cat before.log; {example}");
    let folder = Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let mut shell = scene.program.command_of(Path::new("bash"), &["-c", &line]);
    shell.current_dir(scene.program.path("work")).env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    // The target is any machine, as that of the lock.
    shell.env_remove("ENVFORGE_GPU").env_remove("ENVFORGE_DRIVER");
    Run::of(&shell.output().expect("bash starts"))
}

#[test]
fn every_command_has_an_example_with_an_outcome() {
    let examples = all_examples();
    assert!(examples.len() > 30, "{} commands", examples.len());
    let without: Vec<_> =
        examples.iter().filter(|(_, lines)| lines.is_empty()).map(|(name, _)| name).collect();
    assert!(without.is_empty(), "commands without an example: {without:#?}");
    let shown: BTreeSet<_> = examples.values().flatten().map(String::as_str).collect();
    let known: BTreeSet<_> = OUTCOMES.iter().map(|(line, _)| *line).collect();
    assert_eq!(known.len(), OUTCOMES.len(), "an example has two outcomes");
    let new: Vec<_> = shown.difference(&known).collect();
    let gone: Vec<_> = known.difference(&shown).collect();
    assert!(new.is_empty() && gone.is_empty(), "without an outcome: {new:#?}\nnot in any help: {gone:#?}");
}

#[test]
fn every_help_prints_its_examples() {
    for (name, lines) in all_examples() {
        let words: Vec<_> = name.split(' ').skip(1).chain(["--help"]).collect();
        let help = envforge(&words);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{name}");
        assert!(help.stdout.contains("\nExamples:\n"), "{name}: {}", help.stdout);
        assert!(lines.iter().all(|line| help.stdout.contains(line)), "{name}: {}", help.stdout);
    }
}

#[test]
fn every_command_but_those_of_containers_has_an_example_that_runs() {
    let needs: BTreeMap<_, _> = OUTCOMES
        .iter()
        .filter_map(|(line, outcome)| match outcome {
            Needs(need) => Some((*line, *need)),
            Prints(_) | Refuses(_) | Silent => None,
        })
        .collect();
    let none_runs = |lines: &Vec<String>| lines.iter().all(|line| needs.contains_key(line.as_str()));
    let mut without: Vec<_> = Vec::new();
    for (name, lines) in all_examples().into_iter().filter(|(_, lines)| none_runs(lines)) {
        let reasons: BTreeSet<_> = lines.iter().map(|line| needs[line.as_str()]).collect();
        without.push((name, reasons.into_iter().collect::<Vec<_>>()));
    }
    let without: Vec<_> = without.iter().map(|(name, needs)| (name.as_str(), needs.as_slice())).collect();
    let expected: [(&str, &[Need]); 12] = [
        ("envforge evidence", &[Registry]),
        ("envforge evidence admit", &[Registry]),
        ("envforge evidence withdraw", &[Registry]),
        ("envforge export oci", &[Containers, OtherProgram]),
        ("envforge export sif", &[Containers, OtherProgram]),
        ("envforge export squashfs", &[Containers, OtherProgram]),
        ("envforge import", &[Containers]),
        ("envforge logs", &[Shell]),
        ("envforge outdated", &[Containers]),
        ("envforge push", &[Containers]),
        ("envforge run", &[Containers]),
        ("envforge shell", &[Containers, Shell]),
    ];
    assert_eq!(without, expected, "tests of their own run them");
}

#[test]
fn examples_of_help_run_as_shown() {
    let mut wrong = Vec::new();
    for (example, outcome) in OUTCOMES {
        let (code, text) = match outcome {
            Prints(text) => (0, *text),
            Refuses(text) => (1, *text),
            Silent => (0, ""),
            Needs(_) => continue,
        };
        let run = run(example);
        let is_shown = run.stdout.contains(text) && text.is_empty() == run.stdout.is_empty();
        if run.code != code || !is_shown {
            wrong.push(format!("{example}\n  code {}: {}", run.code, run.stdout));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
