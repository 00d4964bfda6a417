//! A project's page of a simple index: which wheels there are.

use crate::model::address::Address;
use crate::model::compat::tables::Variant;
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
