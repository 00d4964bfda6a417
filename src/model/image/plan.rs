//! Lock to build plan: the description of the image, its context and its required checks.
//!
//! Pure: the cache's paths are passed in, nothing is read. Holds no address and no credential: those are build secrets.

use std::fmt::Write as _;

use camino::Utf8PathBuf;
use serde_json::json;

use crate::model::image::component::ComponentKind;
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::context_files::BASE_ARCHIVE;
use crate::model::image::description::{
    AptDescription, BaseDescription, CopyDescription, ImageDescription, LayerPlan, RunDescription,
    SystemDescription,
};
use crate::model::image::labels::labels;
use crate::model::image::layers::layers;
use crate::model::image::login_profile::{LOGIN_PROFILE, login_profile};
use crate::model::image::render::render;
use crate::model::image::toolkit::toolkit_step;
use crate::model::lock::{Lock, LockedDeb, WheelLayer};

pub use crate::model::image::context_files::{BaseSource, CachedFile, ContextFiles};
pub use crate::model::image::description::BuildPlan;
pub use crate::model::image::labels::{LOCK_LABEL, NAME_LABEL, UNVERIFIED, current_name, name};
pub(crate) use crate::model::image::layers::summarize;
pub use crate::model::image::variables::{environment, environment_of};

/// The plan for a lock.
///
/// # Panics
/// If `files` does not have one path for each package of `lock.system`, `lock.unpacked` and `lock.apt`.
pub fn plan(lock: &Lock, files: ContextFiles) -> BuildPlan {
    assert_eq!(lock.system.len(), files.debs.len(), "one file for each locked package");
    assert_eq!(lock.unpacked.len(), files.unpacked.len(), "one file for each package to unpack");
    assert_eq!(lock.apt.len(), files.apt.len(), "one file for each package the user added");
    let (layers, mut context): (Vec<_>, Vec<_>) = layers(lock).into_iter().unzip();
    let image = description(lock, layers, &files);
    context.push(steps());
    context.push(image_files(lock));
    context.push(debs("debs", &lock.system, files.debs));
    context.push(debs("toolkit", &lock.unpacked, files.unpacked));
    context.push(debs("apt", &lock.apt, files.apt));
    context.push(files.copies);
    let wheels = files.wheels.into_iter().map(|(file, wheel)| wheel.entry(format!("vendor/{file}"), 0o644));
    context.push(wheels.collect());
    let local =
        files.local.into_iter().map(|(file, wheel)| wheel.entry(format!("wheels/local/{file}"), 0o644));
    context.push(local.collect());
    let mut context: Vec<_> = context.into_iter().flatten().collect();
    if image.toolkit.is_some() {
        context.push(ContextEntry::text(
            "steps/toolkit.py",
            include_str!("../../../templates/steps/toolkit.py"),
        ));
    }
    context.push(files.uv.entry("tools/uv".to_owned(), 0o755));
    context.push(ContextEntry::program("files/opt/envforge/agent", files.agent));
    context.push(ContextEntry::text("Dockerfile", render(&image)));
    if let BaseSource::Archive(archive) = files.bottom {
        context.push(archive.entry(BASE_ARCHIVE.to_owned(), 0o644));
    }
    context.sort_by(|a, b| a.path.cmp(&b.path));
    BuildPlan { image, context }
}

/// The image of a lock with these wheel layers.
fn description(lock: &Lock, mut layers: Vec<LayerPlan>, files: &ContextFiles) -> ImageDescription {
    let stack = &lock.stack;
    let vendored = !files.wheels.is_empty();
    for layer in &mut layers {
        layer.local &= !vendored;
    }
    let (reference, archive) = match &files.bottom {
        BaseSource::Image(reference) => (reference.as_str(), ""),
        BaseSource::Archive(_) => ("scratch", BASE_ARCHIVE),
    };
    let toolkit = toolkit_step(lock);
    let components = components(lock, &layers, toolkit.is_some());
    ImageDescription {
        name: name(lock),
        envforge: env!("CARGO_PKG_VERSION"),
        matrix: stack.matrix.clone(),
        lock: lock.hash(),
        cuda: stack.cuda,
        python: stack.python,
        framework_index: lock.uses_framework_index(),
        base: BaseDescription {
            name: lock.base.name.clone(),
            suite: lock.base.suite.clone(),
            packages: lock.base.packages.len(),
            reference: reference.to_owned(),
            archive,
        },
        system: SystemDescription { packages: lock.system.len() },
        layers,
        toolkit,
        apt: (!lock.apt.is_empty())
            .then(|| AptDescription { packages: lock.apt.len(), names: summarize(&lock.added.apt) }),
        vendored,
        indexes: lock.further_indexes().next().is_some(),
        copies: copies(lock),
        runs: runs(lock),
        environment: lock.environment.clone(),
        labels: labels(lock, &components),
    }
}

