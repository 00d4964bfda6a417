//! One project out of all readings of a folder: product, version, CUDA, Python, packages.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::{Operator, Version, VersionSpecifiers};
use pep508_rs::MarkerTree;

use super::built_for::{compared_local, cuda_of_package, major_in_name, torch_of_package};
use super::frameworks::{RENAMED, contradict, framework_packages, package_today};
use super::index_page::is_file_of_default;
use super::other_framework::other_framework;
use super::outcome::{Change, Migration, ProjectPackage, Refusal, Row};
use super::overruled::take_out;
use super::place::Origin;
use super::pythons::allows;
use super::reading::{
    Asked, CudaFact, IndexSeen, Kind, Note, Reading, Strength, shortened, shortened_reason,
};
use super::requirement_line::normalized;
use super::requirements::both;
use crate::model::compat::Matrix;
use crate::model::compat::coupled::WheelPlace;
use crate::model::compat::tables::{Product, Variant};
use crate::model::local_version::{LocalVersion, exact};
use crate::model::marker::{holds, pythons};
use crate::model::request::RequestedSpec;
use crate::model::spec::Flavour;
use crate::model::stack::Stack;
use crate::model::versions::{CudaVariant, FrameworkVersion, Machine, PythonVersion};

/// Versions of a framework that are tried until one resolves.
const TRIED: usize = 120;

/// What a package means for the framework that it needs and that no file names.
const NEWEST: &str = "the newest for the target is taken";

/// Packages that every image has, whatever a line says of them.
const IN_EVERY_IMAGE: [&str; 3] = ["pip", "setuptools", "wheel"];

/// What a line asks for that no image of envforge has.
const WITHOUT_CUDA: &str = "a build without CUDA";

/// Why a line that names the CUDA is kept; the CUDA follows.
const CUDA_OF_THE_IMAGE: &str = "the CUDA of the image: ";

/// Frameworks that a project is written for: of several that it names, one with a release or a CUDA comes before a bare name.
const MAIN: [&str; 3] = ["pytorch", "tensorflow", "jax"];

/// What the decision needs to know besides the files.
pub struct Question<'a> {
    /// The spec that a person typed, which decides before all files.
    pub spec: Option<&'a RequestedSpec>,
    /// Whether the files lie where the project file is written, so that it can name them.
    pub is_here: bool,
    /// The matrix.
    pub matrix: &'a Matrix,
    /// The processor of the target.
    pub machine: Machine,
    /// The stack of a spec on the target; `None`: it does not resolve.
    pub resolve: &'a dyn Fn(&str) -> Option<Stack>,
    /// Whether the requirements fit a stack, as far as the matrix knows.
    pub fits: &'a dyn Fn(&str, &Stack, &[String]) -> bool,
}

/// Decides on the project that the readings ask for.
pub fn decide(mut readings: Vec<Reading>, question: &Question<'_>) -> Result<Migration, Refusal> {
    readings.sort_by_key(|reading| reading.kind);
    let files: Vec<_> =
        readings.iter().filter(|one| one.says_something()).map(|one| one.file.clone()).collect();
    let mut decision = Decision {
        question,
        rows: Vec::new(),
        files: files.clone(),
        changed: false,
        seen: BTreeSet::new(),
        contradicting: Vec::new(),
    };
    for (change, note) in take_out(&mut readings, question.matrix, question.machine) {
        decision.changed = true;
        decision.note(change, &note);
    }
    for reading in &readings {
        for note in &reading.changed {
            decision.note(Change::Changed, note);
        }
        for note in &reading.left {
            decision.note(Change::NotTakenOver, note);
        }
    }
    take_offered(&mut readings, &mut decision);
    take_tests(&mut readings);
    if files.is_empty() {
        let files = readings.into_iter().map(|reading| reading.file).collect();
        let rows = decision.rows;
        let other = rows.iter().find_map(|row| other_framework(&row.text));
        return Err(match other {
            None => Refusal::NothingUnderstood { files, rows },
            other => Refusal::NoFramework { files, other, rows },
        });
    }
    decision.decide(&readings)
}

/// Takes the extra or group that has the framework, where nothing else names one: projects that leave the choice between CPU and CUDA to
/// extras. One with a CUDA is taken before one without.
fn take_offered(readings: &mut [Reading], decision: &mut Decision<'_>) {
    let matrix = decision.question.matrix;
    if readings.iter().any(|one| names_a_framework(one, matrix)) {
        return;
    }
    let named = framework_packages(matrix);
    // An extra for vLLM makes no project of vLLM out of one whose packages need PyTorch.
    let implied: Vec<&str> =
        readings.iter().flat_map(|one| &one.packages).filter_map(|one| implied_by(one, matrix)).collect();
    let is_meant = |product: &Product| implied.is_empty() || implied.contains(&product.framework.as_str());
    let is_framework =
        |asked: &Asked| named.iter().any(|(package, product)| *package == asked.name && is_meant(product));
    let all = readings
        .iter()
        .enumerate()
        .flat_map(|(at, one)| one.offered.iter().map(move |offered| (at, offered)));
    let with =
        all.filter(|(_, offered)| offered.packages.iter().any(is_framework) && !offered.is_without_cuda());
    let Some((at, offered)) = with.max_by_key(|(_, offered)| !offered.cuda.is_empty()) else { return };
    let (name, taken) = (offered.name.clone(), offered.clone());
    let why = format!("{} that is taken, since it has the framework", taken.what);
    decision.row(Change::Changed, &taken.origin, &name, &why);
    let reading = &mut readings[at];
    reading.is_readable_by_lock = false;
    reading.offered.retain(|other| other.name != name);
    reading.packages.extend(taken.packages);
    reading.cuda.extend(taken.cuda);
    reading.indexes.extend(taken.indexes);
    for note in &taken.left {
        decision.note(Change::NotTakenOver, note);
    }
}

/// Names of extras and groups that projects keep their tests' packages in, in the order in which one is taken.
const TESTS: [&str; 4] = ["test", "tests", "testing", "dev"];

/// Takes the extra or group that has pytest, where nothing else asks for it: a project is to be tested in its image.
fn take_tests(readings: &mut [Reading]) {
    let is_pytest = |asked: &Asked| asked.name == "pytest";
    if readings.iter().any(|one| one.packages.iter().any(is_pytest)) {
        return;
    }
    let all = |readings: &[Reading]| -> Vec<(usize, usize, usize)> {
        let places = readings.iter().enumerate().filter(|(_, reading)| reading.kind == Kind::Project);
        let offered =
            places.flat_map(|(at, reading)| reading.offered.iter().enumerate().map(move |one| (at, one)));
        let of_tests = offered.filter_map(|(at, (number, offered))| {
            let rank = TESTS.iter().position(|name| *name == offered.name.to_lowercase())?;
            let has = offered.packages.iter().any(is_pytest) && !offered.is_without_cuda();
            has.then_some((rank, at, number))
        });
        of_tests.collect()
    };
    if let Some((_, at, number)) = all(readings).into_iter().min() {
        let reading = &mut readings[at];
        let taken = &mut reading.offered[number];
        taken.is_taken = true;
        reading.is_readable_by_lock &= taken.is_group;
    }
}

struct Decision<'a> {
    question: &'a Question<'a>,
    rows: Vec<Row>,
    files: Vec<String>,
    /// Whether a requirement has another version than its file says.
    changed: bool,
    /// The rows so far: a line that two files name is one row.
    seen: BTreeSet<Row>,
    /// Requirements of equally believed files that contradict the first of their package: the first, and the other.
    contradicting: Vec<(Asked, Asked)>,
}

