//! Compose and devcontainer files: which image they start. Their other settings stay with them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::conda::first_line;
use super::dockerfile::shell_lines;
use super::image_name::{UNNAMED, take_image};
use super::place::Origin;
use super::pythons::exact;
use super::reading::{Build as DockerBuild, Given, Kind, PythonFact, Reading};
use super::variables::filled;
use crate::model::compat::Matrix;

#[derive(Deserialize)]
struct Compose {
    #[serde(default)]
    services: BTreeMap<String, Service>,
}

#[derive(Deserialize)]
struct Service {
    image: Option<String>,
    build: Option<Build>,
    command: Option<IgnoredAny>,
    entrypoint: Option<IgnoredAny>,
    environment: Option<IgnoredAny>,
    env_file: Option<IgnoredAny>,
    volumes: Option<IgnoredAny>,
    ports: Option<IgnoredAny>,
    shm_size: Option<IgnoredAny>,
    ipc: Option<IgnoredAny>,
    user: Option<IgnoredAny>,
    working_dir: Option<IgnoredAny>,
}

impl Service {
    /// The names of what says how the service is started.
    fn settings(&self) -> Vec<&'static str> {
        let all = [
            ("command", &self.command),
            ("entrypoint", &self.entrypoint),
            ("environment", &self.environment),
            ("env_file", &self.env_file),
            ("volumes", &self.volumes),
            ("ports", &self.ports),
            ("shm_size", &self.shm_size),
            ("ipc", &self.ipc),
            ("user", &self.user),
            ("working_dir", &self.working_dir),
        ];
        all.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect()
    }
}

/// Notes the settings of a service, which are none of an image.
fn leave_settings(reading: &mut Reading, text: &str, name: &str, settings: &[&str]) {
    if settings.is_empty() {
        return;
    }
    let head = format!("{name}:");
    let line = text.lines().position(|line| line.trim() == head).map(|at| at + 1);
    let origin = Origin { file: reading.file.clone(), line };
    let why = "say how the image is started: they stay in this file; `[variables]` and `[shell]` of envforge.toml have some of them";
    reading.leave(origin, &format!("service {name}: {}", settings.join(", ")), why);
}

/// A Dockerfile, by its folder alone or with its name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Build {
    Folder(String),
    File {
        context: Option<String>,
        dockerfile: Option<String>,
        dockerfile_inline: Option<String>,
        args: Option<serde_json::Value>,
        target: Option<String>,
    },
}

impl Build {
    /// The Dockerfile, relative to the file that names it; `None`: it is in no file of the folder.
    fn file(&self) -> Option<String> {
        let (context, name) = match self {
            Self::Folder(folder) => (folder.as_str(), "Dockerfile"),
            Self::File { dockerfile_inline: Some(_), .. } => return None,
            Self::File { context, dockerfile, .. } => {
                (context.as_deref().unwrap_or("."), dockerfile.as_deref().unwrap_or("Dockerfile"))
            }
        };
        let is_address = context.contains("://") || context.starts_with("git@");
        (!is_address).then(|| format!("{context}/{name}"))
    }

    /// The arguments and the stage that it gives to the Dockerfile.
    fn given(&self, variables: &BTreeMap<String, String>) -> Given {
        let Self::File { args, target, .. } = self else { return Given::default() };
        let plain = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let pairs: Vec<(String, String)> = match args {
            Some(serde_json::Value::Object(table)) => {
                table.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
            }
            Some(serde_json::Value::Array(list)) => {
                let texts = list.iter().filter_map(serde_json::Value::as_str);
                // A name alone has its value from the environment.
                let pair = |text: &str| match text.split_once('=') {
                    Some((name, value)) => (name.to_owned(), value.to_owned()),
                    None => (text.to_owned(), format!("${{{text}}}")),
                };
                texts.map(pair).collect()
            }
            _ => Vec::new(),
        };
        let pairs = pairs.into_iter().map(|(name, value)| (name, filled(&value, variables)));
        let arguments = pairs.filter(|(_, value)| !value.contains('$')).collect();
        Given { arguments, target: target.clone() }
    }
}

/// Notes a Dockerfile with what is given to it.
fn give(reading: &mut Reading, origin: &Origin, file: String, given: Given) {
    if !given.arguments.is_empty() {
        let names: Vec<_> = given.arguments.keys().map(String::as_str).collect();
        reading.keep(origin.clone(), &format!("args {}", names.join(", ")), "given to the Dockerfile");
    }
    if let Some(target) = &given.target {
        reading.keep(origin.clone(), &format!("target {target}"), "the stage that is read");
    }
    reading.builds.push(DockerBuild { origin: origin.clone(), file, given });
}

