//! A project's page of a simple index: which wheels there are.

use std::collections::BTreeSet;

use crate::model::address::Address;
use crate::model::compat::tables::Variant;
use crate::model::versions::FrameworkVersion;
use crate::packages::{Link, WheelName, links};

/// A wheel of a page.
#[derive(Debug, Clone)]
pub(crate) struct IndexWheel {
    /// Its file name.
    pub(crate) file: String,
    /// The name's parts.
    pub(crate) name: WheelName,
    /// Its address.
    pub(crate) address: Address,
    /// Whether its publisher has yanked it.
    pub(crate) yanked: bool,
    /// Whether the index serves its metadata as a separate file.
    pub(crate) metadata_apart: bool,
}

impl IndexWheel {
    /// Whether it belongs to the row's release and is compatible with one of its Pythons on its processor.
    pub(crate) fn is_of(&self, row: &Variant) -> bool {
        self.name.version == row.version.to_string()
            && row.python.iter().any(|&python| self.name.fits(python, row.machine))
    }
}

/// Returns the wheels of a page, in its order; skips other files.
pub(crate) fn listed(page: &str, base: &Address) -> Vec<IndexWheel> {
    links(page, base).filter_map(wheel).collect()
}

/// Returns the releases of a page that were not withdrawn, as a wheel or as source. Previews and local variants are left out.
pub(crate) fn releases(page: &str, base: &Address) -> BTreeSet<FrameworkVersion> {
    let files = links(page, base).filter(|link| !link.is_yanked());
    files.filter_map(|link| release_of(&link.file)?.parse().ok()).collect()
}

/// Returns the version in the name of a wheel or a source archive.
fn release_of(file: &str) -> Option<String> {
    if let Ok(name) = file.parse::<WheelName>() {
        return Some(name.version);
    }
    let stem = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip"))?;
    Some(stem.rsplit_once('-')?.1.to_owned())
}

fn wheel(link: Link<'_>) -> Option<IndexWheel> {
    let mut address = link.address.url().clone();
    address.set_fragment(None);
    Some(IndexWheel {
        name: link.file.parse().ok()?,
        yanked: link.is_yanked(),
        metadata_apart: link.tag.contains("data-core-metadata")
            || link.tag.contains("data-dist-info-metadata"),
        file: link.file,
        address: address.as_str().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_those_of_wheels_and_sources_without_previews() {
        let page = r#"<a href="a_b-1.0-py3-none-any.whl">a</a><a href="a-b-0.9.tar.gz">b</a><a href="a_b-0.8.post1.zip">c</a>
            <a href="a_b-1.1rc1-py3-none-any.whl">d</a><a href="a_b-1.2.tar.gz" data-yanked="">e</a>
            <a href="a_b-1.3+cu118-py3-none-any.whl">f</a><a href="a_b-1.4.exe">g</a><a href="a_b-1.5.dev2.tar.gz">h</a>"#;
        let base = "https://index.example.test/simple/a-b/".parse().expect("an address");
        let found: Vec<_> = releases(page, &base).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["0.8.post1", "0.9", "1.0"]);
    }

    #[test]
    fn page_returns_only_wheels() {
        let page = r#"<!doctype html><a href="../../f/a-1.0-py3-none-any.whl#sha256=00" data-core-metadata="true">a</a>
            <a data-yanked="" href="/f/a-1.1%2Bcu118-cp311-cp311-manylinux_2_28_x86_64.whl">b</a>
            <a href="a-1.0.tar.gz">c</a><a name=x>d</a><a href="a"#;
        let base = "https://index.example.test/simple/a/".parse().expect("an address");
        let found = listed(page, &base);
        let files: Vec<_> = found.iter().map(|one| one.file.as_str()).collect();
        assert_eq!(files, ["a-1.0-py3-none-any.whl", "a-1.1+cu118-cp311-cp311-manylinux_2_28_x86_64.whl"]);
        assert_eq!((found[0].yanked, found[0].metadata_apart), (false, true));
        assert_eq!((found[1].yanked, found[1].metadata_apart), (true, false));
        assert_eq!(found[0].address.expose(), "https://index.example.test/f/a-1.0-py3-none-any.whl");
        assert_eq!(found[1].name.version, "1.1+cu118");
    }
}