/// A spec and its stack on the target.
struct Resolved {
    spec: String,
    stack: Stack,
}

/// The framework that the files ask for.
struct Framework<'a> {
    product: &'a Product,
    /// Its requirement; `None`: implied by another package.
    asked: Option<Asked>,
    /// The name of its package: `cupy-cuda12x`.
    package: String,
}

impl<'a> Decision<'a> {
    fn note(&mut self, change: Change, note: &Note) {
        self.row(change, &note.origin, &note.written, &note.why);
    }

    fn row(&mut self, change: Change, origin: &Origin, text: &str, why: &str) {
        let row = Row { change, origin: origin.clone(), text: shortened(text), why: shortened_reason(why) };
        if self.seen.insert(row.clone()) {
            self.rows.push(row);
        }
    }

    fn decide(mut self, readings: &[Reading]) -> Result<Migration, Refusal> {
        let allowed = self.pythons(readings);
        let first = allowed.first().copied().unwrap_or(PythonVersion { major: 3, minor: 11 });
        let mut packages = self.merged(readings, first);
        if !self.contradicting.is_empty() {
            self.rest(readings, &packages);
            return Err(self.refused_contradiction());
        }
        let Some(framework) = self.typed().or_else(|| self.framework(&packages, readings)) else {
            self.rest(readings, &packages);
            if let Some((unknown, product)) = self.unknown_release(readings, None) {
                return Err(self.refused_for(unknown, product));
            }
            let other = self.rows.iter().find_map(|row| other_framework(&row.text));
            return Err(Refusal::NoFramework { files: self.files, other, rows: self.rows });
        };
        let framework = self.with_cuda(framework, &mut packages);
        let framework = self.with_torch_of_extensions(framework, &packages);
        if let Some((unknown, product)) = self.unknown_release(readings, Some(&framework)) {
            self.rest(readings, &packages);
            return Err(self.refused_for(unknown, product));
        }
        if let Some((requirement, origin)) = self.without_release(&framework) {
            self.rest(readings, &packages);
            let (origin, files, rows) = (Box::new(origin), self.files, self.rows);
            return Err(Refusal::NoRelease { requirement, origin, files, rows });
        }
        let devel = readings.iter().find_map(|reading| reading.devel.clone());
        let devel = devel.or_else(|| self.compiler_of_catalogue(readings, &packages));
        let named = readings.iter().any(|reading| !reading.python.is_empty());
        let specs = if let Some(typed) = self.question.spec {
            vec![typed.written().to_owned()]
        } else {
            let cuda = self.cuda(readings, &packages, &framework);
            self.specs(&framework, cuda.as_ref(), if named { &allowed } else { &[] })
        };
        let is_compared = |asked: &&Asked| asked.name == framework.package || !is_without_cuda(asked);
        let compared: Vec<_> = packages
            .iter()
            .map(|(asked, _)| asked)
            .filter(is_compared)
            .map(|one| self.compared(one))
            .collect();
        let Some((spec, stack, newer)) = self.chosen(&specs, &compared) else {
            let spec = specs.first().cloned().unwrap_or_else(|| framework.product.name.clone());
            self.rest(readings, &packages);
            return Err(Refusal::Impossible { spec, files: self.files, rows: self.rows });
        };
        if let Some((written, origin)) = self.other_than_typed(&packages, &framework, &stack) {
            self.rest(readings, &packages);
            let (origin, files, rows) = (Box::new(origin), self.files, self.rows);
            return Err(Refusal::OtherThanTyped { spec, written, origin, files, rows });
        }
        if let Some(newer) = newer {
            self.tell_what_fits(&newer, &packages, &stack);
        }
        let stack = match &devel {
            Some(note) if self.question.spec.is_none() => self.with_compiler((&spec, &specs), stack, note),
            _ => stack,
        };
        Ok(self.project(readings, packages, &framework, &stack))
    }