/// The component of each layer that the Dockerfile makes above the base, lowest first.
fn components(lock: &Lock, layers: &[LayerPlan], has_toolkit: bool) -> Vec<ComponentKind> {
    let mut all = vec![ComponentKind::System];
    for (number, layer) in layers.iter().filter(|layer| !layer.user).enumerate() {
        all.push(layer.kind);
        // Directly above the first layer, whose libraries it links to.
        if number == 0 && has_toolkit {
            all.push(ComponentKind::Toolkit);
        }
    }
    all.push(ComponentKind::WorkDir);
    all.extend((!lock.apt.is_empty()).then_some(ComponentKind::Apt));
    all.extend(layers.iter().filter(|layer| layer.user).map(|layer| layer.kind));
    all.push(ComponentKind::Files);
    all.extend(lock.added.copy.iter().map(|_| ComponentKind::Copy));
    all.extend(lock.added.run.iter().map(|_| ComponentKind::Run));
    all
}

fn copies(lock: &Lock) -> Vec<CopyDescription> {
    let one = |(number, copy): (usize, &crate::model::lock::LockedCopy)| {
        let (tail, end) = if copy.folder { ("", "/") } else { (copy.file_name(), "") };
        let to = format!("{}{end}", copy.to.trim_end_matches('/'));
        CopyDescription {
            from: copy.from.clone(),
            to: copy.to.clone(),
            folder: copy.folder,
            name: copy.file_name().to_owned(),
            words: json!([format!("copy/{number}/{tail}"), to]).to_string(),
        }
    };
    lock.added.copy.iter().enumerate().map(one).collect()
}

fn runs(lock: &Lock) -> Vec<RunDescription> {
    let one = |run: &crate::model::lock::LockedRun| {
        let mut instruction = "RUN ".to_owned();
        for name in &run.secrets {
            let _ = write!(
                instruction,
                "--mount=type=secret,id=user-{name},target=/run/secrets/{name},uid=1000,required=true \\\n    "
            );
        }
        RunDescription {
            instruction: instruction + &json!(["/bin/bash", "-euc", run.command]).to_string(),
            command: run.command.clone(),
            secrets: run.secrets.clone(),
        }
    };
    lock.added.run.iter().map(one).collect()
}

fn debs(folder: &str, locked: &[LockedDeb], paths: Vec<Utf8PathBuf>) -> Vec<ContextEntry> {
    let entry = |(deb, path): (&LockedDeb, Utf8PathBuf)| {
        let file = deb.path.rsplit('/').next().unwrap_or(&deb.path);
        let content = ContextContent::File { path, size: deb.size, sha256: deb.sha256.clone() };
        ContextEntry { path: format!("{folder}/{file}"), mode: 0o644, content }
    };
    locked.iter().zip(paths).map(entry).collect()
}

fn steps() -> Vec<ContextEntry> {
    vec![
        ContextEntry::text("steps/system.sh", include_str!("../../../templates/steps/system.sh")),
        ContextEntry::text("steps/wheels.sh", include_str!("../../../templates/steps/wheels.sh")),
        ContextEntry::text(
            "steps/compile.py",
            concat!(
                include_str!("../../../templates/steps/one_module.py"),
                include_str!("../../../templates/steps/compile.py")
            ),
        ),
    ]
}

