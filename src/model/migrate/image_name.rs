//! What the name of a base image says: its CUDA, its framework, its Python.

use pep440_rs::VersionSpecifiers;

use super::conda_spec::cuda_of;
use super::place::Origin;
use super::pythons::exact;
use super::reading::{CudaFact, Kind, Note, OpenImage, PythonFact, Reading, Strength};
use super::requirement_line::{JETSON, Line, line};
use crate::model::compat::Matrix;
use crate::model::versions::CudaVariant;

/// Why an image of any name is not taken over.
pub(super) const UNNAMED: &str =
    "its name does not say what it holds: name the framework, `envforge init pytorch-cuda:VERSION`";

/// Why an image is not taken over of which a variable hides the tag.
const OPEN: &str = "a variable without a value: name the image, or give the variable a default";

/// Notes an image of which a variable without a value hides the tag, or the name. One whose name is known and says no framework is
/// only left out.
pub(super) fn leave_open(reading: &mut Reading, image: &str, origin: &Origin, matrix: &Matrix) {
    reading.leave(origin.clone(), image, OPEN);
    let known = &image[..image.find(['$', '{']).unwrap_or(image.len())];
    let name = match known.rsplit_once([':', '@']) {
        Some((name, rest)) if !rest.contains('/') => name,
        _ => "",
    };
    let package = if name.is_empty() { None } else { framework_named(name, matrix) };
    if package.is_some() || known.is_empty() {
        let (origin, image) = (origin.clone(), image.to_owned());
        reading.open_images.push(OpenImage { origin, image, package });
    }
}

/// The package of the framework that the name of an image says, whatever its tag.
fn framework_named(name: &str, matrix: &Matrix) -> Option<String> {
    let mut scratch = Reading::of("", Kind::Image);
    take_image(&mut scratch, name, &Origin::file(""), matrix);
    let said = scratch.packages.into_iter().next().map(|asked| asked.name);
    let last = name.rsplit('/').next().unwrap_or_default();
    let begins = [("pytorch", "torch"), ("tensorflow", "tensorflow")];
    let of_name = || begins.iter().find(|(begin, _)| last.starts_with(begin)).map(|(_, package)| *package);
    said.or_else(|| of_name().map(str::to_owned))
}

/// Takes over what an image's name says.
pub(super) fn take_image(reading: &mut Reading, image: &str, origin: &Origin, matrix: &Matrix) {
    if image.contains(['$', '{']) {
        return leave_open(reading, image, origin, matrix);
    }
    let plain = image.split('@').next().unwrap_or_default();
    let (name, tag) = match plain.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (plain, ""),
    };
    let short = name.strip_prefix("docker.io/").unwrap_or(name);
    let short = short.strip_prefix("library/").unwrap_or(short);
    let words: Vec<_> = tag.split(['-', '_']).collect();
    if let Some(why) = of_another_machine(short, &words) {
        return reading.leave(origin.clone(), image, why);
    }
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
        "tensorflow/tensorflow" => {
            if !words.contains(&"gpu") {
                let why = "a tag without `gpu` is a build without CUDA: the image is for NVIDIA GPUs";
                reading.leave(origin.clone(), image, why);
            }
            framework(reading, "tensorflow", &version(first), image, origin)
        }
        "vllm/vllm-openai" => framework(reading, "vllm", &version(first), image, origin),
        "lmsysorg/sglang" => framework(reading, "sglang", &version(first), image, origin),
        "python"
        | "mcr.microsoft.com/devcontainers/python"
        | "mcr.microsoft.com/vscode/devcontainers/python"
        | "continuumio/miniconda3"
        | "condaforge/miniforge3"
        | "condaforge/mambaforge"
        | "mambaorg/micromamba" => match words.iter().find_map(|word| exact(word)) {
            Some(versions) if short.ends_with("python") => {
                let by = format!("image {image}");
                reading.python.push(PythonFact { origin: origin.clone(), versions, by });
                true
            }
            _ => {
                let why = "a base with a Python; the image of envforge has its own";
                reading.keep(origin.clone(), image, why);
                if let Some(found) = cuda_of_words(&words) {
                    surrounded(reading, image, found, origin);
                }
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
        _ => {
            catalogue(reading, (short, first), image, origin, matrix)
                || by_its_tag(reading, short, &words, image, origin)
        }
    };
    if !understood {
        if let Some(found) = cuda_of_words(&words) {
            surrounded(reading, image, found, origin);
        }
        if let Some(versions) = python_of_words(&words) {
            let by = format!("image {image}");
            reading.python.push(PythonFact { origin: origin.clone(), versions, by });
        }
        let why = if short.starts_with("nvcr.io/nvidia/") {
            let product = if short.contains("tensorflow") { "tensorflow-cuda" } else { "pytorch-cuda" };
            format!(
                "an image of NVIDIA's catalogue: its framework is a build of its own, whose version its release notes list; name the version: `envforge init {product}:VERSION`"
            )
        } else {
            UNNAMED.to_owned()
        };
        reading.leave(origin.clone(), image, why);
    }
}

