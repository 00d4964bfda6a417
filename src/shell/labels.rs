//! What is known of our containers: all of it stands in their labels.

use std::collections::BTreeMap;

use crate::engine::{ContainerInfo, OWNER_LABEL, SHELL_LABEL};
use crate::host::process_owner::unique_name;

const SPEC: &str = "io.envforge.shell.spec";
const FOLDER: &str = "io.envforge.shell.folder";
const USER: &str = "io.envforge.shell.user";
const GPUS: &str = "io.envforge.shell.gpus";
const SERVICES: &str = "io.envforge.shell.services";
const ENDS: &str = "io.envforge.shell.ends";

/// When a container ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// With its command.
    WithCommand,
    /// With the last terminal in it.
    WithTerminals,
    /// With the call that started it.
    WithCall,
    /// When it is stopped.
    WhenStopped,
}

impl Ends {
    fn word(self) -> &'static str {
        match self {
            Self::WithCommand => "with-its-command",
            Self::WithTerminals => "with-its-terminals",
            Self::WithCall => "with-its-call",
            Self::WhenStopped => "when-stopped",
        }
    }
}

/// A container of ours, as its labels tell.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    /// Its name in `ps`.
    pub(crate) name: String,
    /// The spec or image it was started for.
    pub(crate) spec: String,
    /// The project's folder.
    pub(crate) folder: String,
    /// `uid:gid` of the caller.
    pub(crate) user: String,
    /// `all`, `none`, or the names of its GPUs.
    pub(crate) gpus: String,
    /// `jupyter=8888 ssh=2222`.
    pub(crate) services: String,
    pub(crate) ends: Ends,
    pub(crate) container: ContainerInfo,
}

impl Shell {
    /// The shell a container is, if it is one.
    pub(crate) fn of(container: ContainerInfo) -> Option<Self> {
        let label = |name: &str| container.labels.get(name).cloned();
        let ends = [Ends::WithCommand, Ends::WithTerminals, Ends::WithCall, Ends::WhenStopped];
        let word = label(ENDS)?;
        Some(Self {
            name: label(SHELL_LABEL)?,
            spec: label(SPEC)?,
            folder: label(FOLDER)?,
            user: label(USER)?,
            gpus: label(GPUS).unwrap_or_default(),
            services: label(SERVICES).unwrap_or_default(),
            ends: ends.into_iter().find(|ends| ends.word() == word)?,
            container,
        })
    }

    /// True if it runs.
    pub(crate) fn runs(&self) -> bool {
        self.container.state == "running"
    }
}

/// The container's name at the engine.
pub(crate) fn container_name(name: &str) -> String {
    format!("envforge-{name}")
}

/// What a new container's labels say.
pub(crate) struct ContainerLabels<'a> {
    pub(crate) name: &'a str,
    pub(crate) spec: &'a str,
    pub(crate) folder: &'a str,
    pub(crate) user: &'a str,
    pub(crate) gpus: &'a str,
    pub(crate) services: &'a str,
    pub(crate) ends: Ends,
}

impl ContainerLabels<'_> {
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        let mut labels: BTreeMap<_, _> = [
            (SHELL_LABEL, self.name),
            (SPEC, self.spec),
            (FOLDER, self.folder),
            (USER, self.user),
            (GPUS, self.gpus),
            (SERVICES, self.services),
            (ENDS, self.ends.word()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        // One that is waited for goes with who waits, should he be killed.
        if self.ends != Ends::WhenStopped {
            labels.insert(OWNER_LABEL.to_owned(), unique_name());
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_all_that_was_said() {
        let says = ContainerLabels {
            name: "a",
            spec: "s",
            folder: "/f",
            user: "1:2",
            gpus: "all",
            services: "ssh=2222",
            ends: Ends::WithTerminals,
        };
        let info = |labels| ContainerInfo { state: "running".to_owned(), labels, ..ContainerInfo::default() };
        let shell = Shell::of(info(says.labels())).expect("a shell");
        assert_eq!(
            (shell.name.as_str(), shell.folder.as_str(), shell.ends),
            ("a", "/f", Ends::WithTerminals)
        );
        assert!(shell.runs());
        assert!(Shell::of(info(BTreeMap::new())).is_none());
        let detached = ContainerLabels { ends: Ends::WhenStopped, ..says };
        assert!(!detached.labels().contains_key(OWNER_LABEL), "nobody waits for it");
    }
}