    /// The refusal for lines that contradict each other: those of the first package that has such.
    fn refused_contradiction(self) -> Refusal {
        let Self { contradicting, files, rows, .. } = self;
        let mut lines: Vec<(String, Origin)> = Vec::new();
        for (first, other) in &contradicting {
            let is_of_first = contradicting.first().is_some_and(|(one, _)| one.name == first.name);
            for asked in [first, other].into_iter().filter(|_| is_of_first) {
                let line = (asked.written.clone(), asked.origin.clone());
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        Refusal::Contradiction { lines, files, rows }
    }

    /// The framework with CUDA, where a line asks for a build without: `torch==2.8.0` for `torch==2.8.0+cpu`.
    fn with_cuda(&mut self, framework: Framework<'a>, packages: &mut [(Asked, Kind)]) -> Framework<'a> {
        let own = packages.iter_mut().map(|(asked, _)| asked);
        for asked in own.filter(|asked| asked.name == framework.package && is_without_cuda(asked)) {
            asked.local = None;
            self.changed = true;
            let why = format!("{WITHOUT_CUDA}: {} with CUDA instead", asked.requirement());
            self.row(Change::Changed, &asked.origin, &asked.written, &why);
        }
        let asked = framework.asked.map(|mut asked| {
            asked.local = asked.local.take().filter(|local| !is_local_without_cuda(local));
            asked
        });
        Framework { asked, ..framework }
    }

    /// The requirement of the framework that no release satisfies although one begins as it says; `None`: one does, or the refusal of
    /// the spec names the releases that exist.
    fn without_release(&self, framework: &Framework<'a>) -> Option<(String, Origin)> {
        let asked = framework.asked.as_ref().filter(|_| self.question.spec.is_none())?;
        let is_empty = if let Some(release) = exact(&asked.versions) {
            !asked.versions.contains(&release)
        } else {
            let mut any = self.known_versions(framework, &VersionSpecifiers::empty()).flatten();
            self.known_versions(framework, &asked.versions).next().is_none()
                && any.any(|known| least(&asked.versions).is_some_and(|least| begins(&known, &least)))
        };
        is_empty.then(|| (asked.requirement(), asked.origin.clone()))
    }

    /// The line that asks for another release or CUDA of the framework than the spec that was typed.
    fn other_than_typed(
        &self,
        packages: &[(Asked, Kind)],
        framework: &Framework<'a>,
        stack: &Stack,
    ) -> Option<(String, Origin)> {
        self.question.spec?;
        let (asked, _) = packages.iter().find(|(asked, _)| asked.name == framework.package)?;
        let own = Version::from_str(&stack.version.public().to_string()).ok()?;
        let is_of_another = |local: &String| LocalVersion::read(local).mismatch(stack.cuda, None).is_some();
        // `2.15.0.post1` is the build that `2.15.0` means where it has no other.
        let is_it =
            asked.versions.contains(&own) || (own.is_post() && asked.versions.contains(&own.only_release()));
        let differs = !is_it || asked.local.as_ref().is_some_and(is_of_another);
        differs.then(|| (asked.written.clone(), asked.origin.clone()))
    }

    /// What hides the release of the framework behind a variable without a value, where no other line says it: an image or a
    /// requirement, and the product.
    fn unknown_release(
        &self,
        readings: &[Reading],
        framework: Option<&Framework<'a>>,
    ) -> Option<((String, Origin), &'a Product)> {
        let asked = framework.and_then(|one| one.asked.as_ref());
        let is_known = asked.is_some_and(|asked| !asked.versions.is_empty() || asked.local.is_some());
        if self.question.spec.is_some() || is_known {
            return None;
        }
        let named = framework_packages(self.question.matrix);
        let of_package = |package: &str| {
            let product = named.iter().find(|(name, _)| *name == package).map(|(_, product)| *product)?;
            framework.is_none_or(|one| one.package == package).then_some(product)
        };
        let of_image = |package: Option<&str>| match (package, framework) {
            (Some(package), _) => of_package(package),
            // The image may have the framework that a package needs and no line names.
            (None, Some(framework)) if framework.asked.is_none() => Some(framework.product),
            (None, _) => None,
        };
        let images = readings.iter().flat_map(|reading| &reading.open_images).filter_map(|open| {
            Some(((open.image.clone(), open.origin.clone()), of_image(open.package.as_deref())?))
        });
        let lines = readings.iter().flat_map(|reading| &reading.left).filter_map(|note| {
            let (name, _) = note.written.split_once(['=', '<', '>', '~', '!', '[', ' ', '@'])?;
            let product = of_package(package_today(&normalized(name)))?;
            note.written.contains('$').then(|| ((note.written.clone(), note.origin.clone()), product))
        });
        images.chain(lines).next()
    }

    /// The refusal for a release that is not known.
    fn refused_for(self, (written, origin): (String, Origin), product: &Product) -> Refusal {
        let mut rows = self.rows;
        rows.retain(|row| !row.why.ends_with(NEWEST));
        let origin = Box::new(origin);
        Refusal::UnknownRelease { written, origin, product: product.name.clone(), files: self.files, rows }
    }

    /// The first spec that resolves and that all packages fit, and the first that only resolves; else that one, whose comparison says
    /// why not.
    fn chosen(&self, specs: &[String], compared: &[String]) -> Option<(String, Stack, Option<Resolved>)> {
        let mut first = None;
        for spec in specs.iter().take(TRIED) {
            let Some(stack) = (self.question.resolve)(spec) else { continue };
            if (self.question.fits)(spec, &stack, compared) {
                return Some((spec.clone(), stack, first));
            }
            first.get_or_insert(Resolved { spec: spec.clone(), stack });
        }
        first.map(|Resolved { spec, stack }| (spec, stack, None))
    }

    /// Says which packages keep a newer stack from being taken.
    fn tell_what_fits(&mut self, newer: &Resolved, packages: &[(Asked, Kind)], stack: &Stack) {
        if (&newer.stack.version, newer.stack.cuda) == (&stack.version, stack.cuda) {
            return;
        }
        let name = newer.stack.name.as_str();
        let name = name.rsplit_once("-py").map_or(name, |(begin, _)| begin);
        for (asked, _) in packages {
            let one = [self.compared(asked)];
            if !is_without_cuda(asked) && !(self.question.fits)(&newer.spec, &newer.stack, &one) {
                let why = format!(
                    "does not fit {name}: {} {} is taken, which it fits",
                    stack.package, stack.version
                );
                self.row(Change::Changed, &asked.origin, &asked.written, &why);
            }
        }
    }

    /// What was read and has no fate, since there is no project.
    fn rest(&mut self, readings: &[Reading], packages: &[(Asked, Kind)]) {
        for (asked, _) in packages {
            self.row(Change::Kept, &asked.origin, &asked.written, "");
        }
        for reading in readings {
            for note in &reading.kept {
                self.note(Change::Kept, note);
            }
            for (origin, name) in &reading.apt {
                self.row(Change::Kept, origin, name, "a package of the distribution");
            }
        }
    }

    /// The compiler of an image of NVIDIA's catalogue, which all have, where a package has no wheel and is compiled.
    fn compiler_of_catalogue(&self, readings: &[Reading], packages: &[(Asked, Kind)]) -> Option<Note> {
        let mut notes = readings.iter().flat_map(|reading| reading.changed.iter().chain(&reading.left));
        let image = notes.find(|note| note.written.starts_with("nvcr.io/nvidia/"))?;
        let (asked, _) = packages.iter().find(|(asked, _)| self.is_compiled(&asked.name))?;
        let why = format!("{} compiles: the flavour `devel` has a compiler, as this image has", asked.name);
        Some(Note { why, ..image.clone() })
    }

    /// Whether a package is known to need a compiler, and has no wheel of any release.
    fn is_compiled(&self, name: &str) -> bool {
        let matrix = self.question.matrix;
        let mut releases = matrix.coupled_releases.iter().filter(|row| row.package == name).peekable();
        let mut rows = matrix.coupled_packages.iter().filter(|row| row.package == name);
        let needs_nvcc = |needs: &String| needs.contains("nvcc");
        rows.any(|row| row.build.as_ref().is_some_and(needs_nvcc) && row.trap.is_none())
            && releases.peek().is_some()
            && releases.all(|row| row.place == WheelPlace::Sdist)
    }

    /// The stack with a compiler, where one of its CUDA is to be had.
    fn with_compiler(&mut self, (spec, specs): (&str, &[String]), stack: Stack, note: &Note) -> Stack {
        let without_python = |spec: &str| spec.rsplit_once("-py").map_or(spec, |(begin, _)| begin).to_owned();
        // Another Python that is allowed may have a base with the compiler.
        let others = specs.iter().filter(|other| without_python(other) == without_python(spec));
        let devel = std::iter::once(spec)
            .chain(others.map(String::as_str))
            .find_map(|spec| (self.question.resolve)(&format!("{spec}-devel")));
        if let Some(devel) = devel {
            self.note(Change::Changed, note);
            return devel;
        }
        let why = format!(
            "no compiler of CUDA {} for this image: `envforge plan {spec}-devel` says why",
            stack.cuda.dotted()
        );
        self.row(Change::NotTakenOver, &note.origin, &note.written, &why);
        stack
    }

    /// The Pythons that all files allow, nearest to the default first. A file that leaves none is told.
    fn pythons(&mut self, readings: &[Reading]) -> Vec<PythonVersion> {
        let mut allowed: Vec<_> = pythons().collect();
        let mut by = String::new();
        for fact in readings.iter().flat_map(|reading| &reading.python) {
            let rest: Vec<_> =
                allowed.iter().copied().filter(|python| allows(&fact.versions, *python)).collect();
            if rest.is_empty() {
                let why = if by.is_empty() {
                    "no Python that images have".to_owned()
                } else {
                    format!("contradicts {by}, which is taken")
                };
                self.row(Change::NotTakenOver, &fact.origin, &fact.by, &why);
                continue;
            }
            if rest.len() < allowed.len() || by.is_empty() {
                by = format!("{} ({})", fact.by, fact.origin);
            }
            allowed = rest;
            self.row(Change::Kept, &fact.origin, &fact.by, "the Python of the image");
        }
        allowed
    }

    /// Every package once, from the most believed file; what does not hold on this platform is told.
    fn merged(&mut self, readings: &[Reading], python: PythonVersion) -> Vec<(Asked, Kind)> {
        let pins: BTreeMap<_, _> =
            readings.iter().flat_map(|one| &one.pins).map(|pin| (pin.name.as_str(), pin)).collect();
        let lists = [Kind::Project, Kind::Requirements, Kind::Environment];
        let wanted_elsewhere =
            readings.iter().any(|one| lists.contains(&one.kind) && !one.packages.is_empty());
        let mut all: Vec<(Asked, Kind)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for reading in readings {
            let pinned = reading.pins.iter().filter(|_| !wanted_elsewhere);
            let tests = reading.offered.iter().filter(|offered| offered.is_taken);
            let tests = tests.flat_map(|offered| &offered.packages);
            for asked in reading.packages.iter().chain(tests).chain(pinned) {
                if !holds(&asked.marker, self.question.machine, python) {
                    let why = format!("not for Linux on {} with Python {python}", self.question.machine);
                    self.row(Change::NotTakenOver, &asked.origin, &asked.written, &why);
                    continue;
                }
                let asked = self.by_its_package(asked.clone());
                let asked = self.released(asked);
                if let Some(at) = places.get(&asked.name) {
                    self.merge(&mut all[*at], &asked, reading.kind);
                } else {
                    places.insert(asked.name.clone(), all.len());
                    all.push((asked, reading.kind));
                }
            }
        }
        let mut constraints: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
        for constraint in readings.iter().flat_map(|one| &one.constraints) {
            constraints.entry(&constraint.name).or_default().push(constraint);
        }
        for (asked, _) in &mut all {
            for constraint in constraints.get(asked.name.as_str()).into_iter().flatten() {
                asked.versions = both(&asked.versions, &constraint.versions);
                if asked.local.is_none() {
                    asked.local.clone_from(&constraint.local);
                }
            }
            if let Some(pin) = pins.get(asked.name.as_str()).filter(|pin| pin.versions != asked.versions) {
                let why = format!("{} of {}", pin.versions, pin.origin.file);
                self.rows.push(Row {
                    change: Change::Changed,
                    origin: asked.origin.clone(),
                    text: shortened(&asked.written),
                    why,
                });
                self.changed = true;
                asked.versions = pin.versions.clone();
                asked.local.clone_from(&pin.local);
            }
        }
        // jax and jaxlib have the same releases.
        let library = all.iter().find(|(asked, _)| asked.name == "jaxlib");
        if let Some(versions) = library.map(|(library, _)| library.versions.clone())
            && let Some((jax, _)) = all.iter_mut().find(|(asked, _)| asked.name == "jax")
            && exact(&jax.versions).is_none()
            && exact(&versions).is_none_or(|release| jax.versions.contains(&release))
        {
            jax.versions = both(&jax.versions, &versions);
        }
        all
    }

    /// The page of links with the wheels of a package for this stack, where the files name a page of that project.
    fn page_of(&self, package: &str, readings: &[Reading], stack: &Stack) -> Option<IndexSeen> {
        let row = self.question.matrix.coupled_packages.iter().find(|row| row.package == package)?;
        let begin = row.pages.as_ref()?.split('{').next()?;
        let mut seen = readings.iter().flat_map(|one| &one.indexes);
        let named = seen.find(|index| index.flat && index.url.starts_with(begin))?;
        let torch = if stack.package == "torch" {
            stack.version.clone()
        } else {
            stack.companions.get("torch")?.parse().ok()?
        };
        let url = row.page(&torch, stack.cuda)?;
        // Another index of the project may have the name.
        let mut all = readings.iter().flat_map(|one| &one.indexes);
        let is_taken = all.any(|index| index.name == named.name && !index.url.starts_with(begin));
        let name = if is_taken { format!("{}-pages", named.name) } else { named.name.clone() };
        Some(IndexSeen { name, url, flat: true })
    }

    /// A framework that is asked for by a name that is none of a package today: `tensorflow-gpu`, `pytorch`.
    fn by_its_package(&mut self, mut asked: Asked) -> Asked {
        if package_today(&asked.name) == asked.name {
            return asked;
        }
        let package = package_today(&asked.name).to_owned();
        self.changed = true;
        self.row(Change::Changed, &asked.origin, &asked.written, &format!("the package is called {package}"));
        asked.name = package;
        asked
    }

    /// A preview of something that the matrix has releases of, as that release.
    fn released(&mut self, mut asked: Asked) -> Asked {
        let matrix = self.question.matrix;
        let known = || {
            matrix.companions.iter().any(|row| row.package == asked.name)
                || self.is_coupled(&asked.name)
                || framework_packages(matrix).iter().any(|(package, _)| *package == asked.name)
        };
        // `2.3.0.post301` is a build number of conda's.
        let is_of_conda = |version: &Version| {
            let rows = || matrix.variants.iter().map(|row| row.version.to_string());
            version.post().is_some_and(|post| post >= 100) && !rows().any(|row| row == version.to_string())
        };
        let preview = asked.versions.iter().find(|one| {
            *one.operator() == Operator::Equal
                && (one.version().is_dev() || one.version().is_pre() || is_of_conda(one.version()))
        });
        let Some(preview) = preview.map(|one| one.version().clone()).filter(|_| known()) else {
            return asked;
        };
        let release = preview.only_release();
        let why = match asked.local.as_deref().filter(|local| local.contains("nv")) {
            Some(_) => {
                format!("a build of NVIDIA's containers, which no index has: the release {release} instead")
            }
            None if is_of_conda(&preview) => {
                format!(
                    "a build of conda, which the package index does not have: the release {release} instead"
                )
            }
            None => format!("a preview, which is gone after weeks: the release {release} instead"),
        };
        self.row(Change::Changed, &asked.origin, &asked.written, &why);
        self.changed = true;
        asked.versions = VersionSpecifiers::from(pep440_rs::VersionSpecifier::equals_version(release));
        asked
    }

    fn merge(&mut self, (own, own_kind): &mut (Asked, Kind), asked: &Asked, kind: Kind) {
        let is_other = *own_kind != kind && !asked.versions.is_empty();
        if is_other && contradict(&own.versions, &asked.versions) {
            let why = format!("contradicts {} in {}, which is taken", own.requirement(), own.origin);
            self.changed = true;
            // Neither its extras nor its build are those of the release that is taken.
            return self.row(Change::NotTakenOver, &asked.origin, &asked.written, &why);
        }
        if own.local.is_none() {
            own.local.clone_from(&asked.local);
        }
        if own.index.is_none() {
            own.index.clone_from(&asked.index);
        }
        if own.extras != asked.extras && !asked.extras.is_empty() {
            self.changed = true;
            own.extras = union_of_extras(&own.extras, &asked.extras);
        }
        let is_in_project = kind != Kind::Lock && !IN_EVERY_IMAGE.contains(&asked.name.as_str());
        if *own_kind == kind && is_in_project && contradict(&own.versions, &asked.versions) {
            self.contradicting.push((own.clone(), asked.clone()));
        } else if *own_kind == kind && own.versions != asked.versions {
            own.versions = both(&own.versions, &asked.versions);
        } else if own.versions != asked.versions && !asked.versions.is_empty() {
            self.changed = true;
            own.versions = both(&own.versions, &asked.versions);
            let why = format!("both hold, with {}", own.origin);
            self.row(Change::Kept, &asked.origin, &asked.written, &why);
        }
    }

    /// The framework of the spec that was typed.
    fn typed(&self) -> Option<Framework<'a>> {
        let product = self.question.matrix.product(&self.question.spec?.parsed().name)?;
        Some(Framework { product, asked: None, package: product.package.clone().unwrap_or_default() })
    }

    /// The framework: one that is asked for by name, else one that a package needs.
    fn framework(&mut self, packages: &[(Asked, Kind)], readings: &[Reading]) -> Option<Framework<'a>> {
        let matrix = self.question.matrix;
        let asked = |name: &str| {
            let direct = packages.iter().map(|(asked, _)| asked).find(|asked| asked.name == name);
            // A lock says which release a package brings along.
            direct.or_else(|| readings.iter().flat_map(|one| &one.pins).find(|pin| pin.name == name)).cloned()
        };
        let named = framework_packages(matrix);
        // What serves models brings its own torch: its release decides.
        let serving =
            named.iter().filter(|(_, product)| ["vllm", "sglang"].contains(&product.framework.as_str()));
        let has_cuda = |asked: &Asked| !is_without_cuda(asked);
        let is_bare = |asked: &Asked| {
            asked.versions.is_empty() && asked.local.is_none() && !asked.extras.contains("cu")
        };
        let is_sure = |asked: &Asked| {
            exact(&asked.versions).is_some() || asked.local.is_some() || asked.extras.contains("cu")
        };
        let main = || named.iter().filter(|(_, product)| MAIN.contains(&product.framework.as_str()));
        let some_sure =
            main().filter_map(|(package, _)| asked(package)).any(|one| has_cuda(&one) && is_sure(&one));
        let with: &dyn Fn(&Asked) -> bool = &has_cuda;
        let named_well: &dyn Fn(&Asked) -> bool = &|asked| some_sure && has_cuda(asked) && !is_bare(asked);
        // One that is asked for without CUDA is the framework only where no other is named.
        let any: &dyn Fn(&Asked) -> bool = &|_| true;
        let first = serving.map(|one| (one, with)).chain(main().map(|one| (one, named_well)));
        let first =
            first.chain(named.iter().map(|one| (one, with))).chain(named.iter().map(|one| (one, any)));
        for ((package, product), is_meant) in first {
            if let Some(asked) = asked(package).filter(is_meant) {
                return Some(Framework { product, asked: Some(asked), package: (*package).to_owned() });
            }
        }
        for (asked, _) in packages {
            let framework = implied_by(asked, matrix);
            let Some(product) = matrix.products.iter().find(|row| Some(row.framework.as_str()) == framework)
            else {
                continue;
            };
            let package = product.package.clone().unwrap_or_default();
            if product.framework == "jax"
                && let Some((library, _)) = packages.iter().find(|(one, _)| one.name == "jaxlib")
            {
                let asked =
                    Asked { name: package.clone(), extras: String::new(), local: None, ..library.clone() };
                return Some(Framework { product, asked: Some(asked), package });
            }
            let is_built_for_one = |(one, _): &(Asked, Kind)| !torch_of_package(one).is_empty();
            let why = if package == "torch" && packages.iter().any(is_built_for_one) {
                "needs pytorch: the release that a wheel is built for is taken".to_owned()
            } else {
                format!("needs {}, which no file pins: {NEWEST}", product.framework)
            };
            self.row(Change::Changed, &asked.origin, &asked.written, &why);
            return Some(Framework { product, asked: None, package });
        }
        None
    }

    /// The framework with the torch that extensions are built for, where no line pins it: that of `+cu122torch2.3`.
    fn with_torch_of_extensions(
        &mut self,
        framework: Framework<'a>,
        packages: &[(Asked, Kind)],
    ) -> Framework<'a> {
        let mut asked = framework.asked.clone();
        let is_open = framework.package == "torch" && self.question.spec.is_none();
        for (extension, _) in packages.iter().filter(|_| is_open) {
            let built_for = torch_of_package(extension);
            let Some(widest) = built_for.last() else { continue };
            let own = asked.as_ref().map_or_else(VersionSpecifiers::empty, |one| one.versions.clone());
            if exact(&own).is_some_and(|own| widest.contains(&own)) {
                continue;
            }
            let mut all = built_for.iter().filter(|_| exact(&own).is_none()).map(|one| both(&own, one));
            let Some(versions) = all.find(|one| self.known_versions(&framework, one).next().is_some()) else {
                let why = format!("is built for torch{widest}: another torch is asked for, or none is known");
                self.row(Change::NotTakenOver, &extension.origin, &extension.written, &why);
                continue;
            };
            let why = format!("its wheel is for torch{widest}");
            self.row(Change::Kept, &extension.origin, &extension.written, &why);
            asked = Some(match asked {
                Some(torch) => Asked { versions, ..torch },
                None => Asked {
                    name: framework.package.clone(),
                    extras: String::new(),
                    versions,
                    local: None,
                    marker: MarkerTree::TRUE,
                    index: None,
                    ..extension.clone()
                },
            });
        }
        Framework { asked, ..framework }
    }