/// Why an image for other machines is not taken over.
fn of_another_machine(short: &str, words: &[&str]) -> Option<&'static str> {
    let name = short.rsplit('/').next().unwrap_or_default();
    if short.starts_with("dustynv/") || name.starts_with("l4t") || words.contains(&"igpu") {
        return Some(JETSON);
    }
    (short.starts_with("rocm/") || name.contains("rocm") || words.iter().any(|word| word.starts_with("rocm")))
        .then_some("an image for AMD GPUs (ROCm): an image of envforge is for NVIDIA GPUs")
}

/// Takes over what the release notes of an image of NVIDIA's catalogue list.
fn catalogue(
    reading: &mut Reading,
    (name, release): (&str, &str),
    image: &str,
    origin: &Origin,
    matrix: &Matrix,
) -> bool {
    let mut rows = matrix.catalogue.iter();
    let Some(row) = rows.find(|row| row.image == name && row.release == release) else { return false };
    let numbers = row.version.split(|c: char| c.is_ascii_alphabetic()).next().unwrap_or_default();
    cuda(reading, image, &row.cuda, origin, Strength::Surroundings);
    if let Some(versions) = exact(&row.python) {
        let by = format!("image {image}");
        reading.python.push(PythonFact { origin: origin.clone(), versions, by });
    }
    let why = format!(
        "NVIDIA's own build of {} {} with CUDA {}: the release {numbers} instead",
        row.package, row.version, row.cuda
    );
    reading.change(origin.clone(), image, why);
    framework(reading, &row.package, numbers, image, origin)
}

/// Takes over an image named for its framework whose tag says CUDA or Python, too: `2.1.0-py3.10-cuda11.8.0-devel`.
fn by_its_tag(reading: &mut Reading, short: &str, words: &[&str], image: &str, origin: &Origin) -> bool {
    let name = short.rsplit('/').next().unwrap_or_default();
    let (found, python) = (cuda_of_words(words), python_of_words(words));
    let first = words.first().copied().unwrap_or_default();
    let is_rapids = short.starts_with("rapidsai/") || short.starts_with("nvcr.io/nvidia/rapidsai/");
    let understood = match found {
        Some(found) if is_rapids => {
            let package = format!("cudf-cu{}", found.major);
            framework(reading, &package, &format!("{first}.*"), image, origin)
        }
        _ if found.is_none() && python.is_none() => false,
        _ => match ["pytorch", "tensorflow"].iter().find(|begin| name.starts_with(**begin)) {
            Some(&"pytorch") => framework(reading, "torch", first, image, origin),
            Some(begin) => framework(reading, begin, first, image, origin),
            None => false,
        },
    };
    if understood {
        if let Some(found) = found {
            surrounded(reading, image, found, origin);
        }
        let by = format!("image {image}");
        reading.python.extend(python.map(|versions| PythonFact { origin: origin.clone(), versions, by }));
    }
    understood
}

/// The CUDA that a tag says: `cuda12.1`, `cu121`, `cuda-12.1.1`.
fn cuda_of_words(words: &[&str]) -> Option<CudaVariant> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix("cuda").or_else(|| word.strip_prefix("cu"))?;
        let rest = if rest.is_empty() { words.get(at + 1).copied().unwrap_or_default() } else { rest };
        let is_short = rest.len() == 3 && rest.bytes().all(|b| b.is_ascii_digit());
        if is_short { format!("cu{rest}").parse().ok() } else { cuda_of(rest) }
    })
}

