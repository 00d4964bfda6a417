//! What is known of our containers: all of it stands in their labels.

use std::collections::BTreeMap;

use crate::engine::{ContainerInfo, OWNER_LABEL, SHELL_LABEL};
use crate::owner::own_name;

const SPEC: &str = "io.envforge.shell.spec";
const FOLDER: &str = "io.envforge.shell.folder";
const USER: &str = "io.envforge.shell.user";
const GPUS: &str = "io.envforge.shell.gpus";
const SERVICES: &str = "io.envforge.shell.services";
const ENDS: &str = "io.envforge.shell.ends";

/// When a container ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Ends {
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
pub(in crate::commands) struct Shell {
    /// Its name in `ps`.
    pub(in crate::commands) name: String,
    /// The spec or image it was started for.
    pub(in crate::commands) spec: String,
    /// The project's folder.
    pub(in crate::commands) folder: String,
    /// `uid:gid` of the caller.
    pub(in crate::commands) user: String,
    /// `all`, `none`, or the names of its GPUs.
    pub(in crate::commands) gpus: String,
    /// `jupyter=8888 ssh=2222`.
    pub(in crate::commands) services: String,
    pub(in crate::commands) ends: Ends,
    pub(in crate::commands) container: ContainerInfo,
}

impl Shell {
    /// The shell a container is, if it is one.
    pub(in crate::commands) fn of(container: ContainerInfo) -> Option<Self> {
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
    pub(in crate::commands) fn runs(&self) -> bool {
        self.container.state == "running"
    }
}

/// The container's name at the engine.
pub(super) fn container_name(name: &str) -> String {
    format!("envforge-{name}")
}

/// What a new container's labels say.
pub(super) struct Says<'a> {
    pub(super) name: &'a str,
    pub(super) spec: &'a str,
    pub(super) folder: &'a str,
    pub(super) user: &'a str,
    pub(super) gpus: &'a str,
    pub(super) services: &'a str,
    pub(super) ends: Ends,
}

impl Says<'_> {
    pub(super) fn labels(&self) -> BTreeMap<String, String> {
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
            labels.insert(OWNER_LABEL.to_owned(), own_name());
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_all_that_was_said() {
        let says = Says {
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
        let detached = Says { ends: Ends::WhenStopped, ..says };
        assert!(!detached.labels().contains_key(OWNER_LABEL), "nobody waits for it");
    }
}
