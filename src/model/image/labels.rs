//! Name and labels of an image.

use std::collections::BTreeMap;

use crate::model::image::component::ComponentKind;
use crate::model::lock::Lock;

/// Version of the image's labels and layout.
const SCHEMA: u32 = 1;
/// The label with the hash of the image's lock.
pub const LOCK_LABEL: &str = "io.envforge.lock";
/// The label with the name that the image has by its lock, without a suffix.
pub const NAME_LABEL: &str = "io.envforge.name";
/// The label with the component of each layer above the base, lowest first, separated by commas.
pub const LAYERS_LABEL: &str = "io.envforge.layers";
/// The ending of a tag until checks have run on a GPU.
pub const UNVERIFIED: &str = "-unverified";

/// The name of a lock's image.
pub fn name(lock: &Lock) -> String {
    match &lock.added.project {
        // A tag has no `+`.
        None if lock.added.is_empty() => lock.stack.name.replace('+', "-"),
        project => {
            let project = project.as_ref().unwrap_or(&lock.stack.product);
            format!("envforge/{project}:{}", &lock.hash()[..12])
        }
    }
}

/// The name that follows a project from build to build: `envforge/PROJECT:current`. `None`: the image is of no project.
pub fn current_name(lock: &Lock) -> Option<String> {
    Some(format!("envforge/{}:current", lock.added.project.as_ref()?))
}

/// The labels of a lock's image, whose layers above the base have these components.
pub(super) fn labels(lock: &Lock, components: &[ComponentKind]) -> BTreeMap<String, String> {
    let stack = &lock.stack;
    let title = format!("{}, Python {}", stack.title(), stack.python);
    let layers: Vec<_> = components.iter().map(|component| component.id()).collect();
    [
        ("org.opencontainers.image.title", name(lock)),
        ("org.opencontainers.image.description", title),
        ("org.opencontainers.image.version", stack.version.to_string()),
        ("org.opencontainers.image.base.name", lock.base.name.clone()),
        ("io.envforge.schema", SCHEMA.to_string()),
        ("io.envforge.spec", lock.spec.clone()),
        (NAME_LABEL, name(lock)),
        (LOCK_LABEL, lock.hash()),
        (LAYERS_LABEL, layers.join(",")),
        ("io.envforge.matrix", lock.stack.matrix.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
