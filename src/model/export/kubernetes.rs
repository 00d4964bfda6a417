//! A pushed image as files for Kubernetes: a kustomize base with a Job, a JupyterLab and the checks of a node.
//!
//! Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::node_affinity::{node_affinity, node_terms};
use crate::model::compat::Matrix;
use crate::model::image::plan::name;
use crate::model::image::render::rendered;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::project::Shell;
use crate::model::request::{Level, MaxAge};
use crate::model::shared_memory::shm_text;
use crate::model::verdict::expectation_file;

/// Files of the base by name.
const TEMPLATES: [(&str, &str); 7] = [
    ("kustomization.yaml", include_str!("../../../templates/kubernetes/kustomization.yaml.j2")),
    ("expect.yaml", include_str!("../../../templates/kubernetes/expect.yaml.j2")),
    ("job.yaml", include_str!("../../../templates/kubernetes/job.yaml.j2")),
    ("shell.yaml", include_str!("../../../templates/kubernetes/shell.yaml.j2")),
    ("verify.yaml", include_str!("../../../templates/kubernetes/verify.yaml.j2")),
    ("verify-group.yaml", include_str!("../../../templates/kubernetes/verify-group.yaml.j2")),
    ("jobset.yaml", include_str!("../../../templates/kubernetes/jobset.yaml.j2")),
];
/// What the init container believes, and the init container itself.
const ADMIT: (&str, &str) = ("admit.yaml", include_str!("../../../templates/kubernetes/admit.yaml.j2"));
const INIT_CONTAINER: &str = include_str!("../../../templates/kubernetes/init-container.yaml.j2");
/// Where the init container reads [`ADMIT`].
const ADMIT_FOLDER: &str = "/admit";
/// The most characters of a name: that of a Job gets a suffix and becomes a label, which has 63.
const LONGEST: usize = 40;

/// How the checks run in a container of their own.
#[derive(Debug, Clone)]
pub struct AgentCall {
    /// The program and its arguments; the facts of the lock are in /envforge/expect.txt.
    pub command: Vec<String>,
    /// Its variables.
    pub variables: Vec<(String, String)>,
}

/// What an init container asks of the image's evidence before the pod starts.
#[derive(Debug, Clone)]
pub struct AdmitCall {
    /// The image of the init container, best by its digest.
    pub image: ImageRef,
    /// Keys whose word counts.
    pub keys: Vec<AdmitKey>,
    /// The agents whose checks count; empty: all.
    pub agents: BTreeSet<String>,
    /// Whether the node's GPUs and driver must be proven, or some GPU.
    pub here: bool,
    /// The lowest level.
    pub level: Level,
    /// The oldest checks.
    pub max_age: MaxAge,
}

/// A public key of an [`AdmitCall`].
#[derive(Debug, Clone)]
pub struct AdmitKey {
    /// The key in PEM form.
    pub pem: String,
    /// The last day whose signatures count: `2027-06-30`.
    pub not_after: Option<String>,
}

/// Returns the files (name, text) for a pushed image; `None`: no GPU that the matrix knows runs the stack.
pub fn kubernetes(
    lock: &Lock,
    shell: &Shell,
    pushed: &ImageRef,
    (agent, admit): (&AgentCall, Option<&AdmitCall>),
    matrix: &Matrix,
) -> Option<Vec<(&'static str, String)>> {
    let terms = node_terms(&lock.stack, matrix);
    if terms.is_empty() {
        return None;
    }
    let affinity = json!({ "nodeAffinity": node_affinity(&terms) });
    let module = crate::model::verdict::module(&lock.stack.framework);
    let smoke = match module {
        "torch" => "import torch; print(torch.__version__, torch.cuda.get_device_name())".to_owned(),
        other => format!("import {other}; print({other}.__version__)"),
    };
    let name = resource_name(lock);
    let init = admit.map(|admit| init_container(admit, pushed));
    let indented_init = |indent: usize| init.as_deref().map(|text| indented(text, indent));
    let mut values = json!({
        "name": &name,
        "envforge": env!("CARGO_PKG_VERSION"),
        "lock": &lock.hash()[..12],
        "image": Value::from(pushed.to_string()).to_string(),
        "affinity": yaml(&affinity, 8),
        "wide_affinity": yaml(&affinity, 16),
        "shm": quantity(&shell.shm_size.clone().unwrap_or_else(|| shm_text(None))),
        "smoke": smoke,
        "agent": Value::from(agent.command.clone()).to_string(),
        "variables": agent.variables,
        "expect": indented(&expectation_file(lock), 4),
        "init": indented_init(6),
        "wide_init": indented_init(14),
        "admit_image": admitting_name(pushed),
    });
    let file = |(name, template): &(&'static str, &str), values: &Value| {
        (*name, rendered(template.trim_end(), values))
    };
    let mut files: Vec<_> = TEMPLATES.iter().map(|one| file(one, &values)).collect();
    if let Some(admit) = admit {
        values["admit"] = admit_values(admit);
        files.push(file(&ADMIT, &values));
    }
    Some(files)
}

