//! Compose and devcontainer files: which image they start. Their other settings stay with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::conda::first_line;
use super::image_name::take_image;
use super::place::Origin;
use super::reading::{Kind, Reading};
use super::variables::filled;

#[derive(Deserialize)]
struct Compose {
    #[serde(default)]
    services: BTreeMap<String, Service>,
}

#[derive(Deserialize)]
struct Service {
    image: Option<String>,
    build: Option<Build>,
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

    /// Tells what of it changes the image and is not followed.
    fn tell(&self, reading: &mut Reading, origin: &Origin) {
        let Self::File { args, target, .. } = self else { return };
        if let Some(args) = args {
            let why = "the Dockerfile is read with its own defaults: give it these";
            reading.leave(origin.clone(), &format!("args {args}"), why);
        }
        if let Some(target) = target {
            let why =
                "the last stage of the Dockerfile is read: `envforge init SPEC` names what this one has";
            reading.leave(origin.clone(), &format!("target {target}"), why);
        }
    }
}

/// Reads a compose file.
pub fn from_compose(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    let compose: Compose = match serde_saphyr::from_str(text) {
        Ok(compose) => compose,
        Err(error) => {
            let why = format!("not a compose file: {}", first_line(&error.to_string()));
            return Reading::unreadable(file, Kind::Image, &why);
        }
    };
    for (name, service) in compose.services {
        match (service.image, service.build) {
            (Some(written), None) => {
                let origin = Origin::holding(file, text, &written);
                let image = filled(&written, &BTreeMap::new());
                if image.contains('$') {
                    reading.leave(origin, &written, "the image is a variable without a default: name it");
                } else {
                    take_image(&mut reading, &image, &origin);
                }
            }
            (_, Some(build)) => {
                let origin = Origin::holding(file, text, "build");
                build.tell(&mut reading, &origin);
                if let Some(named) = build.file() {
                    let why = "its Dockerfile is read; `envforge export compose` writes one for the image";
                    reading.keep(origin.clone(), &format!("service {name}"), why);
                    reading.includes.push((origin, filled(&named, &BTreeMap::new())));
                } else {
                    let why = "its Dockerfile is in no file of this folder: read it with `envforge init --from FILE`";
                    reading.leave(origin, &format!("service {name}"), why);
                }
            }
            (None, None) => reading.leave(Origin::holding(file, text, &name), &name, "names no image"),
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
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

/// Reads a devcontainer.json, which may have comments.
pub fn from_devcontainer(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    match serde_json::from_str::<Devcontainer>(&without_comments(text)) {
        Ok(found) => {
            if let Some(image) = &found.image {
                take_image(&mut reading, image, &Origin::holding(file, text, image));
            }
            let mut files: Vec<String> = found.docker_file.into_iter().collect();
            // The Dockerfile's name is relative to the devcontainer.json, whatever the context.
            if let Some(build) = found.build {
                build.tell(&mut reading, &Origin::holding(file, text, "build"));
                if let Build::File { dockerfile, .. } = build {
                    files.push(dockerfile.unwrap_or_else(|| "Dockerfile".to_owned()));
                }
            }
            match found.docker_compose_file {
                Some(OneOrMore::One(name)) => files.push(name),
                Some(OneOrMore::More(names)) => files.extend(names),
                None => {}
            }
            for name in files {
                let origin = Origin::holding(file, text, &name);
                let why =
                    "it is read; `envforge export devcontainer` writes a devcontainer.json for the image";
                reading.keep(origin.clone(), &name, why);
                reading.includes.push((origin, name));
            }
        }
        Err(error) => reading.leave(Origin::file(file), "the whole file", format!("not JSON: {error}")),
    }
    reading
}

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

    #[test]
    fn images_of_services_and_editors_are_read() {
        let text =
            "services:\n  a:\n    image: pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime\n  b:\n    build: .\n";
        let reading = from_compose("compose.yaml", text);
        assert_eq!(reading.packages[0].origin.line, Some(3));
        assert_eq!(reading.kept.len(), 1);
        let text = "services:\n  a:\n    image: ${IMAGE:-pytorch/pytorch:2.4.1-cuda12.1-cudnn9-devel}\n  b:\n    image: ${OWN}\n  c:\n    build: { context: .., dockerfile: docker/Dockerfile.gpu }\n";
        let reading = from_compose("docker/compose.yaml", text);
        assert_eq!(reading.packages[0].requirement(), "torch==2.4.1");
        assert_eq!(reading.left[0].written, "${OWN}");
        let text = "services:\n  a:\n    build: { context: ., target: train, args: { BASE: x } }\n  b:\n    build: https://h.test/x.git\n  c:\n    build: { dockerfile_inline: 'FROM x' }\n";
        let other = from_compose("compose.yaml", text);
        let left: Vec<_> = other.left.iter().map(|note| note.written.as_str()).collect();
        assert_eq!(left, ["args {\"BASE\":\"x\"}", "target train", "service b", "service c"]);
        assert_eq!(other.includes.len(), 1);
        assert_eq!(reading.includes[0].1, "../docker/Dockerfile.gpu");
        let text = "{\n  \"dockerComposeFile\": [\"../a.yaml\", \"b.yaml\"],\n  \"build\": { \"dockerfile\": \"../Dockerfile\", \"args\": {} },\n}\n";
        let reading = from_devcontainer("devcontainer.json", text);
        let files: Vec<_> = reading.includes.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(files, ["../Dockerfile", "../a.yaml", "b.yaml"]);
        let text = "{\n  // ours\n  \"image\": \"python:3.11\", /* a \"b */ \"x\": [1, 2,],\n}\n";
        let reading = from_devcontainer("devcontainer.json", text);
        assert_eq!(reading.python.len(), 1, "{reading:?}");
    }
}
