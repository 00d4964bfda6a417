//! The audit of extensions against the dynamic loader itself: every library of the wheels in `wheels.txt`, loaded by
//! `dlopen` with `RTLD_NOW` after `import torch`. The loader's answers and the tables of symbols, trimmed to what is asked
//! for, are fixtures; an ignored test makes them again.
#![expect(clippy::disallowed_methods, reason = "reads fixtures, runs dlopen.py")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use envforge_protocol::abi::{Finding, Place, Table, World, driver_libraries, tables, torch_release};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

const RELEASES: [&str; 3] = ["2.8.0", "2.10.0", "2.12.0"];

/// What the loader said of each library: empty if it loaded. By wheel, then by library.
type Answers = BTreeMap<String, BTreeMap<String, String>>;

/// One release of torch: what every library meets, the loader's answers, and the tables of each wheel.
struct Release {
    version: &'static str,
    met: Vec<Table>,
    answers: Answers,
    wheels: BTreeMap<String, Vec<Table>>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/abi/fixtures")
}

fn unpacked(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("a fixture");
    let mut text = String::new();
    GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("text");
    text
}

/// The tables of all wheels in one text: a line names the wheel of those below it.
fn by_wheel(text: &str) -> BTreeMap<String, Vec<Table>> {
    let parts = text.split("wheel ").filter(|part| !part.is_empty());
    let named = parts.map(|part| part.split_once('\n').expect("a name and its tables"));
    named.map(|(name, text)| (name.to_owned(), tables(text).expect("tables"))).collect()
}

/// The loader's answers: lines of wheel, library and message.
fn answers(text: &str) -> Answers {
    let mut all = Answers::new();
    for line in text.lines() {
        let [wheel, library, said] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("not an answer: {line}")
        };
        all.entry(wheel.to_owned()).or_default().insert(library.to_owned(), said.to_owned());
    }
    all
}

fn recorded(release: &'static str, wheels: &BTreeMap<String, Vec<Table>>) -> Release {
    let met = tables(&unpacked(&fixtures().join(format!("torch-{release}.tables.gz")))).expect("tables");
    let answers = answers(&unpacked(&fixtures().join(format!("torch-{release}.answers.gz"))));
    Release { version: release, met, answers, wheels: wheels.clone() }
}

/// The findings of each library of a wheel.
fn audited(release: &Release, wheel: &str) -> BTreeMap<String, Vec<Finding>> {
    let mut world = World::default();
    let machine = release.met[0].machine;
    // The stub is of libcuda alone.
    let [libcuda, _] = driver_libraries(machine);
    world.add(Place::System, libcuda);
    for table in &release.met {
        let place = if table.path.starts_with('/') { Place::System } else { Place::Packages };
        world.add(place, table.clone());
    }
    let own = &release.wheels[wheel];
    for table in own {
        world.add(Place::Packages, table.clone());
    }
    let torch = torch_release(release.version).expect("a release");
    world.import_torch(torch, |one| one.path.contains("/bin/python"));
    own.iter().map(|table| (table.path.clone(), world.audit(&table.path))).collect()
}

/// Where the audit and the loader disagree.
fn contradictions(release: &Release) -> Vec<String> {
    let mut wrong = Vec::new();
    for (wheel, libraries) in &release.answers {
        let found = audited(release, wheel);
        for (library, said) in libraries {
            let findings = found.get(library).into_iter().flatten().filter(|one| one.is_fatal());
            let findings: Vec<_> = findings.map(ToString::to_string).collect();
            let named = said.rsplit_once("undefined symbol: ").map_or("", |(_, symbol)| symbol);
            let symbol = named.split([',', ' ']).next().unwrap_or_default();
            // Whose own initializer ended the process was linked before: the loader resolves all symbols first.
            let is_linked = said.is_empty() || said.starts_with("status ");
            if is_linked != findings.is_empty() || !findings.join("\n").contains(symbol) {
                wrong.push(format!("{wheel} {library}: the loader said `{said}`, the audit {findings:#?}"));
            }
        }
    }
    wrong
}

