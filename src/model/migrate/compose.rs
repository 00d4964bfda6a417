//! Compose and devcontainer files: which image they start. Their other settings stay with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::conda::first_line;
use super::image_name::take_image;
use super::place::Origin;
use super::reading::{Kind, Reading};

#[derive(Deserialize)]
struct Compose {
    #[serde(default)]
    services: BTreeMap<String, Service>,
}

#[derive(Deserialize)]
struct Service {
    image: Option<String>,
    build: Option<serde_json::Value>,
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
            (Some(image), None) => take_image(&mut reading, &image, &Origin::holding(file, text, &image)),
            (_, Some(_)) => {
                let origin = Origin::holding(file, text, "build");
                reading.keep(
                    origin,
                    &format!("service {name}"),
                    "its Dockerfile is read itself; `envforge export compose` writes one for the image",
                );
            }
            (None, None) => reading.leave(Origin::holding(file, text, &name), &name, "names no image"),
        }
    }
    reading
}

#[derive(Deserialize)]
struct Devcontainer {
    image: Option<String>,
}

/// Reads a devcontainer.json, which may have comments.
pub fn from_devcontainer(file: &str, text: &str) -> Reading {
    let mut reading = Reading::of(file, Kind::Image);
    match serde_json::from_str::<Devcontainer>(&without_comments(text)) {
        Ok(found) => match found.image {
            Some(image) => take_image(&mut reading, &image, &Origin::holding(file, text, &image)),
            None => reading.keep(
                Origin::file(file),
                "devcontainer.json",
                "its Dockerfile or compose file is read itself; `envforge export devcontainer` writes one for the image",
            ),
        },
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
        let text = "{\n  // ours\n  \"image\": \"python:3.11\", /* a \"b */ \"x\": [1, 2,],\n}\n";
        let reading = from_devcontainer("devcontainer.json", text);
        assert_eq!(reading.python.len(), 1, "{reading:?}");
    }
}