/// The Python that a tag says: `py3.10`, `py310`, `python-3.11`.
fn python_of_words(words: &[&str]) -> Option<VersionSpecifiers> {
    words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix("python").or_else(|| word.strip_prefix("py"))?;
        let rest = if rest.is_empty() { words.get(at + 1).copied().unwrap_or_default() } else { rest };
        let minor = rest.strip_prefix('3').filter(|minor| !minor.is_empty() && !minor.starts_with('.'));
        minor.map_or_else(|| exact(rest), |minor| exact(&format!("3.{minor}")))
    })
}

fn surrounded(reading: &mut Reading, image: &str, cuda: CudaVariant, origin: &Origin) {
    let (by, strength) = (format!("image {image}"), Strength::Surroundings);
    reading.cuda.push(CudaFact { origin: origin.clone(), cuda, strength, by });
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

    fn read(image: &str) -> Reading {
        let mut reading = Reading::of("Dockerfile", Kind::Image);
        take_image(&mut reading, image, &Origin::line("Dockerfile", 1), crate::model::compat::embedded());
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
            ("mcr.microsoft.com/devcontainers/python:1-3.11-bookworm", "", "", "==3.11.*", false),
            ("nvcr.io/nvidia/pytorch:24.02-py3", "cu123", "torch==2.3.0", "==3.10.*", false),
            (
                "runpod/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04",
                "cu118",
                "torch==2.1.0",
                "==3.10.*",
                true,
            ),
            (
                "1234.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.1.0-gpu-py310-cu121-ubuntu20.04",
                "cu121",
                "torch==2.1.0",
                "==3.10.*",
                false,
            ),
            ("quay.io/jupyter/pytorch-notebook:cuda12-python-3.11", "cu12", "torch", "==3.11.*", false),
            ("rapidsai/base:25.04-cuda12.8-py3.12", "cu128", "cudf-cu12==25.4.*", "==3.12.*", false),
            ("mambaorg/micromamba:1.5.8-jammy-cuda-12.1.1", "cu121", "", "", false),
            ("team/own:cuda12.4", "cu124", "", "", false),
            ("jupyter/base-notebook:python-3.11", "", "", "==3.11.*", false),
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
        for (image, why) in [
            ("nvcr.io/nvidia/nemo:24.05", "NVIDIA's catalogue"),
            ("nvcr.io/nvidia/l4t-pytorch:r35.2.1-pth2.0-py3", "Jetson"),
            ("nvcr.io/nvidia/pytorch:24.05-py3-igpu", "Jetson"),
            ("rocm/pytorch:rocm6.1_ubuntu22.04_py3.10_pytorch_2.1.2", "AMD"),
            ("tensorflow/tensorflow:2.15.0", "without CUDA"),
        ] {
            assert!(read(image).left[0].why.contains(why), "{image}: {:?}", read(image).left);
        }
        assert!(read("tensorflow/tensorflow:2.15.0-gpu").left.is_empty());
        let ngc = read("nvcr.io/nvidia/pytorch:24.02-py3");
        assert!(ngc.left.is_empty() && ngc.changed[0].why.contains("the release 2.3.0 instead"), "{ngc:?}");
        for (image, package) in [
            ("pytorch/pytorch:${TAG}", Some(Some("torch"))),
            ("pytorch/pytorch:${TORCH}-cuda12.1-cudnn8-runtime", Some(Some("torch"))),
            ("nvcr.io/nvidia/tensorflow:$RELEASE-tf2-py3", Some(Some("tensorflow"))),
            ("vllm/vllm-openai:{{ TAG }}", Some(Some("vllm"))),
            ("${BASE}", Some(None)),
            ("nvidia/cuda:${CUDA}-runtime-ubuntu22.04", None),
            ("localhost:5000/own:${TAG}", None),
        ] {
            let reading = read(image);
            let open = reading.open_images.first().map(|open| open.package.as_deref());
            assert_eq!((open, reading.left.len(), reading.packages.len()), (package, 1, 0), "{image}");
        }
        assert!(read("team/own:1").left[0].why.contains("does not say"));
        assert!(read("ubuntu:22.04").kept[0].why.contains("base = \"ubuntu:22.04\""));
    }
}
