//! What apt reads in a base: its sources with their keys, its preferences, and the packages that are installed.
//!
//! All of it is read as files; nothing of the base runs. What apt would run or send is left out, and said: hooks, logins, sources
//! that need no signature.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;

use bytes::Bytes;

use super::apt_source::{AptSource, apt_sources};
use super::dpkg_status::STATUS;
use super::error::BaseError;
use crate::engine::Images;
use crate::model::address::Address;
use crate::model::bounded_tar::BoundedTar;

/// The processors of foreign packages that dpkg accepts, one a line.
const ARCHITECTURES: &str = "/var/lib/dpkg/arch";
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d"];
/// Keys of every source that names none.
const TRUSTED: [&str; 2] = ["/etc/apt/trusted.gpg", "/etc/apt/trusted.gpg.d"];
const PREFERENCES: [&str; 2] = ["/etc/apt/preferences", "/etc/apt/preferences.d"];
/// Where most sources have their keys.
const KEYRINGS: [&str; 2] = ["/usr/share/keyrings", "/etc/apt/keyrings"];
/// Never used; only that they exist is said.
const LOGINS: [&str; 2] = ["/etc/apt/auth.conf", "/etc/apt/auth.conf.d"];
const CONFIGURATION: [&str; 2] = ["/etc/apt/apt.conf", "/etc/apt/apt.conf.d"];
/// Names of configuration that the images of Debian and Ubuntu come with: nothing of it selects a package.
const USUAL: [&str; 12] = [
    "00CDMountPoint",
    "00trustcdrom",
    "01-vendor-ubuntu",
    "01autoremove",
    "01autoremove-kernels",
    "20packagekit",
    "50appstream",
    "70debconf",
    "docker-autoremove-suggests",
    "docker-clean",
    "docker-gzip-indexes",
    "docker-no-languages",
];
/// The most of all these files, bytes. A status has about 1 KB for a package (measured: 716 KB for 786 on Debian 12).
const LARGEST: u64 = 64 << 20;
/// Where libraries are that the dynamic linker finds.
const LIBRARY_FOLDERS: [&str; 8] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
];
/// More than the links of any key.
const LINKS: usize = 8;

/// What apt needs of a base to choose packages for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseApt {
    /// dpkg's status.
    pub status: String,
    /// Processors of foreign packages: `i386`.
    pub foreign: Vec<String>,
    /// Its sources in the format of `.sources`; keyrings are `KEYS/NAME`, by the names in `keys`.
    pub sources: String,
    /// Addresses of its sources.
    pub roots: Vec<Address>,
    /// The keyrings that its sources name.
    pub keys: Vec<(String, Bytes)>,
    /// The keyrings of sources that name none, by file name.
    pub trusted: Vec<(String, Bytes)>,
    /// Its preferences.
    pub preferences: String,
    /// What is not used, and why: one line each.
    pub left_out: Vec<String>,
    /// Libraries of it that packages of the stack are left out for: `libibverbs.so.1`.
    pub libraries: BTreeSet<String>,
}

impl BaseApt {
    /// Whether the base has that library, of a package or not.
    pub fn has(&self, library: &str) -> bool {
        self.libraries.contains(library)
    }
}

/// The folder of keyrings in [`BaseApt::sources`].
pub const KEYS: &str = "/envforge/keys";

/// Reads the files of an image, by tag or id, and looks for `libraries` in it.
pub async fn base_apt(
    engine: &(impl Images + ?Sized),
    image: &str,
    libraries: &[&str],
) -> Result<BaseApt, BaseError> {
    let paths: Vec<String> = libraries.iter().flat_map(|name| library_paths(name)).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let all = [
        &[STATUS, ARCHITECTURES][..],
        &SOURCES,
        &TRUSTED,
        &PREFERENCES,
        &KEYRINGS,
        &LOGINS,
        &CONFIGURATION,
        &paths,
    ];
    let mut files = Files::default();
    files.add(engine.read_files(image, &all.concat(), LARGEST).await?, image)?;
    // A keyring may be anywhere, and behind links.
    for _ in 0..LINKS {
        let wanted: Vec<_> = files.keyrings().iter().filter_map(|path| files.open_end(path)).collect();
        if wanted.is_empty() {
            break;
        }
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        files.add(engine.read_files(image, &wanted, LARGEST).await?, image)?;
        files.sought.extend(wanted.into_iter().map(str::to_owned));
    }
    let libraries = libraries.iter().filter(|name| files.has_library(name)).map(|&name| name.to_owned());
    Ok(BaseApt { libraries: libraries.collect(), ..files.base_apt() })
}