#[test]
fn audit_agrees_with_the_loader() {
    let wheels = by_wheel(&unpacked(&fixtures().join("wheels.tables.gz")));
    let (mut pairs, mut failing, mut libraries) = (0, 0, 0);
    for release in RELEASES {
        let release_of = recorded(release, &wheels);
        let wrong = contradictions(&release_of);
        assert!(wrong.is_empty(), "torch {release}: {} wrong\n{}", wrong.len(), wrong.join("\n"));
        pairs += release_of.answers.len();
        libraries += release_of.answers.values().map(BTreeMap::len).sum::<usize>();
        let fails = |said: &BTreeMap<String, String>| said.values().any(|said| !said.is_empty());
        failing += release_of.answers.values().filter(|said| fails(said)).count();
    }
    assert!(pairs >= 90 && failing >= 15 && failing < pairs, "{failing} of {pairs} pairs fail");
    assert!(libraries > pairs, "{libraries} libraries");
}

/// A table that asks for one more symbol, or lacks one, is judged otherwise: the test above can fail.
#[test]
fn changed_table_changes_the_verdict() {
    let mut wheels = by_wheel(&unpacked(&fixtures().join("wheels.tables.gz")));
    let loads = |release: &Release| {
        let fits = |(wheel, libraries): (&String, &BTreeMap<String, String>)| {
            libraries.values().all(String::is_empty).then(|| wheel.clone())
        };
        release.answers.iter().filter(|(_, libraries)| !libraries.is_empty()).find_map(fits)
    };
    let wheel = loads(&recorded(RELEASES[0], &wheels)).expect("one wheel loads");
    let table = &mut wheels.get_mut(&wheel).expect("its tables")[0];
    table.undefined.insert("_ZN3c104goneEv".to_owned());
    assert_eq!(contradictions(&recorded(RELEASES[0], &wheels)).len(), 1);
}

/// The tables with only what the wheels can ask for.
fn trimmed(met: Vec<Table>, wheels: &BTreeMap<String, Vec<Table>>) -> Vec<Table> {
    let mut met = met;
    for table in &mut met {
        // Those of torch are loaded, those of the system are not judged.
        if table.path.starts_with('/') || table.path.starts_with("torch/") {
            table.undefined.clear();
            table.version_needs.clear();
        }
    }
    let asking = wheels.values().flatten().chain(&met);
    let asked: BTreeSet<String> = asking
        .flat_map(|table| &table.undefined)
        .flat_map(|symbol| [symbol.clone(), symbol.split('@').next().unwrap_or_default().to_owned()])
        .collect();
    let mut wanted: BTreeSet<String> = wheels.values().flatten().flat_map(|one| one.needed.clone()).collect();
    let of_packages = |one: &&Table| !one.path.starts_with('/') || one.path.contains("/bin/python");
    wanted.extend(met.iter().filter(of_packages).flat_map(|one| one.needed.clone()));
    loop {
        let more: Vec<_> = met.iter().filter(|one| wanted.iter().any(|name| one.is_called(name))).collect();
        let before = wanted.len();
        let more: Vec<_> = more.iter().flat_map(|one| one.needed.clone()).collect();
        wanted.extend(more);
        if wanted.len() == before {
            break;
        }
    }
    met.retain(|one| of_packages(&one) || wanted.iter().any(|name| one.is_called(name)));
    // All versions of a name: one of them alone would answer for others.
    let name = |symbol: &String| symbol.split('@').next().unwrap_or_default().to_owned();
    for table in &mut met {
        table.exports.retain(|symbol| asked.contains(&name(symbol)));
    }
    met
}

fn write(name: &str, text: &str) {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    std::io::Write::write_all(&mut packer, text.as_bytes()).expect("a vector");
    std::fs::create_dir_all(fixtures()).expect("ours");
    std::fs::write(fixtures().join(name), packer.finish().expect("a vector")).expect("ours");
}

fn text(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        table.write(&mut text);
    }
    text
}

