//! The package indexes of a request: those that are searched, and the one index of a package that has one.

use std::collections::BTreeMap;

use serde::Deserialize as _;

use crate::model::index_address::IndexAddress;
use crate::model::lock::{DEFAULT_INDEX, FRAMEWORK_INDEX, PackageIndex};
use crate::model::project::{IndexEntry, Packages, PythonEntry, requirement_name};
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::project::{index_address, index_address_of_project, unknown_index};
use crate::workflow::request_error::RequestError;

/// The package indexes of a request.
#[derive(Default)]
pub(crate) struct RequestedIndexes {
    /// Names of those that are searched for every package, in this order.
    pub(crate) searched: Vec<String>,
    /// Packages that come from one index only, sorted by name.
    pub(crate) pinned: Vec<PackageIndex>,
    /// Addresses of both kinds by name, as the user configured them, else as the project knows them.
    pub(crate) addresses: BTreeMap<String, IndexAddress>,
}

impl RequestedIndexes {
    /// Those of a project's packages.
    pub(crate) fn of_project(packages: &Packages, settings: &Settings) -> Result<Self, CommandError> {
        let mut all = Self::default();
        for entry in &packages.indexes {
            let (name, known) = match &**entry {
                IndexEntry::Named(name) => (name, None),
                IndexEntry::Known(index) => (&index.name, Some(index.format.written(&index.url).into())),
            };
            let address = match (settings.index.named.get(name), known) {
                (Some(own), _) => index_address(own, settings)?,
                (None, Some(known)) => index_address_of_project(&known, settings)?,
                (None, None) => return Err(unknown_index(name, settings).into()),
            };
            all.addresses.insert(name.clone(), address);
            if !all.searched.contains(name) {
                all.searched.push(name.clone());
            }
        }
        all.pin(packages.python.iter().map(|entry| &**entry), settings)?;
        Ok(all)
    }

    /// Those of requirements on the command line.
    pub(crate) fn of_typed(entries: &[PythonEntry], settings: &Settings) -> Result<Self, CommandError> {
        let mut all = Self::default();
        all.pin(entries.iter(), settings)?;
        Ok(all)
    }

    fn pin<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a PythonEntry>,
        settings: &Settings,
    ) -> Result<(), CommandError> {
        for entry in entries {
            let (Ok(name), Some(index)) = (requirement_name(entry.text()), entry.index()) else { continue };
            match index {
                DEFAULT_INDEX if settings.index.default.is_none() => {
                    return Err(RequestError::DefaultIndexUnset { package: name }.into());
                }
                DEFAULT_INDEX | FRAMEWORK_INDEX => {}
                index if self.addresses.contains_key(index) => {}
                index => {
                    let text = settings.index.named.get(index);
                    let text = text.ok_or_else(|| unknown_index(index, settings))?;
                    self.addresses.insert(index.to_owned(), index_address(text, settings)?);
                }
            }
            self.pinned.push(PackageIndex { name, index: index.to_owned() });
        }
        self.pinned.sort();
        self.pinned.dedup_by(|one, other| one.name == other.name);
        Ok(())
    }
}

/// Parses a requirement of the command line: `requests>=2`, or an inline table with its index.
pub(crate) fn typed_requirement(text: &str) -> Result<PythonEntry, RequestError> {
    let wrong = |text: String| RequestError::Addition { option: "--with", text };
    if !text.trim_start().starts_with('{') {
        requirement_name(text).map_err(wrong)?;
        return Ok(PythonEntry::Requirement(text.to_owned()));
    }
    // The text is not repeated: an address in it may hold a password.
    let form = || wrong("expected `{ name = \"REQUIREMENT\", index = \"INDEX\" }`".to_owned());
    let value = toml::de::ValueDeserializer::parse(text).map_err(|_| form())?;
    let entry = PythonEntry::deserialize(value).map_err(|_| form())?;
    requirement_name(entry.text()).map_err(wrong)?;
    if !entry.index().is_some_and(crate::model::project::is_name) {
        return Err(form());
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_requirement_may_have_an_index() {
        let plain = typed_requirement("requests>=2").expect("parses");
        assert_eq!((plain.text(), plain.index()), ("requests>=2", None));
        let pinned = typed_requirement("{ name = \"ourtool>=2\", index = \"internal\" }").expect("parses");
        assert_eq!((pinned.text(), pinned.index()), ("ourtool>=2", Some("internal")));
        for bad in [
            "{ name = \"x\" }",
            "{ name = \"x\", index = \"https://u:p@host/simple\" }",
            "{ name = \"-r x\", index = \"internal\" }",
            "{ name = \"x\", index = \"internal\", url = \"https://host\" }",
            "{ name = \"x\"",
        ] {
            assert!(typed_requirement(bad).is_err(), "{bad}");
        }
    }
}