/// Reads a compose file; `variables` are those of the `.env` next to it.
pub fn from_compose(
    file: &str,
    text: &str,
    variables: &BTreeMap<String, String>,
    matrix: &Matrix,
) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    let compose: Compose = match serde_saphyr::from_str(text) {
        Ok(compose) => compose,
        Err(error) => {
            let why = format!("not a compose file: {}", first_line(&error.to_string()));
            return Reading::unreadable(file, Kind::Image, &why);
        }
    };
    for (name, service) in compose.services {
        let settings = service.settings();
        let before = reading.left.len();
        match (service.image, service.build) {
            (Some(written), None) => {
                let origin = Origin::holding(file, text, &written);
                let image = filled(&written, variables);
                take_image(&mut reading, &image, &origin, matrix);
            }
            (_, Some(build)) => {
                let origin = Origin::holding(file, text, "build");
                if let Some(named) = build.file() {
                    let why = "its Dockerfile is read; `envforge export compose` writes one for the image";
                    reading.keep(origin.clone(), &format!("service {name}"), why);
                    let given = build.given(variables);
                    give(&mut reading, &origin, filled(&named, variables), given);
                } else {
                    let why = "its Dockerfile is in no file of this folder: read it with `envforge init --from FILE`";
                    reading.leave(origin, &format!("service {name}"), why);
                }
            }
            (None, None) => reading.leave(Origin::holding(file, text, &name), &name, "names no image"),
        }
        // What was left out says already that the service is none of the project.
        if reading.left.len() == before {
            leave_settings(&mut reading, text, &name, &settings);
        }
    }
    // An image without any name may be that of another service.
    reading.open_images.retain(|open| open.package.is_some());
    // Databases and web servers are none of the project's image, where another service is.
    if !reading.packages.is_empty() || !reading.cuda.is_empty() || !reading.builds.is_empty() {
        for note in reading.left.iter_mut().filter(|note| note.why == UNNAMED) {
            "another service of the file: it stays with it".clone_into(&mut note.why);
        }
    }
    reading
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Devcontainer {
    image: Option<String>,
    build: Option<Build>,
    docker_file: Option<String>,
    docker_compose_file: Option<OneOrMore>,
    #[serde(default)]
    features: BTreeMap<String, serde_json::Value>,
    on_create_command: Option<serde_json::Value>,
    update_content_command: Option<serde_json::Value>,
    post_create_command: Option<serde_json::Value>,
}

