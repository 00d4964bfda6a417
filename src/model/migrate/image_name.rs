//! What the name of a base image says: its CUDA, its framework, its Python.

use super::conda_spec::cuda_of;
use super::place::Origin;
use super::pythons::exact;
use super::reading::{CudaFact, Note, PythonFact, Reading, Strength};
use super::requirement_line::{Line, line};

/// Takes over what an image's name says.
pub(super) fn take_image(reading: &mut Reading, image: &str, origin: &Origin) {
    let plain = image.split('@').next().unwrap_or_default();
    let (name, tag) = match plain.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (plain, ""),
    };
    let short = name.strip_prefix("docker.io/").unwrap_or(name);
    let short = short.strip_prefix("library/").unwrap_or(short);
    let words: Vec<_> = tag.split(['-', '_']).collect();
    if words.contains(&"devel") {
        let why = "a base with the compiler of CUDA: the flavour `devel` has it".to_owned();
        reading.devel.get_or_insert(Note { origin: origin.clone(), written: image.to_owned(), why });
    }
    let version = |word: &str| word.strip_prefix('v').unwrap_or(word).to_owned();
    let first = words.first().copied().unwrap_or_default();
    let understood = match short {
        "nvidia/cuda" | "nvcr.io/nvidia/cuda" => cuda(reading, image, first, origin, Strength::Surroundings),
        "pytorch/pytorch" => {
            let has_cuda = words.iter().find_map(|word| word.strip_prefix("cuda"));
            let framework = framework(reading, "torch", &version(first), image, origin);
            has_cuda.is_some_and(|tag| cuda(reading, image, tag, origin, Strength::Index)) || framework
        }
        "tensorflow/tensorflow" => framework(reading, "tensorflow", &version(first), image, origin),
        "vllm/vllm-openai" => framework(reading, "vllm", &version(first), image, origin),
        "lmsysorg/sglang" => framework(reading, "sglang", &version(first), image, origin),
        "python" | "continuumio/miniconda3" | "mambaorg/micromamba" => match exact(first) {
            Some(versions) if short == "python" => {
                let by = format!("image {image}");
                reading.python.push(PythonFact { origin: origin.clone(), versions, by });
                true
            }
            _ => {
                reading.keep(
                    origin.clone(),
                    image,
                    "a base with a Python; the image of envforge has its own",
                );
                true
            }
        },
        "ubuntu" | "debian" | "rockylinux" | "almalinux" | "centos" | "fedora" | "alpine" | "amazonlinux"
        | "scratch" => {
            let why = if matches!(short, "ubuntu" | "debian") && !tag.is_empty() {
                format!(
                    "a base without CUDA: envforge has its own; `base = \"{short}:{tag}\"` in envforge.toml takes this one"
                )
            } else {
                "a base without CUDA: envforge has its own".to_owned()
            };
            reading.keep(origin.clone(), image, why);
            true
        }
        _ => false,
    };
    if !understood {
        let why = if short.starts_with("nvcr.io/nvidia/") {
            "an image of NVIDIA's catalogue: its framework is a build of its own, whose version its name does not say; name the version: `envforge init pytorch-cuda:VERSION`"
        } else {
            "its name does not say what it holds: name the framework, `envforge init pytorch-cuda:VERSION`"
        };
        reading.leave(origin.clone(), image, why);
    }
}

fn cuda(reading: &mut Reading, image: &str, text: &str, origin: &Origin, strength: Strength) -> bool {
    let Some(cuda) = cuda_of(text) else { return false };
    let by = format!("image {image}");
    reading.cuda.push(CudaFact { origin: origin.clone(), cuda, strength, by });
    true
}

fn framework(reading: &mut Reading, package: &str, version: &str, image: &str, origin: &Origin) -> bool {
    let numbers = version.split('.').count() >= 2 && version.starts_with(|c: char| c.is_ascii_digit());
    let requirement = if numbers { format!("{package}=={version}") } else { package.to_owned() };
    let Line::Package(mut asked) = line(&requirement, origin) else { return false };
    image.clone_into(&mut asked.written);
    reading.packages.push(*asked);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::reading::Kind;

    fn read(image: &str) -> Reading {
        let mut reading = Reading::of("Dockerfile", Kind::Image);
        take_image(&mut reading, image, &Origin::line("Dockerfile", 1));
        reading
    }

    #[test]
    fn names_of_images_say_what_they_hold() {
        for (image, cuda, package, python, devel) in [
            ("nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04", "cu130", "", "", false),
            ("nvidia/cuda:12.4.1-devel-ubuntu22.04", "cu124", "", "", true),
            ("nvcr.io/nvidia/cuda:11.8.0-base-ubuntu20.04@sha256:00", "cu118", "", "", false),
            ("pytorch/pytorch:2.3.1-cuda12.1-cudnn8-devel", "cu121", "torch==2.3.1", "", true),
            ("docker.io/pytorch/pytorch:latest", "", "torch", "", false),
            ("tensorflow/tensorflow:2.15.0-gpu", "", "tensorflow==2.15.0", "", false),
            ("vllm/vllm-openai:v0.6.3", "", "vllm==0.6.3", "", false),
            ("python:3.11.4-slim-bookworm", "", "", "==3.11.*", false),
            ("docker.io/library/python:3.12", "", "", "==3.12.*", false),
            ("localhost:5000/python", "", "", "", false),
        ] {
            let reading = read(image);
            let found = (
                reading.cuda.first().map(|fact| fact.cuda.to_string()).unwrap_or_default(),
                reading.packages.first().map(super::super::reading::Asked::requirement).unwrap_or_default(),
                reading.python.first().map(|fact| fact.versions.to_string()).unwrap_or_default(),
                reading.devel.is_some(),
            );
            assert_eq!(found, (cuda.to_owned(), package.to_owned(), python.to_owned(), devel), "{image}");
        }
        assert!(read("nvcr.io/nvidia/pytorch:24.05-py3").left[0].why.contains("NVIDIA's catalogue"));
        assert!(read("team/own:1").left[0].why.contains("does not say"));
        assert!(read("ubuntu:22.04").kept[0].why.contains("base = \"ubuntu:22.04\""));
    }
}
