//! Names of the configuration files: the tables, the site's file, and what each key comes from.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

/// The file of each key that is set: `mirrors.debian`.
pub type Origins = BTreeMap<String, Utf8PathBuf>;

/// The configuration of a site.
pub(crate) const SITE_FILE: &str = "/etc/envforge/config.toml";

/// The tables.
pub(super) const TABLES: [&str; 13] = [
    "mirrors", "index", "indexes", "secrets", "network", "engine", "registry", "toolkit", "source", "trust",
    "policy", "matrix", "cluster",
];