    /// The CUDA that is named most surely; others that say something else are told.
    fn cuda(
        &mut self,
        readings: &[Reading],
        packages: &[(Asked, Kind)],
        framework: &Framework<'_>,
    ) -> Option<CudaFact> {
        let mut facts: Vec<CudaFact> = Vec::new();
        for (asked, _) in packages {
            let (origin, by) = (asked.origin.clone(), asked.written.clone());
            let found = cuda_of_package(asked, &framework.package, self.question.matrix);
            facts.extend(found.map(|(cuda, strength)| CudaFact { origin, cuda, strength, by }));
        }
        if let Some(asked) = framework.asked.as_ref().filter(|asked| asked.local.is_some()) {
            let cuda = asked.local.as_deref().map(LocalVersion::read).and_then(|local| local.cuda);
            let (origin, by) = (asked.origin.clone(), asked.written.clone());
            facts.extend(cuda.map(|cuda| CudaFact { origin, cuda, strength: Strength::Framework, by }));
        }
        facts.extend(readings.iter().flat_map(|reading| reading.cuda.iter().cloned()));
        facts.sort_by_key(|fact| std::cmp::Reverse((fact.strength, fact.cuda.minor.is_some())));
        let first = facts.first().cloned()?;
        // Its row is that of an index.
        facts.retain(|fact| fact.strength != Strength::Hint);
        for fact in &facts {
            let same = fact.cuda.major == first.cuda.major
                && (fact.cuda.minor.is_none()
                    || first.cuda.minor.is_none()
                    || fact.cuda.minor == first.cuda.minor);
            if same {
                self.row(Change::Kept, &fact.origin, &fact.by, &format!("{CUDA_OF_THE_IMAGE}{}", first.cuda));
            } else {
                let why =
                    format!("says {}, but {} says {}, which is taken", fact.cuda, first.origin, first.cuda);
                self.row(Change::NotTakenOver, &fact.origin, &fact.by, &why);
            }
        }
        Some(first)
    }

