//! The order in which uv searches the package indexes, and the packages that come from one index only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use super::catalogue::catalogue;
use super::error::PackagesError;
use super::request::PackageRequest;
use super::script_file::{FOLDER, file};
use super::settings::IndexSettings;
use super::wheel_name::normalised;
use super::wheels::Origins;
use crate::engine::ContainerFile;
use crate::model::compat::tables::Channel;
use crate::model::index_address::IndexAddress;
use crate::model::lock::{DEFAULT_INDEX, FRAMEWORK_INDEX, IndexKind, UserAdditions};
use crate::model::stack::Stack;

/// PyTorch's own index, for the torch of another framework. uv takes the name; an index of a project cannot have it.
const TORCH_INDEX: &str = "framework--torch";

/// The package indexes of one resolution.
pub(super) struct IndexOrder<'a> {
    /// The framework's own index, which serves only the packages of its rows.
    framework: Option<IndexAddress>,
    /// Further indexes, which are searched first, in this order.
    searched: Vec<(&'a str, &'a IndexAddress)>,
    /// The default index; `None`: uv's own.
    default: Option<IndexAddress>,
    /// The only index of a package, by the package's name.
    pinned: BTreeMap<String, &'a str>,
    /// The indexes of `pinned` by name.
    of_pinned: BTreeMap<&'a str, IndexAddress>,
}

impl<'a> IndexOrder<'a> {
    /// The indexes of a request.
    pub(super) fn of(
        request: &PackageRequest<'a>,
        settings: &'a IndexSettings,
    ) -> Result<Self, PackagesError> {
        let unindexed = request.unindexed_wheels();
        Self::beside(request.stack, request.added, settings, |name| {
            unindexed.iter().any(|wheel| wheel.name == name)
        })
    }

    /// Those of a user's additions to a stack; `is_unindexed`: whether a package is a wheel that no index lists.
    pub(super) fn beside(
        stack: &Stack,
        added: &'a UserAdditions,
        settings: &'a IndexSettings,
        is_unindexed: impl Fn(&str) -> bool,
    ) -> Result<Self, PackagesError> {
        let address = |name: &str| {
            settings.further.get(name).ok_or_else(|| PackagesError::IndexUnset { name: name.to_owned() })
        };
        let own = settings.own_index(stack);
        let lacks_framework = || PackagesError::NoFrameworkIndex {
            framework: stack.framework.clone(),
            cuda: stack.cuda.to_string(),
        };
        let framework = match stack.channel {
            Channel::Default => None,
            Channel::Framework => Some(own.clone().ok_or_else(lacks_framework)?),
            // It has no wheel of an unpublished variant, but a configured one may have the libraries.
            Channel::Source => {
                settings.framework.as_ref().map(|index| index.of(stack.cuda, &stack.version.to_string()))
            }
        };
        // Another framework's torch comes from PyTorch's own index.
        let torch = settings.framework_indexes(stack).into_iter().find(|index| Some(index) != own.as_ref());
        let mut pinned = BTreeMap::new();
        if stack.channel == Channel::Framework {
            pinned.extend(row_packages(stack).into_iter().map(|name| (name, FRAMEWORK_INDEX)));
            if torch.is_some() {
                let of_torch = stack.companions.keys().filter(|name| name.starts_with("torch"));
                pinned.extend(of_torch.map(|name| (normalised(name), TORCH_INDEX)));
            }
        }
        pinned.extend(added.python_index.iter().map(|pin| (pin.name.clone(), pin.index.as_str())));
        // A wheel that no index lists represents itself.
        pinned.retain(|name, _| !is_unindexed(name));
        let mut of_pinned = BTreeMap::new();
        for index in pinned.values() {
            let address = match *index {
                FRAMEWORK_INDEX => own.clone().ok_or_else(lacks_framework)?,
                TORCH_INDEX => torch.clone().ok_or_else(lacks_framework)?,
                DEFAULT_INDEX => settings
                    .default
                    .clone()
                    .map(IndexAddress::from)
                    .ok_or_else(|| PackagesError::IndexUnset { name: DEFAULT_INDEX.to_owned() })?,
                name => address(name)?.clone(),
            };
            of_pinned.insert(*index, address);
        }
        let searched = added.indexes.iter().map(|name| Ok((name.as_str(), address(name)?)));
        let searched = searched.collect::<Result<_, PackagesError>>()?;
        let default = settings.default.clone().map(IndexAddress::from);
        let order = Self { framework, searched, default, pinned, of_pinned };
        match order.flat_index().filter(|_| added.as_of.is_some()) {
            Some(name) => Err(PackagesError::FlatWithDate { name: name.to_owned() }),
            None => Ok(order),
        }
    }