/// The image of the init container by its tag: one with this program, next to the pushed image.
pub fn admitting_image(pushed: &ImageRef) -> String {
    format!("{}:{}", admitting_name(pushed), env!("CARGO_PKG_VERSION"))
}

fn admitting_name(pushed: &ImageRef) -> String {
    let (registry, repository) = (pushed.registry(), pushed.repository());
    match repository.rsplit_once('/') {
        Some((folder, _)) => format!("{registry}/{folder}/envforge"),
        None => format!("{registry}/envforge"),
    }
}

fn init_container(admit: &AdmitCall, pushed: &ImageRef) -> String {
    let mut args = vec![pushed.to_string(), format!("--config={ADMIT_FOLDER}/config.toml")];
    if admit.here {
        args.push("--here".to_owned());
    }
    args.push(format!("--level={}", admit.level.as_str()));
    args.push(format!("--max-age={}", admit.max_age));
    let values = json!({
        "image": Value::from(admit.image.to_string()).to_string(),
        "args": yaml(&args.into(), 6),
        "folder": ADMIT_FOLDER,
    });
    rendered(INIT_CONTAINER.trim_end(), &values).trim_end().to_owned()
}

/// The configuration of the init container, and the files of its keys by name.
fn admit_values(admit: &AdmitCall) -> Value {
    let mut config = "[trust]\nkeys = [\n".to_owned();
    let mut files = Vec::new();
    for (number, key) in admit.keys.iter().enumerate() {
        let file = format!("key-{}.pub", number + 1);
        let end = match &key.not_after {
            Some(day) => format!(", not-after = \"{day}\""),
            None => String::new(),
        };
        let _ = writeln!(config, "  {{ file = \"{ADMIT_FOLDER}/{file}\"{end}, for = [\"tests\"] }},");
        files.push(json!({ "file": file, "pem": indented(&key.pem, 4) }));
    }
    config.push_str("]\n");
    if !admit.agents.is_empty() {
        let _ = writeln!(config, "[policy]\nagents = {}", json!(admit.agents));
    }
    json!({ "config": indented(&config, 4), "files": files })
}

/// The project's name, or that of the image, as Kubernetes takes names.
fn resource_name(lock: &Lock) -> String {
    let text = lock.added.project.clone().unwrap_or_else(|| name(lock));
    let lower = text.to_ascii_lowercase();
    let word: String = lower
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .collect();
    let word: String = word.trim_matches('-').chars().take(LONGEST).collect();
    let word = word.trim_end_matches('-');
    // A Service's name begins with a letter.
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        word.to_owned()
    } else {
        format!("env-{word}").trim_end_matches('-').to_owned()
    }
}

/// A size of docker's, `8g`, as a quantity of Kubernetes: `8Gi`.
fn quantity(size: &str) -> String {
    let lower = size.to_ascii_lowercase();
    let digits: String = lower.chars().take_while(char::is_ascii_digit).collect();
    let unit = match lower[digits.len()..].chars().next() {
        Some('k') => "Ki",
        Some('m') => "Mi",
        Some('g') => "Gi",
        Some('t') => "Ti",
        _ => "",
    };
    format!("{digits}{unit}")
}

/// A value as YAML, every line after that many blanks: block style, and a line for what holds words alone.
pub(super) fn yaml(value: &Value, indent: usize) -> String {
    let mut out = String::new();
    write_yaml(&mut out, value, indent);
    out.trim_end_matches('\n').to_owned()
}

fn write_yaml(out: &mut String, value: &Value, indent: usize) {
    let blank = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(text) = flow(field) {
                    let _ = writeln!(out, "{blank}{name}: {text}");
                } else {
                    let _ = writeln!(out, "{blank}{name}:");
                    write_yaml(out, field, indent + 2);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut text = String::new();
                match flow(item) {
                    Some(flow) => text.push_str(&(flow + "\n")),
                    None => write_yaml(&mut text, item, indent + 2),
                }
                let _ = write!(out, "{blank}- {}", text.trim_start());
            }
        }
        scalar => {
            let _ = writeln!(out, "{blank}{}", word(scalar));
        }
    }
}