fn library_paths(name: &str) -> impl Iterator<Item = String> {
    LIBRARY_FOLDERS.iter().map(move |folder| format!("{folder}/{name}"))
}

/// dpkg's status of an image, by tag or id.
pub async fn base_status(engine: &(impl Images + ?Sized), image: &str) -> Result<String, BaseError> {
    let mut files = Files::default();
    files.add(engine.read_files(image, &[STATUS], LARGEST).await?, image)?;
    Ok(files.text(STATUS))
}

/// Regular files and links of an image, by absolute path.
#[derive(Default)]
struct Files {
    regular: BTreeMap<String, Bytes>,
    links: BTreeMap<String, String>,
    /// Paths that were asked for.
    sought: BTreeSet<String>,
}

impl Files {
    /// Adds the answers of an engine: each a tar of what is at a path.
    fn add(&mut self, answers: BTreeMap<String, Vec<u8>>, image: &str) -> Result<(), BaseError> {
        for (path, tar) in answers {
            let read = self.add_tar(&path, &tar);
            read.map_err(|error| BaseError::NoBase {
                reference: image.to_owned(),
                why: format!("its {path} cannot be read: {error}"),
            })?;
        }
        Ok(())
    }

    fn add_tar(&mut self, path: &str, tar: &[u8]) -> std::io::Result<()> {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        for entry in BoundedTar::new(tar).entries()? {
            let mut entry = entry?;
            let path = normal(&format!("{parent}/{}", entry.path()?.display()));
            if entry.header().entry_type().is_symlink() {
                let target =
                    entry.link_name()?.map(|target| target.display().to_string()).unwrap_or_default();
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                let target = if target.starts_with('/') { target } else { format!("{folder}/{target}") };
                self.links.insert(path, normal(&target));
            } else if entry.header().entry_type().is_file() {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                self.regular.insert(path, bytes.into());
            }
        }
        Ok(())
    }

    /// The path at the end of the links from a path.
    fn end_of(&self, path: &str) -> String {
        let mut path = normal(path);
        for _ in 0..LINKS {
            match self.links.get(&path) {
                Some(target) => path.clone_from(target),
                None => break,
            }
        }
        path
    }

    /// The end of the links from a path, if it was not asked for yet.
    fn open_end(&self, path: &str) -> Option<String> {
        let end = self.end_of(path);
        (!self.regular.contains_key(&end) && !self.links.contains_key(&end) && !self.sought.contains(&end))
            .then_some(end)
    }

