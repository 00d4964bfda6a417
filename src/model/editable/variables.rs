//! The variables that lead programs of a container to the files of a project.

/// Returns them for files in that directory of the container; `of`: what a variable is without them.
pub fn variables<'a>(folder: &str, of: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let set = |name: &str| of(name).filter(|value| !value.is_empty());
    // In front: of several directories with a `sitecustomize` the first one counts. Modules come from behind all the others.
    let python = set("PYTHONPATH").map(|before| format!(":{before}")).unwrap_or_default();
    // Behind: no script of the project replaces a program of the image.
    let mut variables = vec![format!("PYTHONPATH={folder}{python}")];
    variables.extend(set("PATH").map(|path| format!("PATH={path}:{folder}/bin")));
    variables
}
