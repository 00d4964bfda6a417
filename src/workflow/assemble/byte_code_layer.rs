//! Byte code of wheels: the modules to compile, and the files of the layer.

use std::collections::{BTreeMap, BTreeSet};

use crate::assemble::{AssembleError, Conflicts, Installation, InstalledFile, LayerFile, LayerPlan};
use crate::container_layers::byte_code::{Distribution, SourceFile};

/// The most that the modules of a wheel have together, bytes: they are read into memory.
const MOST_MODULES: u64 = 512 << 20;

/// The byte code of a wheel, and the paths that the wheel leaves out.
pub(super) type WheelCode<'a> = (BTreeSet<&'a str>, Vec<SourceFile>);

/// Returns the layer of the byte code of some wheels; `None`: they have no modules. Each is asked for when it is its turn:
/// all together lie in memory once.
pub(super) fn byte_code_layer<'a>(
    wheels: impl IntoIterator<Item = Result<WheelCode<'a>, AssembleError>>,
) -> Result<Option<LayerPlan>, AssembleError> {
    let mut files = BTreeMap::new();
    for wheel in wheels {
        let (left_out, code) = wheel?;
        // A module that gives way to another distribution's has no byte code either.
        let is_left_out =
            |file: &SourceFile| module_of(file).is_some_and(|path| left_out.contains(path.as_str()));
        for file in code.iter().filter(|file| !is_left_out(file)) {
            let path = file.path.trim_start_matches('/').to_owned();
            files.insert(path, LayerFile::of_bytes(0o644, file.content.clone()));
        }
    }
    if files.is_empty() { Ok(None) } else { LayerPlan::new(&[], &Conflicts::default(), files).map(Some) }
}

/// The path of the module of some byte code, without the leading `/`.
fn module_of(code: &SourceFile) -> Option<String> {
    let (folder, name) = code.path.trim_start_matches('/').rsplit_once("/__pycache__/")?;
    let stem = name.strip_suffix(".pyc")?.rsplit_once('.')?.0;
    Some(format!("{folder}/{stem}.py"))
}

/// Returns the modules of a wheel: the Python files below site-packages.
pub(super) fn modules(installation: &Installation, minor: u8) -> Result<Distribution, AssembleError> {
    let mut sources = Vec::new();
    for file in module_files(installation, minor) {
        if let Some(content) = installation.read(file)? {
            sources.push(SourceFile { path: format!("/{}", file.path), content: content.into() });
        }
    }
    Ok(Distribution { wheel: installation.wheel().sha256().to_owned(), sources })
}

/// Returns the bytes that the modules of a wheel have together, as its directory lists them.
pub(super) fn size_of_modules(installation: &Installation, minor: u8) -> Result<u64, AssembleError> {
    let size = module_files(installation, minor).map(|file| installation.size_of(file)).sum();
    if size > MOST_MODULES {
        let reason = format!("its modules have more than {} MiB", MOST_MODULES >> 20);
        return Err(installation.wheel().refused(vec![reason]));
    }
    Ok(size)
}

fn module_files(installation: &Installation, minor: u8) -> impl Iterator<Item = &InstalledFile> {
    let packages = format!("opt/env/lib/python3.{minor}/site-packages/");
    let is_module = move |file: &&InstalledFile| {
        file.path.starts_with(&packages) && file.path.strip_suffix(".py").is_some()
    };
    installation.files().iter().filter(is_module)
}

/// Splits wheels into batches of at most `most` bytes; a larger one is a batch of its own.
pub(super) fn batches(wheels: &[(usize, u64)], most: u64) -> Vec<Vec<usize>> {
    let (mut all, mut size) = (Vec::<Vec<usize>>::new(), 0);
    for (at, bytes) in wheels {
        size += bytes;
        if let Some(batch) = all.last_mut().filter(|_| size <= most) {
            batch.push(*at);
        } else {
            all.push(vec![*at]);
            size = *bytes;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_is_full_before_it_exceeds_its_size() {
        let found = batches(&[(0, 4), (1, 6), (2, 1), (3, 30), (4, 0), (5, 10)], 10);
        assert_eq!(found, [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
        assert!(batches(&[], 10).is_empty());
    }

    #[test]
    fn byte_code_of_a_module_that_is_left_out_is_left_out() {
        let code =
            |path: &str| SourceFile { path: path.to_owned(), content: bytes::Bytes::from_static(b"code") };
        let wheel =
            || vec![code("/e/__pycache__/a.cpython-311.pyc"), code("/e/__pycache__/b.cpython-311.pyc")];
        let paths = |left_out: BTreeSet<&str>| {
            let layer = byte_code_layer([Ok((left_out, wheel()))]).expect("a layer").expect("modules");
            layer.files().keys().filter(|path| path.contains("__pycache__/")).cloned().collect::<Vec<_>>()
        };
        assert_eq!(paths(BTreeSet::from(["e/a.py"])), ["e/__pycache__/b.cpython-311.pyc"]);
        assert_eq!(paths(BTreeSet::new()).len(), 2);
        assert!(byte_code_layer([Ok((BTreeSet::new(), Vec::new()))]).expect("nothing").is_none());
    }
}