    /// The specs that the files allow, the one that is meant first.
    fn specs(
        &mut self,
        framework: &Framework<'_>,
        cuda: Option<&CudaFact>,
        pythons: &[PythonVersion],
    ) -> Vec<String> {
        let mut pythons: Vec<String> = pythons.iter().map(|python| format!("-py{python}")).collect();
        if pythons.is_empty() {
            pythons.push(String::new());
        }
        let name = &framework.product.name;
        let mut versions = self.versions(framework);
        // Of the index of another project the major may choose among the builds of a release, and nothing else.
        let hint = cuda.filter(|fact| fact.strength == Strength::Hint).map(|fact| fact.cuda.major);
        let cuda = cuda.filter(|_| hint.is_none());
        // A version that has no build for the CUDA is none of those that are tried.
        if let Some(fact) = cuda.filter(|fact| fact.strength != Strength::Surroundings) {
            let has = |version: &Option<String>| {
                let mut rows = self.rows_of(&framework.product.framework);
                rows.any(|row| {
                    version.as_deref().is_none_or(|version| row.version.to_string() == version)
                        && row.cuda.major == fact.cuda.major
                        && (fact.cuda.minor.is_none()
                            || row.cuda.minor.is_none()
                            || row.cuda.minor == fact.cuda.minor)
                })
            };
            if versions.iter().any(has) {
                versions.retain(has);
            }
        }
        let mut cudas: Vec<Option<String>> = vec![cuda.map(|fact| format!("-{}", fact.cuda))];
        // Conda's toolkit is of no wheel: of its major, the nearest build is meant, where its own was never published.
        if let Some(fact) = cuda.filter(|fact| fact.strength == Strength::Toolkit) {
            let is_published = |version: &Option<String>| {
                let mut rows = self.rows_of(&framework.product.framework);
                rows.any(|row| {
                    row.cuda == fact.cuda
                        && version.as_deref().is_none_or(|version| row.version.to_string() == version)
                })
            };
            if !versions.iter().any(is_published) {
                cudas.push(Some(format!("-{}", CudaVariant { major: fact.cuda.major, minor: None })));
            }
        }
        // What surrounds the project is no promise of its packages: a base of CUDA 12.4 runs wheels of 12.6.
        if let Some(fact) = cuda.filter(|fact| fact.strength == Strength::Surroundings) {
            cudas.push(Some(format!("-{}", CudaVariant { major: fact.cuda.major, minor: None })));
            cudas.push(None);
        }
        let by_cuda = self.rows_of(&framework.product.framework).any(|row| row.package.is_some());
        let mut all = Vec::new();
        for cuda in &cudas {
            for version in &versions {
                let own = by_cuda.then(|| self.cuda_of_package(framework, version.as_deref())).flatten();
                let cuda = own.or_else(|| cuda.clone());
                let of_major =
                    |major: &u8| cuda.is_none() && self.has_major(framework, version.as_deref(), *major);
                let hinted = hint.filter(of_major).map(|major| format!("-cu{major}"));
                let version = version.as_deref().map(|version| format!(":{version}")).unwrap_or_default();
                for cuda in hinted.into_iter().chain([cuda.unwrap_or_default()]) {
                    all.extend(pythons.iter().map(|python| format!("{name}{version}{cuda}{python}")));
                }
            }
        }
        all
    }