    /// The file at the end of the links from a path; none of logins and configuration.
    fn file(&self, path: &str) -> Option<&Bytes> {
        let end = self.end_of(path);
        let is_of = |folder: &&str| {
            end.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if LOGINS.iter().chain(&CONFIGURATION).any(is_of) { None } else { self.regular.get(&end) }
    }

    fn text(&self, path: &str) -> String {
        self.file(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    /// The files and links at these paths and right below them.
    fn below(&self, paths: [&str; 2]) -> Vec<String> {
        let is_below = |path: &str| {
            paths.contains(&path)
                || paths.iter().any(|folder| {
                    path.strip_prefix(folder).is_some_and(|rest| rest.rfind('/') == Some(0) && rest.len() > 1)
                })
        };
        self.regular.keys().chain(self.links.keys()).filter(|path| is_below(path)).cloned().collect()
    }

    /// Whether a library is there. A link counts: the library that it names lies next to it.
    fn has_library(&self, name: &str) -> bool {
        library_paths(name).any(|path| self.regular.contains_key(&path) || self.links.contains_key(&path))
    }

    /// Every source with the file that has it.
    fn all_sources(&self) -> Vec<(String, AptSource)> {
        let mut paths = self.below(SOURCES);
        // The user is asked about regular files: nothing is read behind a link.
        paths.retain(|path| is_source(path) && !self.links.contains_key(path));
        paths.sort();
        let of = |path: &String| {
            let found = apt_sources(path, &self.text(path));
            found.into_iter().map(|source| (path.clone(), source)).collect::<Vec<_>>()
        };
        paths.iter().flat_map(of).collect()
    }

    /// Paths of the keyrings that are used.
    fn keyrings(&self) -> Vec<String> {
        let sources = self.all_sources();
        let named = sources.iter().filter_map(|(_, source)| source.signed_by.as_deref()).flat_map(key_paths);
        named.chain(self.trusted()).collect()
    }

    /// Keyrings of the sources that name none.
    fn trusted(&self) -> Vec<String> {
        let mut paths = self.below(TRUSTED);
        paths.retain(|path| [".gpg", ".asc"].iter().any(|end| path.ends_with(end)));
        paths
    }

    fn base_apt(&self) -> BaseApt {
        let mut made = BaseApt {
            status: self.text(STATUS),
            foreign: self
                .text(ARCHITECTURES)
                .split_whitespace()
                .filter(|name| is_word(name))
                .map(str::to_owned)
                .collect(),
            preferences: self.preferences(),
            ..BaseApt::default()
        };
        for path in self.trusted() {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            match self.file(&path) {
                Some(key) if is_word(&name) => made.trusted.push((name, key.clone())),
                _ => made.left_out.push(format!("{path}: its name or its file cannot be used")),
            }
        }
        for (path, source) in self.all_sources() {
            self.add_source(&path, &source, &mut made);
        }
        let links =
            self.below(SOURCES).into_iter().filter(|path| is_source(path) && self.links.contains_key(path));
        made.left_out.extend(links.map(|path| format!("{path}: it is a link")));
        let exists = |paths: [&str; 2]| !self.below(paths).is_empty();
        if exists(LOGINS) {
            made.left_out.push("/etc/apt/auth.conf: a base has no logins".to_owned());
        }
        let unusual = |path: &String| !USUAL.contains(&path.rsplit('/').next().unwrap_or_default());
        let unusual: Vec<_> = self.below(CONFIGURATION).into_iter().filter(unusual).collect();
        if !unusual.is_empty() {
            made.left_out.push(format!("{}: configuration of apt can run commands", unusual.join(", ")));
        }
        made
    }

    /// Adds a source in the format of `.sources`, or the reason why it is left out.
    fn add_source(&self, path: &str, source: &AptSource, made: &mut BaseApt) {
        let mut roots = Vec::new();
        for uri in &source.uris {
            let shown = uri.split('?').next().unwrap_or_default();
            let shown = shown.rsplit('@').next().unwrap_or_default();
            let refused = match (uri.parse::<Address>(), source.trusted) {
                (_, true) => "it needs no signature (`trusted`)",
                (Ok(_), _) if uri.contains('@') => "its address has a login",
                (Ok(address), _) => {
                    roots.push(address);
                    continue;
                }
                (Err(_), _) => "its address is neither http nor https",
            };
            made.left_out.push(format!("source {shown} of {path}: {refused}"));
        }
        if roots.is_empty() {
            return;
        }
        let mut signed_by = None;
        if let Some(text) = &source.signed_by {
            match self.signed_by(text, made) {
                Ok(line) => signed_by = Some(line),
                Err(why) => {
                    made.left_out.push(format!("source {} of {path}: {why}", roots[0]));
                    return;
                }
            }
        }
        let lines = [
            ("Suites", &source.suites),
            ("Components", &source.components),
            ("Architectures", &source.architectures),
        ];
        if lines.iter().flat_map(|(_, words)| *words).any(|word| word.chars().any(char::is_control)) {
            made.left_out.push(format!("source {} of {path}: it has control characters", roots[0]));
            return;
        }
        let uris: Vec<_> = roots.iter().map(Address::expose).collect();
        let _ = writeln!(made.sources, "Types: deb\nURIs: {}", uris.join(" "));
        for (name, words) in lines.iter().filter(|(_, words)| !words.is_empty()) {
            let _ = writeln!(made.sources, "{name}: {}", words.join(" "));
        }
        if let Some(line) = signed_by {
            let _ = writeln!(made.sources, "Signed-By: {line}");
        }
        made.sources.push('\n');
        made.roots.extend(roots);
    }

    /// The value of `Signed-By` with keyrings at [`KEYS`].
    fn signed_by(&self, text: &str, made: &mut BaseApt) -> Result<String, String> {
        if is_key(text) {
            if text.chars().any(|c| c.is_control() && c != '\n' && c != '\r' && c != '\t') {
                return Err("its key has control characters".to_owned());
            }
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            return Ok(lines.fold(String::new(), |text, line| format!("{text}\n {line}")));
        }
        let mut words = Vec::new();
        for word in text.split_whitespace().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()) {
            if !word.starts_with('/') {
                let is_fingerprint =
                    |word: &str| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_fingerprint(word.trim_end_matches('!')) {
                    return Err("its keyring is named by neither a path nor a fingerprint".to_owned());
                }
                words.push(word.to_owned());
                continue;
            }
            let key = self
                .file(word)
                .ok_or_else(|| format!("its keyring {} is not in the image", word.escape_debug()))?;
            let end = if key.starts_with(b"-----") { "asc" } else { "gpg" };
            let name = format!("{}.{end}", made.keys.len());
            words.push(format!("{KEYS}/{name}"));
            made.keys.push((name, key.clone()));
        }
        Ok(words.join(" "))
    }

    fn preferences(&self) -> String {
        let mut paths = self.below(PREFERENCES);
        // apt ignores files with another ending.
        let is_read = |path: &String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            !name.contains('.') || name.to_ascii_lowercase().ends_with(".pref")
        };
        paths.retain(is_read);
        paths.sort();
        paths.iter().flat_map(|path| [self.text(path), "\n\n".to_owned()]).collect()
    }
}

/// The paths that `Signed-By` names.
fn key_paths(text: &str) -> Vec<String> {
    if is_key(text) {
        return Vec::new();
    }
    let words = text.split_whitespace().flat_map(|word| word.split(','));
    words.filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

/// Whether apt reads a file of its sources.
fn is_source(path: &str) -> bool {
    [".list", ".sources"].iter().any(|end| path.ends_with(end))
}

/// Whether `Signed-By` is a key itself.
fn is_key(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first == Some("-----BEGIN PGP PUBLIC KEY BLOCK-----")
}

/// Whether a name is one word without a path.
fn is_word(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c))
}