/// What a run of `dlopen.py` left in a folder.
fn measured(version: &'static str, folder: &Path, of_wheels: &Path) -> Release {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("made by dlopen.py");
    let answers: Answers = serde_json::from_str(&read("outcomes.json")).expect("answers");
    let met = tables(&read("met.tables")).expect("tables");
    let tables_of = |wheel: &String| {
        let text = std::fs::read_to_string(of_wheels.join(format!("{wheel}.tables")));
        tables(&text.expect("made by dlopen.py")).expect("tables")
    };
    let wheels = answers.keys().map(|wheel| (wheel.clone(), tables_of(wheel))).collect();
    Release { version, met, answers, wheels }
}

/// Runs `dlopen.py` for each release of torch, compares, and writes the fixtures. `ABI_PROOF` names a folder of such runs, to
/// compare and write only.
#[test]
#[ignore = "nightly: downloads 3 releases of torch and 34 wheels, one at a time: 10 GB of disk, Python 3.11, gcc and binutils"]
fn audit_agrees_with_the_loader_of_today() {
    let given = std::env::var_os("ABI_PROOF").map(PathBuf::from);
    let folder = given.clone().unwrap_or_else(|| std::env::temp_dir().join("abi-proof"));
    if given.is_none() {
        run(&folder);
    }
    let of_wheels = folder.join("out-wheels");
    let releases =
        RELEASES.map(|release| measured(release, &folder.join(format!("out-{release}")), &of_wheels));
    let wrong: Vec<_> = releases.iter().flat_map(contradictions).collect();
    let mut all = BTreeMap::new();
    for one in &releases {
        all.extend(one.wheels.clone());
    }
    let mut of_wheels = all.clone();
    for tables in of_wheels.values_mut() {
        let name = |symbol: &String| symbol.split('@').next().unwrap_or_default().to_owned();
        let asked: BTreeSet<_> =
            tables.iter().flat_map(|table| table.undefined.iter().map(name).collect::<Vec<_>>()).collect();
        for table in tables {
            table.exports.retain(|symbol| asked.contains(&name(symbol)));
        }
    }
    let mut whole = String::new();
    for (wheel, tables) in &of_wheels {
        whole.push_str("wheel ");
        whole.push_str(wheel);
        whole.push('\n');
        whole.push_str(&text(tables));
    }
    write("wheels.tables.gz", &whole);
    for (release, one) in RELEASES.iter().zip(releases) {
        let lines = one.answers.iter().flat_map(|(wheel, libraries)| {
            libraries.iter().map(move |(library, said)| {
                // The message names the folder of the run.
                let said = said.rsplit_once("site-packages/").map_or(said.as_str(), |(_, said)| said);
                format!("{wheel}\t{library}\t{}\n", said.replace(['\n', '\t'], " "))
            })
        });
        write(&format!("torch-{release}.answers.gz"), &lines.collect::<String>());
        write(&format!("torch-{release}.tables.gz"), &text(&trimmed(one.met, &all)));
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

fn run(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let done = |command: &mut Command| assert!(command.status().expect("starts").success(), "{command:?}");
    done(Command::new(env!("CARGO")).current_dir(root).args([
        "build",
        "-p",
        "envforge-protocol",
        "--example",
        "tables",
    ]));
    let tables = root.join("target/debug/examples/tables");
    let script = root.join("tests/abi/dlopen.py");
    let (torch, wheels) = (folder.join("torch"), folder.join("wheels"));
    let out = folder.join("out-wheels");
    done(Command::new("python3.11").arg(&script).arg("wheels").args([&wheels, &tables, &out]));
    for release in RELEASES {
        let out = folder.join(format!("out-{release}"));
        done(Command::new("python3.11").arg(&script).args(["install", release]).arg(&torch));
        done(Command::new("python3.11").arg(&script).arg("outcomes").args([&torch, &tables, &out]));
        done(Command::new("python3.11").arg(&script).arg("remove").arg(&torch));
    }
    done(Command::new("python3.11").arg(&script).arg("remove").arg(&wheels));
}