    /// Whether a release of the framework, or the newest one, has a build for a major of CUDA.
    fn has_major(&self, framework: &Framework<'_>, version: Option<&str>, major: u8) -> bool {
        let newest = || self.known_versions(framework, &VersionSpecifiers::empty()).flatten().next();
        let Some(version) = version.map(str::to_owned).or_else(newest) else { return false };
        self.rows_of(&framework.product.framework)
            .any(|row| row.version.to_string() == version && row.cuda.major == major)
    }

    /// The CUDA in the name of a framework's package: `cudf-cu13`.
    fn cuda_of_package(&self, framework: &Framework<'a>, version: Option<&str>) -> Option<String> {
        let version: Option<FrameworkVersion> = version.and_then(|version| version.parse().ok());
        let package = framework.asked.as_ref()?.name.as_str();
        let mut rows = self.rows_of(&framework.product.framework);
        let row = rows.find(|row| {
            let same = row.package.as_deref().or(framework.product.package.as_deref()) == Some(package);
            same && version.as_ref().is_none_or(|version| row.version == *version)
        })?;
        Some(format!("-{}", row.cuda))
    }

    /// The versions of the framework that are allowed, newest first; `None`: any.
    fn versions(&mut self, framework: &Framework<'_>) -> Vec<Option<String>> {
        let Some(asked) = framework.asked.as_ref().filter(|asked| !asked.versions.is_empty()) else {
            // The newest, or the newest that the other packages fit.
            let any = VersionSpecifiers::empty();
            return std::iter::once(None).chain(self.known_versions(framework, &any)).collect();
        };
        let exact = asked
            .versions
            .iter()
            .find(|one| matches!(one.operator(), Operator::Equal | Operator::ExactEqual));
        if let Some(exact) = exact {
            // `==2.1` is 2.1.0, which the spec says in full: `2.1` there is the newest 2.1.x.
            let exact = exact.version().clone().without_local();
            let any = VersionSpecifiers::empty();
            let known: Vec<_> = self.known_versions(framework, &any).flatten().collect();
            let of = |is_it: &dyn Fn(&Version) -> bool| {
                known.iter().find(|text| Version::from_str(text).is_ok_and(|version| is_it(&version)))
            };
            let same = of(&|version| *version == exact)
                .or_else(|| of(&|version| version.is_post() && version.only_release() == exact));
            return vec![Some(same.cloned().unwrap_or_else(|| exact.to_string()))];
        }
        let found: Vec<_> = self.known_versions(framework, &asked.versions).collect();
        if found.is_empty() {
            // The refusal names the least that was asked for.
            return vec![least(&asked.versions)];
        }
        found
    }

    /// The versions of the framework that the matrix has and a condition allows, newest first.
    fn known_versions(
        &self,
        framework: &Framework<'_>,
        versions: &VersionSpecifiers,
    ) -> impl Iterator<Item = Option<String>> + use<> {
        let product = framework.product;
        let package = framework.package.as_str();
        let mut known: Vec<_> = self
            .rows_of(&product.framework)
            .filter(|row| row.package.as_deref().or(product.package.as_deref()) == Some(package))
            .map(|row| &row.version)
            .collect();
        known.sort();
        known.dedup();
        let texts = known.into_iter().rev().map(ToString::to_string);
        let allowed: Vec<_> = texts
            .filter(|text| Version::from_str(text).is_ok_and(|version| versions.contains(&version)))
            .collect();
        allowed.into_iter().map(Some)
    }