/// An absolute path without `.`, `..` and repeated slashes.
fn normal(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an entry of a tar is.
    enum Entry<'a> {
        File(&'a str),
        Link(&'a str),
    }
    use Entry::{File, Link};

    fn files(entries: &[(&str, Entry<'_>)]) -> Files {
        let mut files = Files::default();
        for (path, entry) in entries {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            let name = path.rsplit('/').next().expect("a name");
            match entry {
                File(text) => {
                    header.set_size(text.len() as u64);
                    tar.append_data(&mut header, name, text.as_bytes()).expect("in memory");
                }
                Link(target) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_size(0);
                    tar.append_link(&mut header, name, target).expect("in memory");
                }
            }
            let tar = tar.into_inner().expect("in memory");
            files.add([((*path).to_owned(), tar)].into(), "mine:1").expect("a tar");
        }
        files
    }

    fn of_list(line: &str) -> BaseApt {
        files(&[("/etc/apt/sources.list", File(line))]).base_apt()
    }

    #[test]
    fn library_is_found_as_a_file_and_as_a_link() {
        let has = |path: &str, entry| files(&[(path, entry)]).has_library("libibverbs.so.1");
        assert!(has("/usr/lib/x86_64-linux-gnu/libibverbs.so.1", Link("libibverbs.so.1.14.44.0")));
        assert!(has("/usr/local/lib/libibverbs.so.1", File("ELF")));
        assert!(!has("/usr/lib/x86_64-linux-gnu/libibverbs.so", File("ELF")));
        assert!(!has("/opt/x/lib/libibverbs.so.1", File("ELF")), "the linker does not look there");
        assert!(!Files::default().has_library("libibverbs.so.1"));
    }

    #[test]
    fn sources_keep_their_keys_under_names_of_ours() {
        let found = files(&[
            (
                "/etc/apt/sources.list.d/a.list",
                File("deb [signed-by=/usr/share/keyrings/a.gpg] https://a.test/debian bookworm main contrib"),
            ),
            (
                "/etc/apt/sources.list.d/b.sources",
                File("Types: deb\nURIs: http://b.test/\nSuites: ./\nSigned-By: /etc/b.asc\n"),
            ),
            ("/usr/share/keyrings/a.gpg", Link("a.pgp")),
            ("/usr/share/keyrings/a.pgp", File("key a")),
            ("/etc/b.asc", File("-----BEGIN key b")),
            ("/etc/apt/trusted.gpg.d/c.asc", File("key c")),
            ("/etc/apt/preferences.d/p", File("Package: *")),
            ("/etc/apt/preferences.d/p.save", File("Package: old")),
        ])
        .base_apt();
        assert_eq!(
            found.sources,
            "Types: deb\nURIs: https://a.test/debian\nSuites: bookworm\nComponents: main contrib\nSigned-By: /envforge/keys/0.gpg\n\n\
             Types: deb\nURIs: http://b.test/\nSuites: ./\nSigned-By: /envforge/keys/1.asc\n\n"
        );
        assert_eq!(
            found.keys,
            [("0.gpg".to_owned(), "key a".into()), ("1.asc".to_owned(), "-----BEGIN key b".into())]
        );
        assert_eq!(found.trusted, [("c.asc".to_owned(), "key c".into())]);
        assert_eq!((found.preferences.as_str(), found.left_out.len()), ("Package: *\n\n", 0));
        assert_eq!(found.roots.len(), 2);
    }

    #[test]
    fn source_that_needs_trust_or_a_login_is_left_out_with_its_reason() {
        for (line, why) in [
            ("deb [trusted=yes] http://m.test/debian bookworm main", "needs no signature"),
            ("deb http://u:hunter2@m.test/debian bookworm main", "has a login"),
            ("deb file:///srv/debian bookworm main", "neither http nor https"),
            ("deb copy:/srv/debian bookworm main", "neither http nor https"),
            ("deb cdrom:[Debian]/ bookworm main", "neither http nor https"),
            ("deb mirror+http://m.test/list bookworm main", "neither http nor https"),
            (
                "deb [signed-by=/k.gpg] http://m.test/debian bookworm main",
                "keyring /k.gpg is not in the image",
            ),
            ("deb [signed-by=k.gpg] http://m.test/debian bookworm main", "neither a path nor a fingerprint"),
            ("deb http://m.test/debian book\u{7}worm main", "control characters"),
        ] {
            let found = of_list(line);
            assert_eq!(found.sources, "", "{line}");
            assert!(found.left_out.len() == 1 && found.left_out[0].contains(why), "{:?}", found.left_out);
            assert!(!found.left_out[0].contains("hunter2"), "{:?}", found.left_out);
        }
    }

    #[test]
    fn hooks_and_logins_are_never_used() {
        let found = files(&[
            ("/etc/apt/sources.list", File("deb http://m.test/debian bookworm main")),
            ("/etc/apt/auth.conf.d/a.conf", File("machine m.test login u password hunter2")),
            ("/etc/apt/apt.conf.d/docker-clean", File("usual")),
            ("/etc/apt/apt.conf.d/99hook", File("APT::Update::Pre-Invoke {\"id\";};")),
        ])
        .base_apt();
        let told = found.left_out.join("\n");
        assert!(
            told.contains("auth.conf") && told.contains("99hook") && !told.contains("docker-clean"),
            "{told}"
        );
        let all = format!("{found:?}");
        assert!(!all.contains("hunter2") && !all.contains("Pre-Invoke"), "{all}");
    }

    #[test]
    fn links_and_names_lead_nowhere_else() {
        let round = files(&[
            ("/etc/apt/sources.list", File("deb [signed-by=/a] http://m.test/debian bookworm main")),
            ("/a", Link("/b")),
            ("/b", Link("/a")),
        ]);
        assert_eq!(round.base_apt().sources, "");
        assert!(round.open_end("/a").is_none(), "both are known");
        let away = files(&[(
            "/etc/apt/sources.list",
            File("deb [signed-by=/k/../../k.gpg] http://m.test/debian bookworm main"),
        )]);
        assert_eq!(
            away.keyrings().iter().filter_map(|path| away.open_end(path)).collect::<Vec<_>>(),
            ["/k.gpg"]
        );
        for (path, target) in [
            ("/etc/apt/sources.list.d/x.list", "/usr/share/keyrings/x"),
            ("/etc/apt/sources.list", "/usr/share/keyrings/x"),
        ] {
            let hidden =
                files(&[(path, Link(target)), ("/usr/share/keyrings/x", File("deb http://10.0.0.5/ a b"))])
                    .base_apt();
            assert_eq!((hidden.sources.as_str(), hidden.left_out.len()), ("", 1), "{:?}", hidden.left_out);
        }
        let logins = files(&[
            ("/etc/apt/sources.list", File("deb [signed-by=/etc/apt/auth.conf] http://m.test/ a b")),
            ("/etc/apt/preferences.d/x", Link("../auth.conf")),
            ("/etc/apt/auth.conf", File("password hunter2")),
        ]);
        assert!(!format!("{:?}", logins.base_apt()).contains("hunter2"));
        let mixed = "Types: deb\nURIs: http://m.test/\nSuites: a\nSigned-By: /x -----BEGIN PGP PUBLIC KEY BLOCK-----\n";
        let mixed = files(&[("/etc/apt/sources.list.d/a.sources", File(mixed))]).base_apt();
        assert_eq!(mixed.sources, "");
        let key = "deb822 has a key\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ==\n -----END PGP PUBLIC KEY BLOCK-----";
        let text =
            format!("Types: deb\nURIs: http://m.test/\nSuites: a\nComponents: b\nSigned-By:{}\n", &key[16..]);
        let own = files(&[("/etc/apt/sources.list.d/a.sources", File(&text))]).base_apt();
        assert!(
            own.sources.contains("Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ==\n"),
            "{}",
            own.sources
        );
    }
}
