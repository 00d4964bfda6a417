//! The guard of a container that is being started.

use crate::engine::Containers;

/// A container that is removed unless it is kept.
pub(crate) struct NewContainer<'a> {
    containers: &'a dyn Containers,
    id: Option<String>,
}

impl<'a> NewContainer<'a> {
    /// Guards the container of that name, from before it is created.
    pub(crate) fn of(containers: &'a dyn Containers, name: &str) -> Self {
        Self { containers, id: Some(name.to_owned()) }
    }

    /// The name.
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().expect("present until kept")
    }

    /// Keeps the container and returns its name.
    pub(crate) fn keep(mut self) -> String {
        self.id.take().expect("present until kept")
    }
}

impl Drop for NewContainer<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.containers.discard_container(id);
        }
    }
}