    fn rows_of(&self, framework: &str) -> impl Iterator<Item = &'a Variant> {
        let framework = framework.to_owned();
        self.question.matrix.variants.iter().filter(move |row| row.framework == framework)
    }

    /// The project of a stack that resolves.
    fn project(
        mut self,
        readings: &[Reading],
        mut packages: Vec<(Asked, Kind)>,
        framework: &Framework<'_>,
        stack: &Stack,
    ) -> Migration {
        let spec = self.spec_of(readings, stack);
        let renamed = packages.iter().any(|(asked, _)| for_this_cuda(asked, stack).is_some());
        let mut pages: Vec<IndexSeen> = Vec::new();
        for (asked, _) in packages.iter_mut().filter(|(asked, _)| asked.index.is_none()) {
            let Some(page) = self.page_of(&asked.name, readings, stack) else { continue };
            asked.index = Some(page.name.clone());
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        let copied = renamed
            || !pages.is_empty()
            || self.changed
            || !self.question.is_here
            || must_be_copied(readings, &framework.package);
        let mut project = Migration { spec, files: self.files.clone(), ..Migration::default() };
        for reading in readings {
            for note in &reading.kept {
                self.note(Change::Kept, note);
            }
            for (origin, name) in &reading.apt {
                if !project.apt.contains(name) {
                    project.apt.push(name.clone());
                }
                let is_it = |note: &Note| {
                    note.origin == *origin && note.written.split(['=', '/']).next() == Some(name.as_str())
                };
                // That its version was left out is in a row of its own.
                if !reading.changed.iter().any(is_it) {
                    self.row(Change::Kept, origin, name, "a package of the distribution");
                }
            }
            if copied && reading.hashes > 0 {
                let lines = if reading.hashes == 1 { "line" } else { "lines" };
                let text = format!("--hash in {} {lines}", reading.hashes);
                self.row(
                    Change::NotTakenOver,
                    &Origin::file(&reading.file),
                    &text,
                    "the lock pins every file by a hash of its own",
                );
            }
            for offered in &reading.offered {
                let is_named = !copied && reading.file == "pyproject.toml" && offered.is_group;
                if is_named {
                    let groups =
                        if offered.is_taken { &mut project.taken_groups } else { &mut project.groups };
                    groups.push(offered.name.clone());
                }
                let names: Vec<_> = offered.packages.iter().map(Asked::requirement).collect();
                let mut why = if offered.is_taken {
                    format!("{}: taken, since it has pytest", offered.what)
                } else if !is_named {
                    format!("{}: add what you need of it to `python`", offered.what)
                } else {
                    format!("{}: asked for by `groups = [\"{}\"]`", offered.what, offered.name)
                };
                for asked in &offered.packages {
                    if let Some(better) = for_this_cuda(asked, stack) {
                        why = format!("{why}; for {} write {better} instead of {}", stack.cuda, asked.name);
                    }
                }
                self.row(
                    if offered.is_taken { Change::Kept } else { Change::Offered },
                    &offered.origin,
                    &format!("{} = {}", offered.name, names.join(", ")),
                    &why,
                );
            }
        }
        for (asked, _) in packages {
            // What comes from an index of the project is that index's affair.
            let is_left = is_without_cuda(&asked) && asked.name != framework.package;
            project.compared.extend((asked.index.is_none() && !is_left).then(|| self.compared(&asked)));
            self.package(&mut project, &asked, (&framework.package, copied), stack);
        }
        for reading in readings.iter().filter(|one| !copied && !one.packages.is_empty()) {
            match reading.kind {
                Kind::Requirements => project.requirements.push(reading.file.clone()),
                Kind::Project => project.pyproject = true,
                _ => {}
            }
        }
        let used: Vec<_> = project.python.iter().filter_map(|package| package.index.clone()).collect();
        let is_page = |index: &&IndexSeen| pages.iter().any(|page| page.name == index.name);
        let seen = readings.iter().flat_map(|one| &one.indexes).filter(|index| !is_page(index));
        for index in seen.chain(&pages).filter(|index| used.contains(&index.name)) {
            // The first one of a name: two would be an index for packages of the other.
            if !project.indexes.iter().any(|one| one.name == index.name) {
                project.indexes.push(index.clone());
            }
        }
        self.name_the_cuda(stack);
        self.rows.sort_by(|a, b| (a.change, &a.origin).cmp(&(b.change, &b.origin)));
        project.rows = self.rows;
        project
    }

    /// Says of what named another CUDA of the same major that the stack has its own.
    fn name_the_cuda(&mut self, stack: &Stack) {
        let differs = |row: &Row| {
            let named =
                row.why.strip_prefix(CUDA_OF_THE_IMAGE).and_then(|name| name.parse::<CudaVariant>().ok());
            named.is_some_and(|named| {
                named.minor.is_some() && named != stack.cuda && stack.cuda.minor.is_some()
            })
        };
        // The base image itself may have its row already.
        let changed: BTreeSet<_> = self
            .rows
            .iter()
            .filter(|row| row.change == Change::Changed)
            .map(|row| row.origin.clone())
            .collect();
        self.rows.retain(|row| {
            !(row.change == Change::Kept
                && row.text.starts_with("image ")
                && changed.contains(&row.origin)
                && differs(row))
        });
        for row in self.rows.iter_mut().filter(|row| row.change == Change::Kept && differs(row)) {
            let named = row.why.trim_start_matches(CUDA_OF_THE_IMAGE).to_owned();
            row.change = Change::Changed;
            row.why = format!(
                "{} instead: {} {} has no build for {named} that the target runs",
                stack.cuda, stack.package, stack.version
            );
        }
    }

    /// Takes one package over.
    fn package(
        &mut self,
        project: &mut Migration,
        asked: &Asked,
        (framework, copied): (&str, bool),
        stack: &Stack,
    ) {
        let (origin, written) = (&asked.origin, &asked.written);
        if asked.name == framework {
            if asked.extras.contains("tpu") || asked.extras.contains("rocm") {
                let why = "an extra for other accelerators: the image is for NVIDIA GPUs";
                self.row(Change::NotTakenOver, origin, &asked.extras, why);
            }
            let own = Version::from_str(&stack.version.to_string()).ok();
            if own.is_some_and(|own| !asked.versions.contains(&own)) {
                let (spec, requirement) = (&project.spec, asked.requirement());
                let why = format!("the framework {spec}: the matrix has no build of {requirement} itself");
                return self.row(Change::Changed, origin, written, &why);
            }
            return self.row(Change::Kept, origin, written, &format!("the framework {}", project.spec));
        }
        let pinned = asked.name.starts_with("nvidia-")
            && major_in_name(asked).is_some_and(|cuda| cuda.major == stack.cuda.major);
        if asked.name.starts_with("nvidia-") && major_in_name(asked).is_some() && !pinned {
            let why = format!("a library of another CUDA: the stack has {}", stack.cuda);
            return self.row(Change::NotTakenOver, origin, written, &why);
        }
        if let Some(own) = stack.companions.get(&asked.name)
            && asked.versions.iter().any(|one| *one.operator() == Operator::EqualStar)
            && let Some(named) = patch_named(written).filter(|named| named != own)
        {
            let why = format!("{own}: wheels for {} {} have no {named}", stack.package, stack.version);
            return self.row(Change::Changed, origin, written, &why);
        }
        if let Some(own) = stack.companions.get(&asked.name).filter(|_| is_without_cuda(asked)) {
            let why = format!("{WITHOUT_CUDA}: {own} of the stack instead");
            return self.row(Change::Changed, origin, written, &why);
        }
        if stack.companions.contains_key(&asked.name)
            || (asked.name == "triton" && stack.triton.is_some())
            || pinned
        {
            return self.row(Change::Kept, origin, written, "part of the stack");
        }
        if asked.name == "jaxlib" {
            let own = Version::from_str(&stack.version.to_string());
            let is_own = stack.package == "jax" && own.is_ok_and(|own| asked.versions.contains(&own));
            if let Some(local) = &asked.local {
                let why = format!("no index has its build `+{local}`: the plugin of jax brings CUDA");
                self.row(Change::Changed, origin, written, &why);
            } else if is_own {
                self.row(Change::Kept, origin, written, "part of the stack");
            }
            if is_own {
                return;
            }
        }
        if IN_EVERY_IMAGE.contains(&asked.name.as_str()) {
            return self.row(Change::Kept, origin, written, "part of every image");
        }
        if is_without_cuda(asked) {
            let why = "a build without CUDA, which an index of its own has: add that index to [packages] if the image needs it";
            return self.row(Change::NotTakenOver, origin, written, why);
        }
        if let Some(better) = for_this_cuda(asked, stack) {
            let requirement = format!(
                "{better}{}",
                asked.versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            );
            project.python.push(ProjectPackage { requirement, index: None });
            return self.row(
                Change::Changed,
                origin,
                written,
                &format!("{better}, the package for {}", stack.cuda),
            );
        }
        let unpublished = asked.local.as_deref().filter(|_| asked.index.is_none());
        let of_another = unpublished.filter(|local| asked.name != "jaxlib" && is_for_another(local, stack));
        let is_listed = asked.index.is_some()
            || !self.is_coupled(&asked.name) && of_another.is_none() && asked.name != "jaxlib";
        let local = asked.local.as_deref().filter(|_| is_listed);
        let requirement = match local {
            Some(local) => compared_with(asked, local),
            None => asked.requirement(),
        };
        let (change, why) = if written.contains(".whl") && (written.contains("://") || written.contains('/'))
        {
            // The index may have something else under the name of somebody's own wheel.
            if !self.is_coupled(&asked.name) && !is_file_of_default(written) {
                let why =
                    "a wheel of its own address: add the index that has it, or its file with `--wheel FILE`";
                return self.row(Change::NotTakenOver, origin, written, why);
            }
            let from =
                if self.is_coupled(&asked.name) { "its project's page or the index" } else { "the index" };
            (Change::Changed, format!("{requirement} from {from}, not from this file"))
        } else if let Some(index) = &asked.index {
            (Change::Kept, format!("from the index `{index}`"))
        } else if let Some(local) = of_another.filter(|_| !self.is_coupled(&asked.name)) {
            (Change::Changed, format!("{requirement} from the index, which has no build `+{local}`"))
        } else {
            (Change::Kept, String::new())
        };
        self.row(change, origin, written, &why);
        if copied {
            project.python.push(ProjectPackage { requirement, index: asked.index.clone() });
        }
    }

    /// The spec of a stack without what nobody asked for: a Python that would be chosen anyway and that a range allows.
    fn spec_of(&self, readings: &[Reading], stack: &Stack) -> String {
        if let Some(typed) = self.question.spec {
            return typed.written().to_owned();
        }
        let suffix = format!("-py{}", stack.python);
        let name = stack.name.trim_end_matches("-devel");
        let short = name.trim_end_matches(&suffix);
        let facts = readings.iter().flat_map(|reading| &reading.python);
        let mut facts = facts.filter(|fact| allows(&fact.versions, stack.python)).peekable();
        let named = facts.peek().is_some();
        let exact = facts.any(|fact| {
            fact.versions.iter().any(|one| one.operator().is_star() || *one.operator() == Operator::Equal)
        });
        let is_default = || (self.question.resolve)(short).is_some_and(|other| other.python == stack.python);
        let name = if exact || (named && !is_default()) { name } else { short };
        if stack.flavour == Flavour::Devel { format!("{name}-devel") } else { name.to_owned() }
    }

    /// The requirement as the stack is compared with it: with its local part.
    fn compared(&self, asked: &Asked) -> String {
        let local = compared_local(asked, self.question.matrix);
        local.map_or_else(|| asked.requirement(), |local| compared_with(asked, &local))
    }

    fn is_coupled(&self, name: &str) -> bool {
        self.question.matrix.coupled_packages.iter().any(|row| row.package == name)
    }
}