/// The files that are copied onto the image's root.
fn image_files(lock: &Lock) -> Vec<ContextEntry> {
    let (mut constraints, mut names) = (String::new(), String::new());
    // The project itself pins nothing: its own files are the same in an image without it.
    for wheel in lock.wheels.iter().filter(|wheel| wheel.layer != WheelLayer::Project) {
        let _ = writeln!(constraints, "{}=={}", wheel.name, wheel.version);
        let _ = writeln!(names, "{}", wheel.name);
    }
    let program =
        |path: &str, text: &'static str| ContextEntry::program(&format!("files/opt/envforge/{path}"), text);
    let text = |path: &str, text: String| ContextEntry::text(&format!("files/opt/envforge/{path}"), text);
    let mut files = vec![
        program("entrypoint", include_str!("../../../templates/files/entrypoint.sh")),
        program("bin/pip", include_str!("../../../templates/files/pip.sh")),
        program("bin/uv", include_str!("../../../templates/files/uv.sh")),
        text("venv.sh", include_str!("../../../templates/files/venv.sh").to_owned()),
        text("satisfied.py", include_str!("../../../templates/files/satisfied.py").to_owned()),
        text("constraints.txt", constraints),
        text("locked.txt", names),
    ];
    if let Some(path) = lock.environment.get("PATH").filter(|_| lock.keeps_login_path()) {
        files.push(ContextEntry::text(&format!("files/{LOGIN_PROFILE}"), login_profile(path)));
    }
    files
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::*;
    use crate::model::compat;
    use crate::model::compat::tables::Channel;
    use crate::model::image::labels::LAYERS_LABEL;
    use crate::model::lock::{
        BaseProvider, IndexKind, LockMetadata, LockedBase, LockedCheck, LockedCopy, LockedRun, LockedTool,
        LockedWheel, SCHEMA, UserAdditions,
    };
    use crate::model::resolve::{ResolveOptions, resolve};
    use crate::model::stack::Stack;
    use crate::model::target::Target;
    use crate::model::versions::Machine;

    fn wheel(name: &str, version: &str, layer: WheelLayer, index: IndexKind) -> LockedWheel {
        let file = format!("{}-{version}-py3-none-any.whl", name.replace('-', "_"));
        LockedWheel {
            name: name.into(),
            version: version.into(),
            file,
            sha256: "a".repeat(64),
            size: None,
            index,
            index_name: None,
            layer,
        }
    }

    fn stack(spec: &str) -> Stack {
        let spec = spec.parse().expect("a spec");
        let target = Target::any(Machine::X86_64);
        resolve(&spec, &target, compat::embedded(), &ResolveOptions::default()).expect("resolves")
    }

    fn unpacked(name: &str) -> LockedDeb {
        LockedDeb {
            name: name.into(),
            version: "1".into(),
            architecture: "amd64".into(),
            sha256: "e".repeat(64),
            size: 84_000_000,
            path: format!("pool/non-free/n/{name}_1_amd64.deb"),
        }
    }

    /// A lock of few wheels for the stack that the matrix gives that spec.
    fn lock(spec: &str) -> Lock {
        let mut stack = stack(spec);
        // The edition changes with every fact; it is a record, not what these tests are about.
        stack.matrix = "2026-11-20.000000000000".to_owned();
        let index = if stack.channel == Channel::Default { IndexKind::Default } else { IndexKind::Framework };
        let local = if index == IndexKind::Framework { format!("+{}", stack.cuda) } else { String::new() };
        let major = stack.cuda.major;
        let cudnn = stack.cudnn.as_ref().map(ToString::to_string).unwrap_or_default();
        let deb = LockedDeb {
            name: "python3".into(),
            version: "3.11.2-1+b1".into(),
            architecture: "amd64".into(),
            sha256: "b".repeat(64),
            size: 26_000,
            path: "pool/main/p/python3-defaults/python3_3.11.2-1+b1_amd64.deb".into(),
        };
        Lock {
            schema: SCHEMA,
            spec: spec.to_owned(),
            added: UserAdditions::default(),
            base: LockedBase {
                provider: BaseProvider::Bootstrap,
                name: stack.base.clone(),
                suite: stack.suite.clone(),
                digest: None,
                content: None,
                image: None,
                cuda: false,
                packages: vec![deb.clone()],
            },
            tools: vec![LockedTool {
                name: "uv".into(),
                version: "0.13.9".into(),
                file: "uv.whl".into(),
                sha256: "c".repeat(64),
            }],
            system: vec![deb],
            apt: Vec::new(),
            unpacked: stack.nvcc.iter().flat_map(|nvcc| &nvcc.packages).map(|name| unpacked(name)).collect(),
            wheels: vec![
                wheel(&format!("nvidia-cudnn-cu{major}"), &cudnn, WheelLayer::Cuda, index),
                wheel("torch", &format!("{}{local}", stack.version), WheelLayer::Framework, index),
                wheel("sympy", "1.14.0", WheelLayer::Framework, IndexKind::Default),
                wheel("jupyterlab", "4.5.0", WheelLayer::Stack, IndexKind::Default),
            ],
            sources: Vec::new(),
            environment: environment(&stack),
            stack,
            records: LockMetadata::default(),
        }
    }

    fn planned(lock: &Lock, bottom: BaseSource) -> BuildPlan {
        let uv = CachedFile { path: "/cache/uv".into(), size: 1, sha256: "0".repeat(64) };
        let debs = lock.system.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let unpacked =
            lock.unpacked.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let apt = lock.apt.iter().map(|deb| Utf8PathBuf::from(format!("/cache/{}", deb.name))).collect();
        let (copies, wheels) = (vec![], vec![]);
        let local = lock.local_wheels().map(|wheel| (wheel.file.clone(), uv.clone())).collect();
        let agent = Bytes::from_static(b"agent");
        plan(lock, ContextFiles { bottom, debs, unpacked, apt, copies, wheels, local, uv, agent })
    }

    fn text<'a>(plan: &'a BuildPlan, path: &str) -> &'a str {
        let entry = plan.context.iter().find(|entry| entry.path == path).expect("the context has it");
        let ContextContent::Bytes(bytes) = &entry.content else { panic!("made here") };
        std::str::from_utf8(bytes).expect("text")
    }

    fn image() -> BaseSource {
        BaseSource::Image("envforge-base:0123456789abcdef".to_owned())
    }

    #[test]
    fn dockerfiles_of_five_stacks() {
        for spec in ["2.8-cu128", "2.7-cu118", "2.6-cu124", "2.11-cu130", "2.15-cu132"] {
            let plan = planned(&lock(&format!("pytorch-cuda:{spec}")), image());
            // The hash covers the reasons of every choice; a reworded one is no change of the Dockerfile.
            let dockerfile = text(&plan, "Dockerfile")
                .replace(&plan.image.lock, "LOCK")
                .replace(&plan.image.lock[..12], "LOCK");
            insta::assert_snapshot!(spec, dockerfile);
        }
    }

    #[test]
    fn dockerfiles_with_nvcc_from_each_source() {
        for (source, spec) in [
            ("vendor", "pytorch-cuda:2.8-cu128-devel"),
            ("distribution", "cuda:11.8-devel"),
            ("wheels", "cuda:13.2-devel"),
            ("none", "cuda:12.8"),
        ] {
            let plan = planned(&lock(spec), image());
            let dockerfile = text(&plan, "Dockerfile");
            let start = dockerfile.find("# 1. System").expect("the steps");
            let dockerfile = dockerfile.replace(&plan.image.lock, "LOCK");
            let start = start.min(dockerfile.len());
            insta::assert_snapshot!(format!("nvcc-from-{source}"), &dockerfile[start..]);
            let debs: Vec<_> =
                plan.context.iter().filter(|entry| entry.path.starts_with("toolkit/")).collect();
            assert_eq!(debs.len(), lock(spec).unpacked.len(), "{source}");
            let checks = crate::model::verdict::required_checks::static_checks(&lock(spec));
            assert_eq!(checks.iter().any(|check| check == "nvcc"), source != "none", "{source}");
        }
    }

    #[test]
    fn exported_dockerfile_contains_its_base() {
        let archive = CachedFile { path: "/cache/base".into(), size: 9, sha256: "d".repeat(64) };
        let plan = planned(&lock("pytorch-cuda:2.8-cu128"), BaseSource::Archive(archive));
        let dockerfile = text(&plan, "Dockerfile");
        assert!(dockerfile.contains("FROM scratch\nADD base.tar /\n"), "{dockerfile}");
        assert!(plan.context.iter().any(|entry| entry.path == BASE_ARCHIVE && entry.size() == 9));
    }

    #[test]
    fn wheels_of_the_framework_index_have_their_own_file() {
        let plan = planned(&lock("pytorch-cuda:2.7-cu118"), image());
        assert!(
            text(&plan, "wheels/framework.framework.txt")
                .starts_with("torch==2.7.1+cu118 --hash=sha256:aaaa")
        );
        assert!(text(&plan, "wheels/framework.txt").starts_with("sympy==1.14.0 --hash="));
        assert!(text(&plan, "files/opt/envforge/constraints.txt").contains("torch==2.7.1+cu118\n"));
    }

    #[test]
    fn dockerfile_uses_only_docker_20_10_syntax() {
        for spec in ["pytorch-cuda:2.8-cu128", "pytorch-cuda:2.7-cu118"] {
            let plan = planned(&lock(spec), image());
            let dockerfile = text(&plan, "Dockerfile");
            for word in ["# syntax=", "<<", "--link", "--network", "--security", "ARG ", "http"] {
                assert!(!dockerfile.contains(word), "{word} in\n{dockerfile}");
            }
        }
    }

    #[test]
    fn context_is_sorted_and_readable() {
        let plan = planned(&lock("pytorch-cuda:2.8-cu128"), image());
        assert!(plan.context.is_sorted_by(|a, b| a.path < b.path));
        assert!(plan.context.iter().all(|entry| matches!(entry.mode, 0o644 | 0o755)));
    }

    #[test]
    fn build_with_additions_has_no_canonical_name() {
        let mut with = lock("pytorch-cuda:2.8-cu128");
        assert_eq!(name(&with), "pytorch-cuda:2.8.0-cu128-py3.11");
        with.added.python = vec!["humanize".to_owned()];
        with.wheels.push(wheel("humanize", "4.15.0", WheelLayer::User, IndexKind::Default));
        assert_eq!(name(&with), format!("envforge/pytorch-cuda:{}", &with.hash()[..12]));
        let plan = planned(&with, image());
        assert_eq!(plan.image.layers.len(), 4);
        assert!(plan.image.layers[3].title.contains("humanize"));
    }

    /// A lock of a project with everything.
    fn project() -> Lock {
        let mut with = lock("pytorch-cuda:2.8-cu128");
        let copy = |from: &str, to: &str, folder| LockedCopy {
            from: from.into(),
            to: to.into(),
            folder,
            sha256: "c".repeat(64),
        };
        let run = |command: &str, secrets: &[&str]| LockedRun {
            command: command.into(),
            secrets: secrets.iter().map(|name| (*name).to_owned()).collect(),
        };
        with.added = UserAdditions {
            project: Some("vision-train".into()),
            as_of: None,
            python: vec!["humanize".into()],
            apt: vec!["ffmpeg".into()],
            allow_source: Vec::new(),
            indexes: vec!["internal".into()],
            python_index: Vec::new(),
            variables: BTreeMap::from([("GREETING".into(), "a $HOME \"b\"".into())]),
            copy: vec![copy("configs", "/opt/my configs", true), copy("a.txt", "/opt/a.txt", false)],
            run: vec![run("echo \"$GREETING\" \\\n  > ~/x # '\"", &[]), run("cat /run/secrets/hf", &["hf"])],
            checks: vec![LockedCheck { name: "imports".into(), command: "python -c 1".into() }],
            may_lack: Vec::new(),
        };
        with.environment.extend(with.added.variables.clone());
        with.apt = vec![unpacked("ffmpeg")];
        with.wheels.push(wheel("humanize", "4.15.0", WheelLayer::User, IndexKind::Default));
        with
    }

    #[test]
    fn project_layers_are_above_the_framework() {
        let with = project();
        assert_eq!(name(&with), format!("envforge/vision-train:{}", &with.hash()[..12]));
        let plan = planned(&with, image());
        let dockerfile = text(&plan, "Dockerfile")
            .replace(&plan.image.lock, "LOCK")
            .replace(&plan.image.lock[..12], "LOCK");
        let start = dockerfile.find("WORKDIR").expect("the user's part");
        insta::assert_snapshot!("a-project", &dockerfile[start..]);
    }

    /// The components that the history of an image with this Dockerfile shows.
    fn in_history(dockerfile: &str) -> Vec<&'static str> {
        let text = dockerfile.replace("\\\n", " ");
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        crate::model::image::history::made_layers(&lines).collect()
    }

    #[test]
    fn label_lists_the_component_of_each_layer() {
        let names = |plan: &BuildPlan| -> Vec<&'static str> {
            let ids = plan.image.labels[LAYERS_LABEL].split(',');
            ids.map(|id| ComponentKind::from_id(id).expect("known").name()).collect()
        };
        for spec in ["pytorch-cuda:2.8-cu128", "pytorch-cuda:2.7-cu118", "cuda:13.2-devel", "cuda:12.8"] {
            let plan = planned(&lock(spec), image());
            assert_eq!(names(&plan), in_history(text(&plan, "Dockerfile")), "{spec}");
        }
        let plan = planned(&project(), image());
        assert_eq!(names(&plan), in_history(text(&plan, "Dockerfile")));
        let label = &plan.image.labels[LAYERS_LABEL];
        assert_eq!(label, "system,cuda,framework,stack,workdir,apt,user,files,copy,copy,run,run");
    }
}
