//! A project's page of a simple index, as text: the files it links to.

use super::percent::decoded;
use crate::model::address::Address;
use crate::model::sha256::is_sha256_hex;

/// A file a page links to.
#[derive(Debug, Clone)]
pub(crate) struct Link<'a> {
    /// The file's name.
    pub(crate) file: String,
    /// Its address, with the fragment that contains its hash.
    pub(crate) address: Address,
    /// The attributes of the link's tag.
    pub(crate) tag: &'a str,
}

impl Link<'_> {
    /// Whether its publisher has yanked it.
    pub(crate) fn is_yanked(&self) -> bool {
        self.tag.contains("data-yanked")
    }

    /// Its SHA-256, hex, if the page lists it.
    pub(crate) fn sha256(&self) -> Option<&str> {
        let (_, rest) = self.tag.split_once("sha256=")?;
        rest.get(..64).filter(|hex| is_sha256_hex(hex))
    }
}

/// Returns the files a page links to, in its order; skips tags without a valid address.
pub(crate) fn links<'a>(page: &'a str, base: &Address) -> impl Iterator<Item = Link<'a>> {
    let tags = page.split("<a").skip(1).filter(|rest| rest.starts_with(char::is_whitespace)).map(attributes);
    tags.filter_map(move |tag| link(tag, base))
}

/// Returns the text before the tag's end; a `>` between quotes is part of a value.
fn attributes(rest: &str) -> &str {
    let mut quote = None;
    let end = rest.find(|c| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(c);
            false
        }
        (Some(open), c) => {
            if open == c {
                quote = None;
            }
            false
        }
        (None, c) => c == '>',
    });
    end.map_or(rest, |end| &rest[..end])
}

fn link<'a>(tag: &'a str, base: &Address) -> Option<Link<'a>> {
    let rest = tag.split_once("href=")?.1;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let href = rest[1..].split(quote).next()?.replace("&amp;", "&");
    let path = href.split(['#', '?']).next()?;
    let mut address = base.resolve(&href).ok()?;
    // A link with the server's name has no login; it is that of the page on the same server.
    if address.origin() == base.origin() {
        address = address.with_login_of(base);
    }
    Some(Link { file: decoded(path.rsplit('/').next()?), address, tag })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_returns_its_files_in_order() {
        let page = r#"<!doctype html><a href="../../f/a-1.0.whl#sha256=00&amp;x=1">a</a>
            <a
            data-requires-python=">=3.8" data-yanked="" href='/f/a-1.1%2Bcu118.whl?v=2'>b</a> <a name=x>d</a><a href=e>e</a><a href="a"#;
        let base = "https://index.example.test/simple/a/".parse().expect("an address");
        let found: Vec<_> = links(page, &base).collect();
        let files: Vec<_> = found.iter().map(|link| link.file.as_str()).collect();
        assert_eq!(files, ["a-1.0.whl", "a-1.1+cu118.whl", "a"]);
        assert_eq!(found[0].address.expose(), "https://index.example.test/f/a-1.0.whl#sha256=00&x=1");
        assert_eq!(found[1].address.expose(), "https://index.example.test/f/a-1.1%2Bcu118.whl?v=2");
        assert_eq!((found[0].is_yanked(), found[1].is_yanked()), (false, true));
    }

    #[test]
    fn login_of_the_page_goes_to_its_own_server_only() {
        let page = "<a href='https://host.test/f/a.whl'>a</a><a href='b.whl'>b</a><a href='https://other.test/c.whl'>c</a>\
                    <a href='http://host.test/d.whl'>d</a>";
        let base = "https://u:hunter2@host.test/files.html".parse().expect("an address");
        let found: Vec<_> = links(page, &base).map(|link| link.address.expose().to_owned()).collect();
        assert_eq!(
            found,
            [
                "https://u:hunter2@host.test/f/a.whl",
                "https://u:hunter2@host.test/b.whl",
                "https://other.test/c.whl",
                "http://host.test/d.whl"
            ]
        );
    }
}