/// The release with its patch that a line of conda ends with: 0.15.0 of `torchvision=0.15.0`.
fn patch_named(written: &str) -> Option<&str> {
    let named = written.rsplit_once('=')?.1;
    let is_release = named.split('.').all(|part| part.parse::<u16>().is_ok());
    (is_release && named.split('.').count() == 3).then_some(named)
}

/// The release that the first condition of several names.
fn least(versions: &VersionSpecifiers) -> Option<String> {
    versions.iter().next().map(|one| one.version().only_release().to_string())
}

/// Whether a release is one that a spec with this version means.
fn begins(release: &str, version: &str) -> bool {
    let parsed = (release.parse::<FrameworkVersion>(), version.parse::<FrameworkVersion>());
    matches!(parsed, (Ok(release), Ok(version)) if release.is_meant_by(&version))
}

/// Whether a package is asked for as a build without CUDA: `torch==2.3.1+cpu`.
fn is_without_cuda(asked: &Asked) -> bool {
    asked.local.as_deref().is_some_and(is_local_without_cuda)
}

fn is_local_without_cuda(local: &str) -> bool {
    LocalVersion::read(local).other_accelerator.is_some()
}

/// Whether the local part of a version names another CUDA or torch than the stack's.
fn is_for_another(local: &str, stack: &Stack) -> bool {
    let own = (stack.package == "torch").then(|| stack.version.clone());
    let torch: Option<FrameworkVersion> = own.or_else(|| stack.companions.get("torch")?.parse().ok());
    let torch = torch.map(|torch| (torch.major(), torch.minor()));
    LocalVersion::read(local).mismatch(stack.cuda, torch).is_some()
}

/// The package for the stack's CUDA, where the one that was asked for is of another: `tensorrt-cu12` for `tensorrt`.
fn for_this_cuda(asked: &Asked, stack: &Stack) -> Option<String> {
    (asked.name == "tensorrt").then(|| format!("tensorrt-cu{}", stack.cuda.major))
}

/// Whether packages are listed in envforge.toml, since `lock` would not read the files with this meaning. A file that only names the
/// framework is in the spec.
fn must_be_copied(readings: &[Reading], framework: &str) -> bool {
    let is_readable = |one: &&Reading| {
        let names = one.kind == Kind::Requirements || one.file == "pyproject.toml";
        let plain = one.packages.iter().all(|asked| asked.index.is_none() && asked.local.is_none());
        one.is_readable_by_lock && names && plain && one.constraint_files.is_empty() && one.pins.is_empty()
    };
    let in_spec = |one: &&Reading| {
        one.pins.is_empty()
            && one.kind >= Kind::Environment
            && one.packages.iter().all(|asked| asked.name == framework)
    };
    !readings
        .iter()
        .all(|one| in_spec(&one) || (one.packages.is_empty() && one.pins.is_empty()) || is_readable(&one))
}

fn compared_with(asked: &Asked, local: &str) -> String {
    let exact = asked.versions.iter().find(|one| *one.operator() == Operator::Equal);
    match exact {
        Some(exact) => format!("{}{}=={}+{local}", asked.name, asked.extras, exact.version()),
        None => asked.requirement(),
    }
}

/// `[a,b]` of `[a]` and `[b]`.
fn union_of_extras(first: &str, second: &str) -> String {
    let all = [first, second].map(|extras| extras.trim_matches(['[', ']']));
    let names: BTreeSet<&str> =
        all.into_iter().flat_map(|extras| extras.split(',')).filter(|name| !name.is_empty()).collect();
    format!("[{}]", names.into_iter().collect::<Vec<_>>().join(","))
}

/// Whether a file asks for builds without CUDA alone.
pub fn is_without_any_cuda(reading: &Reading) -> bool {
    let mut packages = reading.packages.iter().chain(&reading.pins);
    let has_none = reading.cuda.iter().all(|fact| fact.strength == Strength::Hint);
    has_none && (reading.left.iter().any(Note::is_without_cuda) || packages.any(is_without_cuda))
}

/// Whether a file says for which CUDA its framework is.
pub fn names_a_cuda(reading: &Reading) -> bool {
    let says = |asked: &Asked| {
        let local = asked.local.as_deref().and_then(|local| LocalVersion::read(local).cuda);
        local.is_some() || major_in_name(asked).is_some()
    };
    reading.cuda.iter().any(|fact| fact.strength != Strength::Hint)
        || reading.packages.iter().chain(&reading.pins).any(says)
}

/// Whether a package of a file needs a framework of the matrix.
pub fn implies_a_framework(reading: &Reading, matrix: &Matrix) -> bool {
    reading.packages.iter().any(|asked| implied_by(asked, matrix).is_some())
}

/// Packages with builds for each CUDA that need no torch.
const WITHOUT_TORCH: [&str; 1] = ["llama-cpp-python"];

/// The framework that a package needs.
fn implied_by<'a>(asked: &Asked, matrix: &'a Matrix) -> Option<&'a str> {
    let name = asked.name.as_str();
    let implied = matrix.implied_frameworks.iter().find(|row| row.package == name);
    let is_coupled = || {
        let mut rows = matrix.coupled_packages.iter();
        !WITHOUT_TORCH.contains(&name) && rows.any(|row| row.package == name && row.trap.is_none())
    };
    match implied {
        Some(row) => Some(&row.framework),
        None if name == "jaxlib" => Some("jax"),
        None => (is_coupled() || !torch_of_package(asked).is_empty()).then_some("pytorch"),
    }
}

/// Whether a file asks for a framework of the matrix by name.
pub fn names_a_framework(reading: &Reading, matrix: &Matrix) -> bool {
    let named = framework_packages(matrix);
    let renamed = |name: &str| RENAMED.iter().any(|(old, _)| *old == name);
    let mut packages = reading.packages.iter().chain(&reading.pins);
    packages.any(|asked| renamed(&asked.name) || named.iter().any(|(package, _)| *package == asked.name))
}