    /// Returns the names of the indexes that a package may come from, in the order of the search.
    pub(super) fn indexes_of(&self, package: &str) -> Vec<&str> {
        if let Some(index) = self.pinned.get(package) {
            return vec![index];
        }
        self.searched.iter().map(|(name, _)| *name).chain([DEFAULT_INDEX]).collect()
    }

    /// Returns the same with their addresses; that of the default index is uv's own where no setting names one.
    pub(super) fn addresses_of(&self, package: &str) -> Vec<(&str, IndexAddress)> {
        if let Some(index) = self.pinned.get(package) {
            return self.of_pinned.get(index).map(|address| (*index, address.clone())).into_iter().collect();
        }
        let searched = self.searched.iter().map(|(name, address)| (*name, (*address).clone()));
        let default = self.default.clone().unwrap_or_else(|| catalogue().default_index().into());
        searched.chain([(DEFAULT_INDEX, default)]).collect()
    }

    /// Returns the name of an index that is one page of links, which tells no upload times.
    fn flat_index(&self) -> Option<&str> {
        let framework = self.framework.iter().map(|index| (FRAMEWORK_INDEX, index));
        let searched = self.searched.iter().copied();
        let pinned = self.of_pinned.iter().map(|(name, index)| (*name, index));
        let mut all = framework.chain(searched).chain(pinned);
        all.find_map(|(name, index)| index.is_flat().then_some(name))
    }

    /// Whether every package comes from the default index.
    fn is_default_alone(&self) -> bool {
        self.framework.is_none() && self.searched.is_empty() && self.pinned.is_empty()
    }

    /// Returns uv's configurations, with the lines that are common to them. They hold credentials.
    pub(super) fn files(&self, common: &str) -> Vec<ContainerFile> {
        let private = |name: &str, text: String| file(name, 0o600, text);
        let searched = self.searched.iter().map(|(_, index)| index_table(index, false));
        // Where none is set, uv adds its own default, last.
        let default = self.default.as_ref().map(|index| index_table(index, true));
        let last: String = searched.chain(default).collect();
        let options = "\n[pip]\nonly-binary = [\":all:\"]\n";
        let text = format!("index-strategy = \"first-index\"\n{common}{last}{options}");
        let mut files = vec![private("uv.toml", text)];
        if self.is_default_alone() {
            return files;
        }
        // Which names a part has does not depend on the index: its versions are those of the whole.
        let first: BTreeSet<_> =
            self.of_pinned.values().filter(|index| Some(*index) != self.default.as_ref()).collect();
        let first = self.framework.iter().chain(first.into_iter().filter(|index| {
            Some(*index) != self.framework.as_ref() && self.searched.iter().all(|(_, other)| other != index)
        }));
        let first: String = first.map(|index| index_table(index, false)).collect();
        let text = format!("index-strategy = \"unsafe-first-match\"\n{common}{first}{last}{options}");
        files.push(private("parts.toml", text));
        if let Some(index) = &self.framework {
            files.push(private("framework.url", format!("{}\n", index.address().without_login())));
        }
        files.push(private("sources.toml", self.sources()));
        let mut order = String::new();
        for (place, (name, index)) in self.searched.iter().enumerate() {
            let configuration = format!("only-{place}.toml");
            let _ = writeln!(order, "{name} {} {FOLDER}/{configuration}", index.address().without_login());
            files.push(private(&configuration, index_table(index, true)));
        }
        let default = self.default.as_ref();
        let url = default.map_or_else(|| "-".to_owned(), |index| index.address().without_login());
        let default = default.map_or_else(String::new, |index| index_table(index, true));
        let _ = writeln!(order, "{DEFAULT_INDEX} {url} {FOLDER}/only-default.toml");
        files.push(private("only-default.toml", default));
        files.push(private("order", order));
        files
    }