impl Devcontainer {
    /// Takes over what is installed behind the image: features and commands.
    fn installs(&self, reading: &mut Reading, text: &str, matrix: &Matrix) {
        for (name, options) in &self.features {
            let origin = Origin::holding(&reading.file, text, name);
            let short = name.rsplit('/').next().unwrap_or_default().split(':').next().unwrap_or_default();
            let version = options.get("version").and_then(serde_json::Value::as_str);
            match version.and_then(exact).filter(|_| short == "python") {
                Some(versions) => {
                    reading.python.push(PythonFact { origin, versions, by: format!("feature {name}") });
                }
                None => {
                    reading.leave(origin, name, "a feature of dev containers: the image does not have it");
                }
            }
        }
        let commands = [&self.on_create_command, &self.update_content_command, &self.post_create_command];
        for value in commands.into_iter().flatten() {
            let all: Vec<String> = match value {
                serde_json::Value::String(command) => vec![command.clone()],
                serde_json::Value::Array(words) => {
                    vec![words.iter().filter_map(serde_json::Value::as_str).collect::<Vec<_>>().join(" ")]
                }
                serde_json::Value::Object(table) => {
                    table.values().filter_map(serde_json::Value::as_str).map(str::to_owned).collect()
                }
                _ => Vec::new(),
            };
            for command in all {
                let origin = Origin::holding(&reading.file, text, &command);
                shell_lines(reading, &command, &origin, matrix);
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Reads a devcontainer.json, which may have comments.
pub fn from_devcontainer(file: &str, text: &str, matrix: &Matrix) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    match serde_json::from_str::<Devcontainer>(&without_comments(text)) {
        Ok(found) => {
            if let Some(image) = &found.image {
                take_image(&mut reading, image, &Origin::holding(file, text, image), matrix);
            }
            found.installs(&mut reading, text, matrix);
            let mut files: Vec<String> = found.docker_file.into_iter().collect();
            // The Dockerfile's name is relative to the devcontainer.json, whatever the context.
            if let Some(build) = found.build {
                let given = build.given(&BTreeMap::new());
                if let Build::File { dockerfile, .. } = build {
                    let name = dockerfile.unwrap_or_else(|| "Dockerfile".to_owned());
                    let origin = Origin::holding(file, text, &name);
                    reading.keep(origin.clone(), &name, DEVCONTAINER);
                    give(&mut reading, &origin, name, given);
                }
            }
            match found.docker_compose_file {
                Some(OneOrMore::One(name)) => files.push(name),
                Some(OneOrMore::More(names)) => files.extend(names),
                None => {}
            }
            for name in files {
                let origin = Origin::holding(file, text, &name);
                reading.keep(origin.clone(), &name, DEVCONTAINER);
                reading.includes.push((origin, name));
            }
        }
        Err(error) => reading.leave(Origin::file(file), "the whole file", format!("not JSON: {error}")),
    }
    reading
}

const DEVCONTAINER: &str =
    "it is read; `envforge export devcontainer` writes a devcontainer.json for the image";

/// JSON with comments and commas before a closing bracket, as editors write it, without them.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_text = false;
    while let Some(c) = rest.next() {
        match c {
            '"' => in_text = !in_text,
            '\\' if in_text => {
                out.push(c);
                out.extend(rest.next());
                continue;
            }
            '/' if !in_text && rest.peek() == Some(&'/') => {
                while rest.peek().is_some_and(|c| *c != '\n') {
                    rest.next();
                }
                continue;
            }
            '/' if !in_text && rest.peek() == Some(&'*') => {
                let mut before = ' ';
                for next in rest.by_ref().skip(1) {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
                continue;
            }
            '}' | ']' if !in_text => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compose(file: &str, text: &str) -> Reading {
        let variables = BTreeMap::from([("TORCH_VERSION".to_owned(), "2.4.0".to_owned())]);
        from_compose(file, text, &variables, crate::model::compat::embedded())
    }

    #[test]
    fn images_of_services_and_editors_are_read() {
        let text =
            "services:\n  a:\n    image: pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime\n  b:\n    build: .\n";
        let reading = compose("compose.yaml", text);
        assert_eq!(reading.packages[0].origin.line, Some(3));
        assert_eq!(reading.kept.len(), 1);
        let text = "services:\n  a:\n    image: ${IMAGE:-pytorch/pytorch:2.4.1-cuda12.1-cudnn9-devel}\n  b:\n    image: ${OWN}\n  c:\n    build: { context: .., dockerfile: docker/Dockerfile.gpu }\n";
        let reading = compose("docker/compose.yaml", text);
        assert_eq!(reading.packages[0].requirement(), "torch==2.4.1");
        assert_eq!(reading.left[0].written, "${OWN}");
        let text = "services:\n  a:\n    build: { context: ., target: train, args: { BASE: x } }\n  b:\n    build: https://h.test/x.git\n  c:\n    build: { dockerfile_inline: 'FROM x' }\n";
        let other = compose("compose.yaml", text);
        let left: Vec<_> = other.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["service b", "service c"]);
        let given = &other.builds[0].given;
        assert_eq!((given.arguments["BASE"].as_str(), given.target.as_deref()), ("x", Some("train")));
        assert_eq!(reading.builds[0].file, "../docker/Dockerfile.gpu");
        let text = "services:\n  a:\n    build: { context: ., args: ['TORCH=${TORCH_VERSION}', 'KEY', 'B=1'] }\n  db:\n    image: postgres:16\n";
        let other = compose("compose.yaml", text);
        let given: Vec<_> = other.builds[0].given.arguments.iter().collect();
        assert_eq!(given.len(), 2);
        assert_eq!(given[1].1, "2.4.0");
        assert!(other.left[0].why.starts_with("another service"), "{:?}", other.left);
        let text = "{\n  \"dockerComposeFile\": [\"../a.yaml\", \"b.yaml\"],\n  \"build\": { \"dockerfile\": \"../Dockerfile\", \"args\": {} },\n}\n";
        let reading = from_devcontainer("devcontainer.json", text, crate::model::compat::embedded());
        let files: Vec<_> = reading.includes.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!((files, reading.builds[0].file.as_str()), (vec!["../a.yaml", "b.yaml"], "../Dockerfile"));
        let text = "{\n  // ours\n  \"image\": \"python:3.11\", /* a \"b */ \"x\": [1, 2,],\n}\n";
        let reading = from_devcontainer("devcontainer.json", text, crate::model::compat::embedded());
        assert_eq!(reading.python.len(), 1, "{reading:?}");
        let text = "{ \"image\": \"ubuntu:24.04\", \"features\": { \"ghcr.io/devcontainers/features/python:1\": { \"version\": \"3.11\" }, \"ghcr.io/devcontainers/features/nvidia-cuda:1\": {} }, \"postCreateCommand\": \"pip install torch==2.4.0 && echo ok\" }\n";
        let reading = from_devcontainer("devcontainer.json", text, crate::model::compat::embedded());
        assert_eq!(reading.packages[0].requirement(), "torch==2.4.0");
        assert_eq!(reading.python[0].versions.to_string(), "==3.11.*");
        assert!(reading.left[0].why.starts_with("a feature"), "{:?}", reading.left);
    }
}
