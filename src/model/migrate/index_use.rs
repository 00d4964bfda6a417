//! The indexes that a project declares, and what it means that a package comes from one.

use std::collections::BTreeMap;

use super::index_page::{IndexMeaning, has_login, is_on_pytorch_index, meaning};
use super::reading::{Asked, CudaFact, IndexSeen, Reading, Strength, shortened};
use super::requirement_line::JETSON;

/// Where uv's and Poetry's sources lead, by the name of an index.
#[derive(Default)]
pub(super) struct IndexUse {
    urls: BTreeMap<String, (String, bool)>,
}

impl IndexUse {
    /// Notes an index of the file.
    pub(super) fn declare(&mut self, name: &str, url: &str, flat: bool) {
        self.urls.insert(name.to_owned(), (url.to_owned(), flat));
    }

    /// Takes over that a package comes from an index: its CUDA if the address says one, else the index by name.
    pub(super) fn used(&self, reading: &mut Reading, asked: &mut Asked, name: &str) {
        let Some((url, flat)) = self.urls.get(name) else {
            // Poetry knows the default index by this name.
            if name.eq_ignore_ascii_case("pypi") {
                return;
            }
            reading.leave(
                asked.origin.clone(),
                &asked.written,
                format!("comes from the index `{name}`, which the file does not declare"),
            );
            return;
        };
        let fact = |cuda, strength| CudaFact {
            origin: asked.origin.clone(),
            cuda,
            strength,
            by: format!("the index `{name}`, {}", shortened(url)),
        };
        match meaning(url) {
            IndexMeaning::Cuda(cuda) | IndexMeaning::Nightly(cuda) => {
                reading.cuda.push(fact(cuda, Strength::Index));
            }
            // A mirror, where torch itself comes from it.
            IndexMeaning::Foreign(cuda) if is_on_pytorch_index(&asked.name) => {
                reading.cuda.push(fact(cuda, Strength::Index));
            }
            IndexMeaning::Foreign(cuda) => {
                reading.cuda.push(fact(cuda, Strength::Hint));
                of_index(reading, asked, (name, url, *flat));
            }
            IndexMeaning::Without(kind) => {
                let why =
                    format!("its index has builds without CUDA (`{kind}`): the image is for NVIDIA GPUs");
                reading.leave(asked.origin.clone(), &asked.written, why);
            }
            IndexMeaning::Jetson => reading.leave(asked.origin.clone(), &asked.written, JETSON),
            IndexMeaning::Default | IndexMeaning::OldJax | IndexMeaning::OldPyTorch => {}
            IndexMeaning::Other => of_index(reading, asked, (name, url, *flat)),
        }
    }
}

/// Takes over that a package comes from an index by its name.
fn of_index(reading: &mut Reading, asked: &mut Asked, (name, url, flat): (&str, &str, bool)) {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        let why = "from an index that is a folder: give its wheels with `--wheel FILE`";
        return reading.leave(asked.origin.clone(), &asked.written, why);
    }
    let name = plain_name(name);
    asked.index = Some(name.clone());
    if has_login(url) {
        let why =
            format!("the index `{name}` has a login: give its address in `[indexes]` of your configuration");
        reading.leave(asked.origin.clone(), &format!("{name} = {url}"), why);
        reading.indexes.push(IndexSeen { name, url: String::new(), flat: false });
    } else if !reading.indexes.iter().any(|seen| seen.name == name) {
        reading.indexes.push(IndexSeen { name, url: url.to_owned(), flat });
    }
}

/// The name of an index as project files write it: lower case, with hyphens.
fn plain_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "further".to_owned() } else { name }
}
