//! The indexes that a project declares, and what it means that a package comes from one.

use std::collections::BTreeMap;

use super::index_page::{IndexMeaning, has_login, meaning};
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
            reading.leave(
                asked.origin.clone(),
                &asked.written,
                format!("comes from the index `{name}`, which the file does not declare"),
            );
            return;
        };
        match meaning(url) {
            IndexMeaning::Cuda(cuda) | IndexMeaning::Nightly(cuda) => reading.cuda.push(CudaFact {
                origin: asked.origin.clone(),
                cuda,
                strength: Strength::Index,
                by: format!("the index `{name}`, {}", shortened(url)),
            }),
            IndexMeaning::Without(kind) => {
                let why =
                    format!("its index has builds without CUDA (`{kind}`): the image is for NVIDIA GPUs");
                reading.leave(asked.origin.clone(), &asked.written, why);
            }
            IndexMeaning::Jetson => reading.leave(asked.origin.clone(), &asked.written, JETSON),
            IndexMeaning::Default | IndexMeaning::OldJax => {}
            IndexMeaning::Other if !url.starts_with("https://") && !url.starts_with("http://") => {
                let why = "from an index that is a folder: give its wheels with `--wheel FILE`";
                reading.leave(asked.origin.clone(), &asked.written, why);
            }
            IndexMeaning::Other if has_login(url) => {
                let name = &plain_name(name);
                asked.index = Some(name.clone());
                let why = format!(
                    "the index `{name}` has a login: give its address in `[indexes]` of your configuration"
                );
                reading.leave(asked.origin.clone(), &format!("{name} = {url}"), why);
                reading.indexes.push(IndexSeen { name: name.clone(), url: String::new(), flat: false });
            }
            IndexMeaning::Other => {
                let name = &plain_name(name);
                asked.index = Some(name.clone());
                if !reading.indexes.iter().any(|seen| seen.name == *name) {
                    reading.indexes.push(IndexSeen { name: name.clone(), url: url.clone(), flat: *flat });
                }
            }
        }
    }
}

/// The name of an index as project files write it: lower case, with hyphens.
fn plain_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = name.chars().map(kept).collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "further".to_owned() } else { name }
}
