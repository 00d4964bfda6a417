//! Every place where a value lasts is in the list of caches, which says what its key holds. Reads the sources.

use std::collections::BTreeSet;

use envforge::store::caches::CACHES;

use crate::strangers::sources;

/// Files that write records of what happened, which answer no question of another project, and why.
const NO_CACHES: [(&str, &str); 12] = [
    ("src/store/built_images.rs", "which images were built here; the content digest of one is a cache"),
    ("src/store/installed_images.rs", "which lock an installed project's image is built from"),
    ("src/store/kept_evidence.rs", "what others signed of an image, believed only by its signatures"),
    ("src/store/known_locks.rs", "which lock files are in use"),
    ("src/store/last_push.rs", "where an image was pushed last, by its lock"),
    ("src/store/old_byte_code.rs", "that images were named"),
    ("src/store/reports.rs", "what checks said of an image, by its id"),
    ("src/store/sealed.rs", "writes for the others"),
    ("src/store/trusted_projects.rs", "what the user allowed, by a digest"),
    ("src/workflow/assemble/delivery.rs", "how fast an engine took layers; only shown"),
    ("src/workflow/shell/opened.rs", "by which name an image was opened"),
    ("src/workflow/speed_baseline.rs", "speeds of the GPUs of this machine"),
];
/// Files that write values into the state directory, and the place of each in the list.
const OF_STATE: [(&str, &str); 8] = [
    ("src/base/bootstrap_cache.rs", "STATE/base"),
    ("src/packages/uv.rs", "STATE/uv"),
    ("src/packages/wheel_addresses.rs", "STATE/wheel-addresses"),
    ("src/source_build/wheel_cache.rs", "STATE/source-builds"),
    ("src/store/built_images.rs", "STATE/content-of-images"),
    ("src/store/newest_indexes.rs", "STATE/newest-indexes"),
    ("src/workflow/content_digest.rs", "STATE/content"),
    ("src/workflow/resolver_image.rs", "STATE/base"),
];

fn places() -> BTreeSet<&'static str> {
    CACHES.iter().map(|cache| cache.place).collect()
}

/// The text of the argument behind a call, or of the constant that it names.
fn argument(code: &str, after: &str) -> String {
    let word =
        after.split([')', ';', '\n']).next().expect("an argument").trim().trim_end_matches(',').to_owned();
    if word.starts_with('"') {
        return word.trim_matches('"').to_owned();
    }
    let definition = format!("{word}: &str = \"");
    let all = sources();
    let mut found = std::iter::once(code).chain(all.values().map(String::as_str));
    let text = found.find_map(|text| text.split_once(&definition)).expect("a constant").1;
    text.split('"').next().expect("a text").to_owned()
}

#[test]
fn every_sealed_record_is_in_the_list() {
    let mut found = BTreeSet::new();
    for code in sources().values() {
        for after in code.split("SealedRecords::new(").skip(1) {
            let (_, folder) = after.split_once(',').expect("a store and a folder");
            found.insert(argument(code, folder));
        }
    }
    let listed: BTreeSet<String> =
        places().into_iter().filter(|place| place.starts_with("layers")).map(str::to_owned).collect();
    assert_eq!(found, listed);
}

#[test]
fn every_record_of_the_state_is_in_the_list_or_no_cache() {
    let writes = |code: &str| code.contains(".write_state(") || code.contains(".write_sealed_state(");
    let found: BTreeSet<String> =
        sources().into_iter().filter(|(_, code)| writes(code)).map(|(name, _)| name).collect();
    let known: BTreeSet<String> =
        NO_CACHES.iter().chain(&OF_STATE).map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, known);
    let of_state: BTreeSet<_> = OF_STATE.iter().map(|(_, place)| *place).collect();
    let listed: BTreeSet<_> = places().into_iter().filter(|place| place.starts_with("STATE")).collect();
    assert_eq!(of_state, listed);
}

#[test]
fn every_volume_that_lasts_is_in_the_list() {
    let mut found = BTreeSet::new();
    for code in sources().values() {
        for after in code.split(".engine_name(").skip(1) {
            found.insert(format!("volume envforge-{}-ID", argument(code, after)));
        }
        for after in code.split("format!(\"envforge-compiler-").skip(1) {
            assert!(after.starts_with("{}"), "{after}");
            found.insert("volume envforge-compiler-KEY".to_owned());
        }
    }
    for template in ["Dockerfile.j2", "Builder.j2"] {
        let text = std::fs::read_to_string(format!("templates/{template}")).expect("a template");
        for after in text.split("type=cache,id=").skip(1) {
            match after.split(',').next().expect("an id") {
                "envforge-uv-{{ lock }}" => drop(found.insert("volume envforge-uv-LOCK".to_owned())),
                "{{ source.cache }}" => {}
                other => panic!("{template}: {other}"),
            }
        }
    }
    let listed: BTreeSet<String> =
        places().into_iter().filter(|place| place.starts_with("volume")).map(str::to_owned).collect();
    assert_eq!(found, listed);
}