    /// Returns the part of a `pyproject.toml` that pins packages to indexes; the script adds lines to its last table.
    fn sources(&self) -> String {
        let framework = self.framework.as_ref().map(|index| (FRAMEWORK_INDEX, index));
        let mut indexes: BTreeMap<_, _> = self.of_pinned.iter().map(|(name, index)| (*name, index)).collect();
        indexes.extend(framework);
        let mut text = String::new();
        for (name, index) in indexes {
            let (name, lines) = (toml::Value::from(name), index_lines(index));
            let _ = writeln!(text, "\n[[tool.uv.index]]\nname = {name}\n{lines}explicit = true");
        }
        text.push_str("\n[tool.uv.sources]\n");
        for (package, index) in &self.pinned {
            let _ = writeln!(text, "{package} = {{ index = {} }}", toml::Value::from(*index));
        }
        text
    }

    /// Returns the index of each package, from lines `PACKAGE ADDRESS`.
    pub(super) fn origins(&self, lines: &str) -> Origins {
        let lines = lines.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(package, url)| (normalised(package), self.index_at(url))).collect()
    }

    /// Returns the kind and the recorded name of the index with this address, as uv prints it.
    pub(super) fn index_at(&self, url: &str) -> (IndexKind, Option<String>) {
        let is = |index: &IndexAddress| same(&index.address().without_login(), url);
        let named = self.searched.iter().map(|(name, index)| (*name, *index));
        let pinned = self.of_pinned.iter().map(|(name, index)| (*name, index));
        let framework = self.framework.iter().map(|index| (FRAMEWORK_INDEX, index));
        match named.chain(framework).chain(pinned).find(|(_, index)| is(index)) {
            Some((FRAMEWORK_INDEX | TORCH_INDEX, _)) => (IndexKind::Framework, None),
            Some((DEFAULT_INDEX, _)) | None => (IndexKind::Default, None),
            Some((name, _)) => (IndexKind::Default, Some(name.to_owned())),
        }
    }
}

/// A package whose name several indexes have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedName {
    /// The package.
    pub package: String,
    /// The index it came from.
    pub used: String,
    /// The others.
    pub others: Vec<String>,
}

impl fmt::Display for SharedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { package, used, others } = self;
        write!(
            f,
            "`{package}` comes from index `{used}`; a package of that name is also in `{}` (choose one: `{{ name = \"{package}\", index \
             = \"{used}\" }}` in `[packages] python`)",
            others.join("` and `")
        )
    }
}

/// Returns the packages whose name several indexes have, from lines `PACKAGE INDEX`.
pub(super) fn shared_names(lines: &str, origins: &Origins) -> Vec<SharedName> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (package, other) in lines.lines().filter_map(|line| line.split_once(' ')) {
        all.entry(normalised(package)).or_default().push(other.to_owned());
    }
    let name = |package: String, mut others: Vec<String>| {
        others.sort();
        let used = origins.get(&package).and_then(|(_, name)| name.clone());
        let used = used.unwrap_or_else(|| DEFAULT_INDEX.to_owned());
        SharedName { package, used, others }
    };
    all.into_iter().map(|(package, others)| name(package, others)).collect()
}

