//! The libraries of the base, as far as they are known without it.

use std::collections::BTreeSet;

use envforge_protocol::abi::{Table, driver_libraries};

use crate::model::versions::GlibcVersion;

/// Sonames of glibc.
const GLIBC: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libmvec.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
];
const LOADERS: [&str; 2] = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
/// The C++ library and those of GCC. Their versions are not compared: the matrix does not know those of each base.
const OF_GCC: [&str; 4] = ["libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libatomic.so.1"];
const OF_GCC_VERSIONS: [&str; 8] =
    ["@GLIBCXX_*", "@CXXABI_*", "@GCC_*", "@GOMP_*", "@GOACC_*", "@OMP_*", "@OACC_*", "@LIBATOMIC_*"];
/// What Debian's and Ubuntu's Python depends on, and what their names or versions begin with.
const OF_PYTHON: [(&str, &[&str]); 3] = [
    (
        "libz.so.1",
        &["@ZLIB_*", "inflate", "deflate", "crc32", "adler32", "compress", "uncompress", "gz", "zlib"],
    ),
    ("libcrypt.so.1", &["@XCRYPT_*", "@GLIBC_*", "crypt"]),
    ("libexpat.so.1", &["XML_"]),
];
/// The minor version of glibc 2 that reads relative relocations, and says so by a version.
const RELATIVE_RELOCATIONS: u32 = 36;
/// Oldest minor version of glibc 2 whose symbol versions are listed here.
const OLDEST_GLIBC: u32 = 2;

/// The tables of the base's C and C++ libraries, of the interpreter and of the driver. Of glibc the versions are known, of the
/// others nothing: they are taken to have what an extension asks for.
pub(super) fn base_libraries(glibc: &GlibcVersion, machine: u16) -> (Vec<Table>, Table) {
    let library = |soname: &str| Table {
        path: format!("/usr/lib/{soname}"),
        soname: Some(soname.to_owned()),
        machine,
        ..Table::default()
    };
    let versions = glibc_versions(glibc);
    let of_glibc = GLIBC.iter().chain(&LOADERS).map(|soname| Table {
        assumed: versions.iter().map(|version| format!("@{version}")).collect(),
        version_definitions: versions.clone(),
        ..library(soname)
    });
    let of_gcc = OF_GCC
        .iter()
        .map(|soname| Table { assumed: OF_GCC_VERSIONS.map(str::to_owned).into(), ..library(soname) });
    let of_python = OF_PYTHON.iter().map(|(soname, names)| Table {
        assumed: names.iter().map(|name| (*name).to_owned()).collect(),
        ..library(soname)
    });
    let interpreter = Table {
        path: "/usr/bin/python3".to_owned(),
        machine,
        needed: vec!["libc.so.6".to_owned(), "libm.so.6".to_owned()],
        assumed: BTreeSet::from(["Py".to_owned(), "_Py".to_owned()]),
        ..Table::default()
    };
    (of_glibc.chain(of_gcc).chain(of_python).chain(driver_libraries(machine)).collect(), interpreter)
}

/// `GLIBC_2.2` to that of the base, with the patch versions that glibc had before 2.5.
fn glibc_versions(newest: &GlibcVersion) -> BTreeSet<String> {
    let newest = newest.parts().get(1).copied().unwrap_or(0);
    let mut versions: BTreeSet<String> =
        (OLDEST_GLIBC..=newest).map(|minor| format!("GLIBC_2.{minor}")).collect();
    let patches = ["2.2.1", "2.2.2", "2.2.3", "2.2.4", "2.2.5", "2.2.6", "2.3.2", "2.3.3", "2.3.4"];
    versions.extend(patches.map(|patch| format!("GLIBC_{patch}")));
    if newest >= RELATIVE_RELOCATIONS {
        versions.insert("GLIBC_ABI_DT_RELR".to_owned());
    }
    versions
}
