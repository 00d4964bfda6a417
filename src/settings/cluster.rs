//! `[cluster]`: how nodes of a cluster start images from files, where a project says nothing else.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::matrix::absolute;
use crate::model::cluster::ClusterRuntime;

/// `[cluster]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ClusterConfig {
    /// Container runtime of the nodes: `pyxis` (with enroot) starts a squashfs, `apptainer` a SIF.
    #[schemars(with = "Option<String>")]
    pub runtime: Option<ClusterRuntime>,
    /// Directory of image files on storage that all nodes share, by an absolute path: `/shared/images`.
    #[serde(deserialize_with = "absolute")]
    #[schemars(with = "Option<String>")]
    pub folder: Option<Utf8PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::parse_config;

    #[test]
    fn runtime_and_absolute_directory_are_read_and_nothing_else() {
        let read = |text: &str| parse_config("c.toml".into(), &format!("[cluster]\n{text}\n"));
        let cluster = read("runtime = 'pyxis'\nfolder = '/shared/images'").expect("read").cluster;
        assert_eq!(cluster.runtime, Some(ClusterRuntime::Pyxis));
        assert_eq!(cluster.folder.as_deref(), Some("/shared/images".into()));
        for (text, says) in [
            ("folder = 'images'", "`images` is not an absolute path"),
            ("runtime = 'docker'", "expected `pyxis` or `apptainer`"),
        ] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