/// Whether two addresses are of one index.
fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.split('#').next().unwrap_or_default().trim_end_matches('/').to_owned();
    plain(one) == plain(other)
}

/// Returns the requirements of a stack's row that its framework's own index serves. The script adds CUDA libraries and Triton,
/// if the index has them.
fn row_packages(stack: &Stack) -> Vec<String> {
    let of_install = stack.install.iter().filter(|text| text.contains('+'));
    let of_install = of_install.filter_map(|text| text.split(['=', '<', '>', '~', '!', ' ']).next());
    let package = (stack.install.is_empty() && !stack.is_toolkit()).then_some(stack.package.as_str());
    let companions = stack.companions.keys().map(String::as_str);
    package.into_iter().chain(of_install).chain(companions).map(normalised).collect()
}

fn index_table(index: &IndexAddress, default: bool) -> String {
    format!("\n[[index]]\n{}default = {default}\n", index_lines(index))
}

/// Returns the lines of uv's configuration for an index.
fn index_lines(index: &IndexAddress) -> String {
    let format = if index.is_flat() { "format = \"flat\"\n" } else { "" };
    format!("url = {}\n{format}", toml::Value::from(index.address().expose()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::{PackageIndex, sample};
    use crate::model::project::is_name;

    fn settings() -> IndexSettings {
        let address = |text: &str| text.parse::<IndexAddress>().expect("an address");
        IndexSettings {
            default: Some("https://u:hunter2@index.example.test/simple".parse().expect("an address")),
            framework: Some("https://torch.example.test/whl/{cuda}".parse().expect("an address")),
            further: BTreeMap::from([
                ("internal".to_owned(), address("https://u:hunter2@index.example.test/internal/")),
                ("a-mirror".to_owned(), address("https://mirror.example.test/simple")),
            ]),
            ..IndexSettings::default()
        }
    }

    fn added(indexes: &[&str], pins: &[(&str, &str)]) -> UserAdditions {
        let pin = |(name, index): &(&str, &str)| PackageIndex {
            name: (*name).to_owned(),
            index: (*index).to_owned(),
        };
        UserAdditions {
            indexes: indexes.iter().map(|name| (*name).to_owned()).collect(),
            python_index: pins.iter().map(pin).collect(),
            ..UserAdditions::default()
        }
    }

    fn framework_stack() -> Stack {
        Stack { channel: Channel::Framework, ..sample::stack() }
    }

    fn files(stack: &Stack, added: &UserAdditions, settings: &IndexSettings) -> BTreeMap<String, String> {
        let lock = sample::lock();
        let request = PackageRequest::sample(&lock, stack, added);
        let order = IndexOrder::of(&request, settings).expect("every index has an address");
        let text = |file: ContainerFile| {
            assert!(file.mode == 0o600, "{}", file.path);
            let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
            (name, String::from_utf8(file.bytes.to_vec()).expect("text"))
        };
        order.files("").into_iter().map(text).collect()
    }

    fn urls(configuration: &str) -> Vec<(String, bool)> {
        let table: toml::Table = configuration.parse().expect("valid TOML");
        let url = |index: &toml::Value| {
            let url = index["url"].as_str().expect("an address").to_owned();
            (
                url.rsplit("//").next().expect("a host").rsplit('@').next().expect("a host").to_owned(),
                index["default"].as_bool() == Some(true),
            )
        };
        table.get("index").and_then(toml::Value::as_array).into_iter().flatten().map(url).collect()
    }

    #[test]
    fn further_indexes_come_first_in_the_order_of_the_project_and_win() {
        let files = files(&sample::stack(), &added(&["internal", "a-mirror"], &[]), &settings());
        assert!(files["uv.toml"].starts_with("index-strategy = \"first-index\"\n"), "{}", files["uv.toml"]);
        let index = |url: &str, default| (url.to_owned(), default);
        assert_eq!(
            urls(&files["uv.toml"]),
            [
                index("index.example.test/internal/", false),
                index("mirror.example.test/simple", false),
                index("index.example.test/simple", true)
            ]
        );
        assert_eq!(
            files["order"],
            "internal https://index.example.test/internal/ /envforge/only-0.toml\n\
             a-mirror https://mirror.example.test/simple /envforge/only-1.toml\n\
             default https://index.example.test/simple /envforge/only-default.toml\n"
        );
        assert_eq!(urls(&files["only-0.toml"]), [index("index.example.test/internal/", true)]);
    }

    #[test]
    fn only_uv_toml_is_written_for_the_default_index_alone() {
        let alone = files(&sample::stack(), &UserAdditions::default(), &settings());
        assert_eq!(alone.keys().collect::<Vec<_>>(), ["uv.toml"]);
        assert_eq!(urls(&alone["uv.toml"]), [("index.example.test/simple".to_owned(), true)]);
        let unset = IndexSettings { default: None, ..settings() };
        let uv = &files(&sample::stack(), &UserAdditions::default(), &unset)["uv.toml"];
        assert_eq!(urls(uv), [], "uv adds its own default");
        let order = &files(&sample::stack(), &added(&["internal"], &[]), &unset)["order"];
        assert!(order.ends_with("\ndefault - /envforge/only-default.toml\n"), "{order}");
    }

    #[test]
    fn framework_index_serves_only_the_packages_of_its_rows() {
        let files = files(&framework_stack(), &added(&["internal"], &[]), &settings());
        assert_eq!(
            urls(&files["uv.toml"]),
            [
                ("index.example.test/internal/".to_owned(), false),
                ("index.example.test/simple".to_owned(), true)
            ]
        );
        let sources: toml::Table = files["sources.toml"].parse().expect("valid TOML");
        let uv = &sources["tool"]["uv"];
        assert_eq!(uv["index"][0]["url"].as_str(), Some("https://torch.example.test/whl/cu128"));
        assert_eq!(uv["index"][0]["explicit"].as_bool(), Some(true), "searched for no other package");
        let pinned: Vec<_> = uv["sources"].as_table().expect("a table").keys().cloned().collect();
        assert_eq!(pinned, ["torch", "torchaudio", "torchvision"]);
        let jax = ["jax==0.4.14", "jaxlib==0.4.14+cuda12.cudnn89"].map(str::to_owned).to_vec();
        let jax = Stack { install: jax, companions: BTreeMap::new(), ..framework_stack() };
        assert_eq!(row_packages(&jax), ["jaxlib"]);
    }

    #[test]
    fn torch_of_another_frameworks_own_index_comes_from_pytorchs() {
        let stack = Stack {
            framework: "vllm".to_owned(),
            package: "vllm".to_owned(),
            version: "0.20.0".parse().unwrap(),
            cuda: "cu129".parse().unwrap(),
            channel: Channel::Framework,
            install: vec!["vllm==0.20.0+cu129".to_owned()],
            companions: BTreeMap::from([("torch".to_owned(), "2.11.0".to_owned())]),
            ..sample::stack()
        };
        let mut settings = settings();
        let own = "https://vllm.example.test/{cuda}".parse().unwrap();
        settings.of_framework = BTreeMap::from([("vllm".to_owned(), own)]);
        let files = files(&stack, &added(&[], &[]), &settings);
        let sources: toml::Table = files["sources.toml"].parse().expect("valid TOML");
        let of = |package: &str| {
            let uv = &sources["tool"]["uv"];
            let name = uv["sources"][package]["index"].as_str();
            let indexes = uv["index"].as_array().expect("a list");
            let index = indexes.iter().find(|index| index["name"].as_str() == name).expect("it is listed");
            index["url"].as_str().expect("an address").to_owned()
        };
        assert_eq!(of("vllm"), "https://vllm.example.test/cu129");
        assert!(of("torch").ends_with("/cu129") && !of("torch").contains("vllm"), "{}", of("torch"));
        // uv takes letters, digits, `-`, `_` and `.`; a project's names have no two separators in a row.
        let taken_by_uv = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(TORCH_INDEX.chars().all(taken_by_uv) && !is_name(TORCH_INDEX));
        // The user's choice of an index wins over the row.
        let (lock, chosen) = (sample::lock(), added(&[], &[("torch", "internal")]));
        let request = PackageRequest::sample(&lock, &stack, &chosen);
        let order = IndexOrder::of(&request, &settings).expect("every index has an address");
        assert_eq!(order.pinned["torch"], "internal");
    }

    #[test]
    fn pinned_package_comes_from_its_index_only() {
        let added = added(&[], &[("ourtool", "internal"), ("torch", "default")]);
        let files = files(&framework_stack(), &added, &settings());
        assert_eq!(urls(&files["uv.toml"]).len(), 1, "a pinned index is searched for nothing else");
        let sources: toml::Table = files["sources.toml"].parse().expect("valid TOML");
        let of = |name: &str| sources["tool"]["uv"]["sources"][name]["index"].as_str();
        assert_eq!(
            (of("ourtool"), of("torch")),
            (Some("internal"), Some("default")),
            "the user's word counts"
        );
        assert_eq!(of("torchvision"), Some("framework"));
    }

    #[test]
    fn release_page_serves_the_row_and_a_further_page_is_searched() {
        let stack = Stack {
            framework: "vllm".to_owned(),
            package: "vllm".to_owned(),
            version: "0.20.0".parse().unwrap(),
            cuda: "cu129".parse().unwrap(),
            channel: Channel::Framework,
            install: vec!["vllm==0.20.0+cu129".to_owned()],
            companions: BTreeMap::new(),
            ..sample::stack()
        };
        let mut settings = settings();
        let page = "flat+https://u:hunter2@forge.example.test/v{version}/files.html".parse().unwrap();
        settings.of_framework = BTreeMap::from([("vllm".to_owned(), page)]);
        let pages = "flat+https://pages.example.test/{}".parse().unwrap();
        settings.further.insert("a-mirror".to_owned(), pages);
        let files = files(&stack, &added(&["a-mirror"], &[]), &settings);
        let flat = |table: &toml::Value| {
            (
                table["url"].as_str().unwrap().to_owned(),
                table.get("format").and_then(toml::Value::as_str) == Some("flat"),
            )
        };
        let of = |file: &str| -> Vec<_> {
            let table: toml::Table = files[file].parse().expect("valid TOML");
            let table =
                table.get("tool").map_or(table.clone(), |tool| tool["uv"].as_table().unwrap().clone());
            table["index"].as_array().expect("a list").iter().map(flat).collect()
        };
        let page = ("https://u:hunter2@forge.example.test/v0.20.0/files.html".to_owned(), true);
        let further = ("https://pages.example.test/%7B%7D".to_owned(), true);
        let default = ("https://u:hunter2@index.example.test/simple".to_owned(), false);
        assert_eq!(of("sources.toml"), std::slice::from_ref(&page));
        assert_eq!(of("parts.toml"), [page, further.clone(), default.clone()]);
        assert_eq!(of("uv.toml"), [further.clone(), default], "the release page serves no other package");
        assert_eq!(of("only-0.toml"), [further], "the search for double names reads the page as one");
        assert_eq!(files["framework.url"], "https://forge.example.test/v0.20.0/files.html\n");
        let (lock, added) = (sample::lock(), added(&["a-mirror"], &[]));
        let order =
            IndexOrder::of(&PackageRequest::sample(&lock, &stack, &added), &settings).expect("an order");
        let origins = order.origins(
            "vllm https://forge.example.test/v0.20.0/files.html\nx https://pages.example.test/%7B%7D\n",
        );
        assert_eq!(origins["vllm"], (IndexKind::Framework, None));
        assert_eq!(origins["x"], (IndexKind::Default, Some("a-mirror".to_owned())));
    }

    #[test]
    fn package_comes_from_its_own_index_or_from_those_that_are_searched() {
        let (lock, stack) = (sample::lock(), sample::stack());
        let mut settings = settings();
        for name in ["internal", "a-mirror"] {
            settings.further.insert(name.to_owned(), "https://pages.example.test/".parse().unwrap());
        }
        let added = added(&["a-mirror"], &[("x", "internal")]);
        let order =
            IndexOrder::of(&PackageRequest::sample(&lock, &stack, &added), &settings).expect("an order");
        assert_eq!(order.indexes_of("x"), ["internal"]);
        assert_eq!(order.indexes_of("y"), ["a-mirror", "default"]);
    }

    #[test]
    fn page_of_links_has_no_upload_times_for_a_date() {
        let mut settings = settings();
        settings.further.insert("internal".to_owned(), "flat+https://pages.example.test/".parse().unwrap());
        let as_of = Some("2026-03-02T00:00:00Z".to_owned());
        let (lock, stack) = (sample::lock(), sample::stack());
        let with = |indexes: &[&str], pins: &[(&str, &str)], as_of: &Option<String>| {
            let added = UserAdditions { as_of: as_of.clone(), ..added(indexes, pins) };
            IndexOrder::of(&PackageRequest::sample(&lock, &stack, &added), &settings).err()
        };
        for error in [with(&["internal"], &[], &as_of), with(&[], &[("x", "internal")], &as_of)] {
            let error = error.expect("refused");
            assert_eq!(
                error.to_string(),
                "index `internal` is a page of links without upload times, which `--as-of` requires"
            );
            assert_eq!((error.exit(), error.hints().len()), (Exit::Outside, 1));
        }
        assert!(with(&["internal"], &[], &None).is_none() && with(&["a-mirror"], &[], &as_of).is_none());
    }

    #[test]
    fn index_without_address_is_an_error() {
        let (lock, stack) = (sample::lock(), sample::stack());
        let unset = IndexSettings { default: None, ..settings() };
        for (added, name) in [
            (added(&["gone"], &[]), "gone"),
            (added(&[], &[("x", "gone")]), "gone"),
            (added(&[], &[("x", "default")]), "default"),
        ] {
            let error =
                IndexOrder::of(&PackageRequest::sample(&lock, &stack, &added), &unset).err().expect(name);
            assert_eq!(error.to_string(), format!("package index `{name}` is not configured"));
            assert_eq!((error.exit(), error.hints().len()), (Exit::Usage, 1));
        }
    }

    #[test]
    fn origins_are_names_of_indexes_and_never_addresses() {
        let (lock, stack) = (sample::lock(), framework_stack());
        let (added, settings) = (added(&["internal"], &[("pinned", "a-mirror")]), settings());
        let order =
            IndexOrder::of(&PackageRequest::sample(&lock, &stack, &added), &settings).expect("an order");
        let origins = order.origins(
            "Our_Tool https://index.example.test/internal\npinned https://mirror.example.test/simple/\n\
             torch https://torch.example.test/whl/cu128\nrich https://index.example.test/simple\n",
        );
        let of = |name: &str| origins[name].clone();
        assert_eq!(of("our-tool"), (IndexKind::Default, Some("internal".to_owned())));
        assert_eq!(of("pinned"), (IndexKind::Default, Some("a-mirror".to_owned())));
        assert_eq!(of("torch"), (IndexKind::Framework, None));
        assert_eq!(of("rich"), (IndexKind::Default, None));
        let shared = shared_names("our-tool default\nour-tool a-mirror\n", &origins);
        assert_eq!(
            shared.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "`our-tool` comes from index `internal`; a package of that name is also in `a-mirror` and `default` (choose one: \
              `{ name = \"our-tool\", index = \"internal\" }` in `[packages] python`)"
            ]
        );
    }
}
