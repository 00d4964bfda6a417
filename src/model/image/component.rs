//! The components of an image: a name for each layer that envforge makes.

/// The content of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentKind {
    /// Distribution packages of every image.
    System,
    /// The environment without packages.
    Environment,
    /// CUDA libraries.
    Cuda,
    /// /usr/local/cuda.
    Toolkit,
    /// The framework and its dependencies.
    Framework,
    /// The developer stack.
    Stack,
    /// The working directory.
    WorkDir,
    /// Distribution packages of the user.
    Apt,
    /// Python packages of the user.
    User,
    /// The project itself.
    Project,
    /// Entrypoint, wrappers, constraints and agent.
    Files,
    /// Files of the project.
    Copy,
    /// A command of the project.
    Run,
}

/// Every component with its id in labels and its name in reports.
const NAMES: [(ComponentKind, &str, &str); 13] = [
    (ComponentKind::System, "system", "system"),
    (ComponentKind::Environment, "environment", "environment"),
    (ComponentKind::Cuda, "cuda", "CUDA libraries"),
    (ComponentKind::Toolkit, "toolkit", "toolkit"),
    (ComponentKind::Framework, "framework", "framework"),
    (ComponentKind::Stack, "stack", "developer stack"),
    (ComponentKind::WorkDir, "workdir", "working folder"),
    (ComponentKind::Apt, "apt", "added distribution packages"),
    (ComponentKind::User, "user", "added Python packages"),
    (ComponentKind::Project, "project", "the project itself"),
    (ComponentKind::Files, "files", "envforge's own"),
    (ComponentKind::Copy, "copy", "copied files"),
    (ComponentKind::Run, "run", "run step"),
];

impl ComponentKind {
    /// The id in the label of an image.
    pub fn id(self) -> &'static str {
        self.entry().1
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        self.entry().2
    }

    /// Returns the component with that id.
    pub fn from_id(id: &str) -> Option<Self> {
        NAMES.iter().find(|entry| entry.1 == id).map(|entry| entry.0)
    }

    fn entry(self) -> &'static (Self, &'static str, &'static str) {
        NAMES.iter().find(|entry| entry.0 == self).expect("every component has its names")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_leads_back_to_its_component() {
        for (kind, id, name) in NAMES {
            assert_eq!(ComponentKind::from_id(id), Some(kind));
            assert_eq!((kind.id(), kind.name()), (id, name));
            assert!(!id.contains(','), "ids are separated by commas");
        }
        assert_eq!(ComponentKind::from_id("news"), None);
    }
}