/// A value in one line: a word, a list of words, or fields of those; `None`: it is deeper.
fn flow(value: &Value) -> Option<String> {
    let words = |items: &[Value]| {
        let is_flat = !items.iter().any(|item| item.is_object() || item.is_array());
        is_flat.then(|| format!("[{}]", items.iter().map(word).collect::<Vec<_>>().join(", ")))
    };
    match value {
        Value::Array(items) => words(items),
        Value::Object(fields) => {
            let field = |(name, field): (&String, &Value)| match field {
                Value::Object(_) => None,
                Value::Array(items) => Some(format!("{name}: {}", words(items)?)),
                scalar => Some(format!("{name}: {}", word(scalar))),
            };
            Some(format!("{{{}}}", fields.iter().map(field).collect::<Option<Vec<_>>>()?.join(", ")))
        }
        scalar => Some(word(scalar)),
    }
}

/// A scalar; a text is quoted unless it can be read as nothing else.
fn word(value: &Value) -> String {
    let is_plain = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./-".contains(&byte))
            && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
                .contains(&text.to_ascii_lowercase().as_str())
    };
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn indented(text: &str, indent: usize) -> String {
    let blank = " ".repeat(indent);
    text.lines().map(|line| format!("{blank}{line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    #[test]
    fn pushed_image_becomes_a_base() {
        let mut lock = sample::lock();
        lock.added.project = Some("Vision_ft".to_owned());
        let pushed = format!("registry.example.com/team/vision@sha256:{}", "a".repeat(64));
        let agent = AgentCall {
            command: ["/opt/envforge/agent", "full"].map(str::to_owned).to_vec(),
            variables: vec![("HOME".to_owned(), "/tmp".to_owned())],
        };
        let pushed: ImageRef = pushed.parse().expect("a reference");
        let admit = AdmitCall {
            image: admitting_image(&pushed).parse().expect("a reference"),
            keys: vec![AdmitKey { pem: "-----BEGIN\n".to_owned(), not_after: Some("2027-06-30".to_owned()) }],
            agents: BTreeSet::from(["a".repeat(64)]),
            here: true,
            level: Level::Full,
            max_age: MaxAge::DEFAULT,
        };
        let base = |admit: Option<&AdmitCall>| {
            kubernetes(&lock, &Shell::default(), &pushed, (&agent, admit), crate::model::compat::embedded())
                .expect("it runs")
        };
        let files = base(Some(&admit));
        // Without evidence that is asked for nothing of it is there.
        let bare = base(None);
        assert!(bare.len() + 1 == files.len() && bare.iter().all(|(_, text)| !text.contains("admit")));
        let short = lock.hash()[..12].to_owned();
        let shown = files.iter().filter(|(name, _)| *name != "expect.yaml");
        let shown = shown.map(|(name, text)| ["--- ", name, "\n", &text.replace(&short, "LOCK")].concat());
        let all = shown.collect::<Vec<_>>().concat();
        insta::assert_snapshot!(all);
    }

    #[test]
    fn names_and_sizes_are_those_of_kubernetes() {
        let mut lock = sample::lock();
        for (project, wanted) in [
            ("vision", "vision"),
            ("Vision_FT.2", "vision-ft-2"),
            ("3d", "env-3d"),
            ("_", "env"),
            (&"x".repeat(90), &"x".repeat(LONGEST)),
        ] {
            lock.added.project = Some(project.to_owned());
            assert_eq!(resource_name(&lock), wanted);
        }
        for (pushed, wanted) in [
            ("registry.example.com/team/vision", "registry.example.com/team/envforge:"),
            ("registry.example.com:5000/vision", "registry.example.com:5000/envforge:"),
            ("team/vision", "docker.io/team/envforge:"),
        ] {
            let pushed: ImageRef = pushed.parse().expect("a reference");
            assert_eq!(admitting_image(&pushed), format!("{wanted}{}", env!("CARGO_PKG_VERSION")));
        }
        for (size, wanted) in
            [("8g", "8Gi"), ("512M", "512Mi"), ("64kb", "64Ki"), ("1000", "1000"), ("2T", "2Ti")]
        {
            assert_eq!(quantity(size), wanted);
        }
    }
}
