//! Chooses the release of each requested coupled package that fits a stack, or the nearest stack that has one.
//!
//! Owns the choice, its text and the violation. Asks no index: the matrix alone decides.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::VersionSpecifiers;
use pep508_rs::{Requirement, VersionOrUrl};
use serde::Serialize;

use super::alternatives::build_command;
use super::as_of::matrix_as_of;
use super::candidate::{ResolveRequest, cuda_of};
use super::choose::{is_selectable, solve};
use super::companion_fit::{Mismatch, Surroundings, satisfies};
use super::companion_pins::pin_violation;
use super::distance::DistanceMetric;
use super::foreign_cuda::ForeignRules;
use super::options::ResolveOptions;
use super::refusal::{Alternative, RuleViolation, Unsatisfiable};
use super::rule::Rule;
use crate::local_version::{cuda_major, exact, without_local};
use crate::marker::holds;
use crate::matrix::Matrix;
use crate::matrix::coupled::{AbiClass, CoupledPackage, CoupledRelease, WheelPlace};
use crate::matrix::tables::{Channel, Status, Variant};
use crate::spec::Spec;
use crate::stack::Stack;
use crate::versions::FrameworkVersion;

/// The number of stacks that are tried for a nearest one.
const TRIED: usize = 120;

/// Where the wheel of a companion comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompanionSource {
    /// The stack contains it.
    Stack,
    /// The package index.
    PackageIndex,
    /// A page or an index of its project.
    ProjectPage,
    /// Built from source.
    Build,
}

/// The release of a requested package that fits a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompanionChoice {
    /// The package.
    pub package: String,
    /// The release, one that is not checked only if the request names it; `None`: the newest that the index has.
    pub version: Option<String>,
    /// The source of its wheel.
    pub from: CompanionSource,
    /// The wheel's file name, if known.
    pub wheel: Option<String>,
    /// The explanation.
    pub because: String,
    /// A stack near this one that has a wheel, for a package that must be built.
    pub nearest: Option<String>,
    /// The warning about its name.
    pub warning: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

/// A request for companions: the question and the requirements, as typed.
#[derive(Clone, Copy)]
pub struct CompanionRequest<'a> {
    /// The spec of the stack.
    pub spec: &'a Spec,
    /// The matrix.
    pub matrix: &'a Matrix,
    /// The options of the resolution.
    pub options: &'a ResolveOptions,
    /// The requirements: `flash-attn==2.8.3`.
    pub requirements: &'a [String],
    /// Packages that may be built from source.
    pub allow_source: &'a [String],
}

/// Returns the choice for every requested package that the matrix knows, or every known mismatch.
pub fn companions(
    request: CompanionRequest<'_>,
    stack: &Stack,
) -> Result<Vec<CompanionChoice>, Box<Unsatisfiable>> {
    let now = request.matrix;
    let past = request.options.as_of.as_deref().map(|moment| matrix_as_of(now, moment));
    let request = CompanionRequest { matrix: past.as_ref().unwrap_or(now), ..request };
    let (mut choices, mut refusals, mut alternatives) = (Vec::new(), Vec::new(), Vec::new());
    let judge = Judge::new(request, stack, now);
    for typed in request.requirements {
        match judge.of(typed) {
            Judged::Nothing => {}
            Judged::Fits(choice) => choices.push(*choice),
            Judged::Build(mut choice) => {
                let near = nearest_stack(request, stack, now, Some(typed));
                choice.nearest = near.map(|(spec, _)| command("plan", &spec, typed));
                choices.push(*choice);
            }
            Judged::No(violation) => refusals.push(*violation),
        }
    }
    if refusals.is_empty() {
        return Ok(choices);
    }
    if let Some((spec, distance)) = nearest_stack(request, stack, now, None) {
        let with = request.requirements.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(" --with ");
        alternatives.push(Alternative {
            command: format!("{} --with {with}", build_command(&spec, request.options)),
            spec,
            distance,
        });
    }
    Err(Box::new(Unsatisfiable {
        spec: Box::new(request.spec.clone()),
        refusals,
        alternatives,
        driver: None,
    }))
}

/// Returns the names of requested packages of which the matrix knows nothing: whether they fit is decided by the package index.
pub fn not_checked(requirements: &[String], choices: &[CompanionChoice], stack: &Stack) -> Vec<String> {
    let names = requirements.iter().filter_map(|text| Some(named(&without_local(text).0)?.0));
    let chosen: BTreeSet<_> = choices.iter().map(|choice| choice.package.as_str()).collect();
    names.filter(|name| *name != stack.package && !chosen.contains(name.as_str())).collect()
}

/// Returns every known mismatch, without looking for another stack.
pub fn unfit(request: CompanionRequest<'_>, stack: &Stack) -> Vec<RuleViolation> {
    let judge = Judge::new(request, stack, request.matrix);
    let violation = |typed: &String| match judge.of(typed) {
        Judged::No(violation) => Some(*violation),
        Judged::Nothing | Judged::Fits(_) | Judged::Build(_) => None,
    };
    request.requirements.iter().filter_map(violation).collect()
}

/// What the matrix says of one requirement next to a stack.
enum Judged {
    /// It does not know the package.
    Nothing,
    Fits(Box<CompanionChoice>),
    Build(Box<CompanionChoice>),
    No(Box<RuleViolation>),
}

/// What is asked of every requirement next to one stack, looked up once.
struct Judge<'a> {
    request: CompanionRequest<'a>,
    stack: &'a Stack,
    /// The matrix with the rows that are later than the requested date.
    now: &'a Matrix,
    /// `None`: the stack has no torch.
    surroundings: Option<Surroundings>,
    foreign: ForeignRules<'a>,
}

impl<'a> Judge<'a> {
    fn new(request: CompanionRequest<'a>, stack: &'a Stack, now: &'a Matrix) -> Self {
        Self {
            request,
            stack,
            now,
            surroundings: Surroundings::of(stack, request.matrix),
            foreign: ForeignRules::of(stack, request.matrix),
        }
    }

    fn of(&self, typed: &str) -> Judged {
        let (stack, matrix) = (self.stack, self.request.matrix);
        let (text, local) = without_local(typed);
        let parsed: Option<Requirement> = Requirement::from_str(&text).ok();
        if let Some(parsed) = &parsed {
            if !holds(&parsed.marker, stack.machine, stack.python) {
                return Judged::Nothing;
            }
            let library = || library_of_another(typed, parsed.name.as_ref(), stack, matrix);
            if let Some(violation) = self.foreign.violation(typed, parsed).or_else(library) {
                return Judged::No(Box::new(violation));
            }
        }
        let Some(surroundings) = &self.surroundings else {
            // What else fits is not known without a torch: a name that misleads is told.
            let wish = Wish::of(&text, matrix).filter(|wish| wish.package.trap.is_some());
            return wish.map_or(Judged::Nothing, |wish| Judged::Fits(Box::new(wish.on_the_index())));
        };
        let Some((name, versions)) = parsed.as_ref().and_then(name_and_versions) else {
            return Judged::Nothing;
        };
        let other = local.and_then(|local| surroundings.of_another(typed, &local, matrix));
        if let Some(violation) = other.or_else(|| pin_violation(&name, &versions, stack, matrix)) {
            return Judged::No(Box::new(violation));
        }
        let Some(mut wish) = Wish::of(&text, matrix) else { return Judged::Nothing };
        let required = self.foreign.required(&name);
        if let Some(required) = required {
            wish.narrow(required);
        }
        if let Some(violation) = wish.later(self.now) {
            return Judged::No(Box::new(violation));
        }
        match wish.choose(surroundings, stack) {
            Choice::Fits(mut choice) => {
                if let Some(required) = required {
                    let label = format!("{} {}", stack.package, stack.version);
                    choice.because = format!("{}; {label} requires {name}{required}", choice.because);
                }
                Judged::Fits(choice)
            }
            Choice::Build(choice) => Judged::Build(choice),
            Choice::None(_) if self.request.allow_source.contains(&wish.package.package) => Judged::Nothing,
            Choice::None(violation) => Judged::No(Box::new(violation)),
        }
    }
}

/// Returns the violation of a library of NVIDIA's whose name has another CUDA than the stack's: both lie in one folder of Python.
fn library_of_another(typed: &str, name: &str, stack: &Stack, matrix: &Matrix) -> Option<RuleViolation> {
    let (major, own) = (library_major(name)?, stack.cuda.major);
    if major == own {
        return None;
    }
    let text = format!("{typed} is for CUDA {major}, the stack has CUDA {own}");
    let source = format!("name of the package; matrix {}", matrix.edition);
    Some(RuleViolation::new(Rule::CompanionMismatch, text, &source))
}

/// The CUDA major in the name of a library of NVIDIA's: 12 of `nvidia-cudnn-cu12`.
fn library_major(name: &str) -> Option<u8> {
    cuda_major(name.strip_prefix("nvidia-")?.rsplit('-').next()?)
}

/// Returns name and versions of a requirement; `None` for one on an address.
fn named(text: &str) -> Option<(String, String)> {
    name_and_versions(&Requirement::from_str(text).ok()?)
}

/// As [`named`], of what is parsed.
fn name_and_versions(parsed: &Requirement) -> Option<(String, String)> {
    let versions = match &parsed.version_or_url {
        Some(VersionOrUrl::VersionSpecifier(specifiers)) => specifiers.to_string(),
        Some(VersionOrUrl::Url(_)) => return None,
        None => String::new(),
    };
    Some((parsed.name.to_string(), versions))
}

/// `envforge plan pytorch-cuda:2.8.0-cu128 --with 'flash-attn>=2.8'`.
fn command(verb: &str, spec: &Spec, requirement: &str) -> String {
    format!("envforge {verb} {spec} --with {}", quoted(requirement))
}

/// A requirement as a shell reads it: that of a marker has quotes of its own.
fn quoted(requirement: &str) -> String {
    let is_plain = requirement.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=+".contains(c));
    match requirement {
        _ if is_plain => requirement.to_owned(),
        _ if requirement.contains(['"', '$', '`', '\\', '!']) || !requirement.contains('\'') => {
            format!("'{}'", requirement.replace('\'', r"'\''"))
        }
        _ => format!("\"{requirement}\""),
    }
}

/// A requirement on a coupled package.
struct Wish<'a> {
    package: &'a CoupledPackage,
    /// `==2.8.3`; empty: any release.
    versions: String,
    rows: Vec<&'a CoupledRelease>,
}

enum Choice {
    Fits(Box<CompanionChoice>),
    Build(Box<CompanionChoice>),
    None(RuleViolation),
}

impl<'a> Wish<'a> {
    /// Returns the request for a package that the matrix knows.
    fn of(text: &str, matrix: &'a Matrix) -> Option<Self> {
        let (name, versions) = named(text)?;
        let package = matrix.coupled_packages.iter().find(|row| row.package == name)?;
        Some(Self { package, versions, rows: rows(&name, matrix) })
    }

    /// Leaves out the releases that the framework of the stack does not accept.
    fn narrow(&mut self, required: &str) {
        let comma = if self.versions.is_empty() { "" } else { "," };
        self.versions = format!("{required}{comma}{}", self.versions);
    }

    /// Returns the releases that the request covers, newest first, wheels before sources.
    fn releases(&self) -> Vec<(&'a FrameworkVersion, &'a CoupledRelease)> {
        let each = |row: &&'a CoupledRelease| {
            let row = *row;
            row.versions.iter().map(move |version| (version, row))
        };
        let mut all: Vec<_> = self.rows.iter().flat_map(each).collect();
        all.retain(|(version, _)| self.versions.is_empty() || satisfies(version, &self.versions));
        all.sort_by(|a, b| b.0.cmp(a.0).then_with(|| a.1.place.cmp(&b.1.place)));
        all
    }

    /// Returns the newest release with a wheel that fits. One whose torch nothing says is taken only if it is requested by version.
    fn wheel(&self, around: &Surroundings) -> Option<(&'a FrameworkVersion, &'a CoupledRelease)> {
        let exact = self.versions.starts_with("==");
        let mut all = self.releases().into_iter().filter(|(_, row)| row.place != WheelPlace::Sdist);
        all.find(|(_, row)| around.mismatches(row).is_empty() && (exact || is_established(row)))
    }

    /// The version that the request names, whether or not the matrix has it.
    fn named_version(&self) -> Option<String> {
        exact(&VersionSpecifiers::from_str(&self.versions).ok()?).map(|version| version.to_string())
    }

    /// Returns the choice of a package of which the matrix knows the name, but no requested release: the index decides.
    fn on_the_index(&self) -> CompanionChoice {
        let version = self.named_version();
        let unknown = if version.is_some() {
            "this release is not in the matrix: not checked"
        } else {
            "releases not in the matrix"
        };
        CompanionChoice {
            package: self.package.package.clone(),
            version,
            from: CompanionSource::PackageIndex,
            wheel: None,
            because: format!("{unknown}; published: {}", self.package.published),
            nearest: None,
            warning: self.warning(),
            source: self.package.source.clone(),
        }
    }

    fn choose(&self, around: &Surroundings, stack: &Stack) -> Choice {
        let name = &self.package.package;
        let choice = |version: Option<String>, from, because: String, source: &str| {
            let source = source.to_owned();
            Box::new(CompanionChoice { version, from, because, source, ..self.on_the_index() })
        };
        if let Some(own) = stack.companions.get(name) {
            let fits = self.versions.is_empty()
                || own.parse::<FrameworkVersion>().is_ok_and(|own| satisfies(&own, &self.versions));
            if fits {
                let because = "part of the stack".to_owned();
                return Choice::Fits(choice(
                    Some(own.clone()),
                    CompanionSource::Stack,
                    because,
                    &self.package.source,
                ));
            }
            let text = format!("{name}{}: the stack pins {name} {own}", self.versions);
            return Choice::None(RuleViolation::new(Rule::CompanionMismatch, text, &self.package.source));
        }
        if let Some((version, row)) = self.wheel(around) {
            let (from, because) = match row.place {
                WheelPlace::Page => (CompanionSource::ProjectPage, on_page(row)),
                WheelPlace::Default | WheelPlace::Sdist => {
                    (CompanionSource::PackageIndex, on_index(row, around))
                }
            };
            let mut fits = choice(Some(version.to_string()), from, because, &row.source);
            fits.wheel = around.file_name(row, version);
            return Choice::Fits(fits);
        }
        let all = self.releases();
        let source = |row: &CoupledRelease| row.place == WheelPlace::Sdist && row.doubt.is_none();
        if let Some((version, row)) = all.iter().find(|(_, row)| source(row)) {
            let why = match self.page(around) {
                Some(page) => format!(" is known here; {page} may have one"),
                None => self.newest_mismatch(around).map_or_else(String::new, |why| format!("; {why}")),
            };
            let needs =
                self.package.build.as_ref().map_or_else(String::new, |needs| format!("; needs {needs}"));
            let because = format!("no wheel for this stack{why}; `--allow-source {name}` builds it{needs}");
            return Choice::Build(choice(
                Some(version.to_string()),
                CompanionSource::Build,
                because,
                &row.source,
            ));
        }
        // A release that is asked for by its version and has rows is known with all its wheels.
        let is_named = self.versions.starts_with("==") && !all.is_empty();
        if let Some(page) = self.page(around).filter(|_| !is_named) {
            let because = format!(
                "not checked: the matrix names only some of its wheels; {page} has those for this stack, if there are any"
            );
            let version = self.named_version();
            return Choice::Fits(choice(
                version,
                CompanionSource::ProjectPage,
                because,
                &self.package.source,
            ));
        }
        if all.is_empty() {
            return Choice::Fits(Box::new(self.on_the_index()));
        }
        Choice::None(self.violation(around))
    }

    /// Returns the address of the page with its wheels for a stack, where the rows name only some of them.
    fn page(&self, around: &Surroundings) -> Option<String> {
        self.package.page(&around.torch, around.cuda)
    }

    /// Returns the violation of a request whose every release was published after the requested date. `now`: the matrix with all rows.
    fn later(&self, now: &'a Matrix) -> Option<RuleViolation> {
        let known = !self.rows.is_empty() && !self.releases().is_empty();
        let all = Self {
            package: self.package,
            versions: self.versions.clone(),
            rows: rows(&self.package.package, now),
        };
        let (version, row) = (!known).then(|| all.releases().into_iter().next_back())??;
        let day = row.released.as_deref()?;
        let text =
            format!("{} {version}: published on {day}, after the requested date", self.package.package);
        Some(RuleViolation::new(Rule::CompanionMismatch, text, &row.source))
    }

    fn warning(&self) -> Option<String> {
        let trap = self.package.trap.as_ref()?;
        let instead = self.package.instead.as_ref().map_or_else(String::new, |way| format!("; {way}"));
        Some(format!("{}: {trap}{instead}", self.package.package))
    }

    /// Returns release and reason of the newest wheel that does not fit, or of the newest source that cannot be used.
    fn newest_mismatch(&self, around: &Surroundings) -> Option<String> {
        let all = self.releases();
        let wheel = all.iter().find(|(_, row)| row.place != WheelPlace::Sdist);
        let (version, row) = wheel.or_else(|| all.iter().find(|(_, row)| row.doubt.is_some()))?;
        let mut reasons: Vec<_> = around.mismatches(row).into_iter().map(|one| one.text).collect();
        if !is_established(row) {
            reasons.push("names no torch, and its symbols were not compared".to_owned());
        }
        Some(format!("{} {version} {}", self.package.package, reasons.join("; it ")))
    }

    fn violation(&self, around: &Surroundings) -> RuleViolation {
        let why = self.newest_mismatch(around).unwrap_or_else(|| "no release is known".to_owned());
        let source = self.releases().first().map_or(&self.package.source, |(_, row)| &row.source);
        let what = if self.versions.is_empty() { "no release" } else { "no requested release" };
        let text = format!("{what} of {} fits this stack: {why}", self.package.package);
        RuleViolation::new(Rule::CompanionMismatch, text, source)
    }
}

/// Returns the releases of a package.
fn rows<'a>(package: &str, matrix: &'a Matrix) -> Vec<&'a CoupledRelease> {
    matrix.coupled_releases.iter().filter(|row| row.package == package).collect()
}

/// Whether something says which torch a release belongs to: its requirement, its name or its symbols.
fn is_established(row: &CoupledRelease) -> bool {
    row.abi != AbiClass::Undeclared || !row.loads.is_empty()
}

fn on_page(row: &CoupledRelease) -> String {
    let at = row.at.as_deref().unwrap_or("page of the project");
    let seen = if row.verified { "" } else { " (by its build matrix; the file itself was not seen)" };
    format!("wheel on the {at}{seen}")
}

fn on_index(row: &CoupledRelease, around: &Surroundings) -> String {
    let torch = &around.torch;
    let why = match row.abi {
        AbiClass::Pinned | AbiClass::Range => format!("its requirement accepts torch {torch}"),
        AbiClass::Stable => "built with the stable ABI of libtorch".to_owned(),
        AbiClass::Undeclared if row.loads.is_empty() => {
            "its requirement names no torch, and its symbols were not compared: it may not load".to_owned()
        }
        AbiClass::Undeclared => {
            format!("its requirement names no torch; every symbol it needs is in torch {torch}")
        }
        AbiClass::None => "not linked to libtorch".to_owned(),
    };
    format!("wheel on the package index; {why}")
}

/// Returns the nearest stack of the same product that all requirements fit, with a wheel of one package where it is named, and its
/// distance.
fn nearest_stack(
    request: CompanionRequest<'_>,
    stack: &Stack,
    now: &Matrix,
    built: Option<&str>,
) -> Option<(Spec, u32)> {
    let CompanionRequest { spec, matrix, options, .. } = request;
    let product = matrix.product(&stack.product)?;
    let pinned = Spec { version: Some(stack.version.clone()), cuda: Some(stack.cuda.into()), ..spec.clone() };
    let question = ResolveRequest { spec: &pinned, target: &stack.target, matrix, options };
    let scale = DistanceMetric::new(&question, product);
    let mut rows: Vec<_> = matrix
        .variants
        .iter()
        .filter(|row| row.framework == product.framework && row.machine == stack.machine)
        .filter(|row| is_selectable(row) && row.arch.is_some())
        .map(|row| (scale.between(row), row))
        .collect();
    // The nearest release, and of it a listed variant before an experimental one. An older one counts double: what a package lacks in a
    // release, a later one often has.
    let key = |(distance, row): &(u32, &Variant)| {
        let weight = if row.version < stack.version { 2 } else { 1 };
        (scale.version(&row.version).saturating_mul(weight), row.status == Status::Experimental, *distance)
    };
    rows.sort_by(|a, b| {
        key(a).cmp(&key(b)).then_with(|| (&b.1.version, b.1.cuda).cmp(&(&a.1.version, a.1.cuda)))
    });
    for (distance, row) in rows.into_iter().take(TRIED) {
        let spec = Spec { version: Some(row.version.clone()), cuda: cuda_of(product, row), ..spec.clone() };
        let Ok(other) = solve(&ResolveRequest { spec: &spec, ..question }) else { continue };
        let judge = Judge::new(request, &other, now);
        let is_wheel = |typed: &str| matches!(judge.of(typed), Judged::Fits(_) | Judged::Nothing);
        let fits = |typed: &String| !matches!(judge.of(typed), Judged::No(_));
        if request.requirements.iter().all(fits) && built.is_none_or(is_wheel) {
            return Some((spec, distance));
        }
    }
    None
}

/// Returns the releases of the package index that a solver must leave out for a stack, with the reason of each: those whose
/// mismatch no requirement declares.
pub fn excluded_releases(stack: &Stack, matrix: &Matrix) -> BTreeMap<String, Vec<(String, String)>> {
    let mut all: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let Some(around) = Surroundings::of(stack, matrix) else { return all };
    for row in matrix.coupled_releases.iter().filter(|row| row.place == WheelPlace::Default) {
        // Companions of the framework's own index carry its CUDA in their version.
        if stack.companions.contains_key(&row.package) || stack.channel == Channel::Source {
            continue;
        }
        let found = around.mismatches(row);
        let hidden: Vec<_> =
            found.iter().filter(|one| !one.declared).map(|one: &Mismatch| one.text.clone()).collect();
        if hidden.is_empty() || found.iter().any(|one| one.declared) {
            continue;
        }
        let why = hidden.join(" and ");
        let releases = row.versions.iter().map(|version| (version.to_string(), why.clone()));
        all.entry(row.package.clone()).or_default().extend(releases);
    }
    all
}

/// Returns the release of a package that fits a stack and how to get it where no index has it, or why none does, in one line; `None` for
/// a package without rows.
pub fn companion_advice(package: &str, stack: &Stack, matrix: &Matrix) -> Option<String> {
    let around = Surroundings::of(stack, matrix)?;
    let wish = Wish::of(package, matrix).filter(|wish| !wish.rows.is_empty())?;
    if stack.companions.contains_key(package) {
        return None;
    }
    Some(match wish.choose(&around, stack) {
        Choice::Fits(choice) | Choice::Build(choice) => {
            let row = wish.wheel(&around).map(|(_, row)| row).filter(|row| row.place == WheelPlace::Page);
            let get = row.and_then(|row| download(row, choice.wheel.as_deref()?)).unwrap_or_default();
            format!("{package} {}: {}{get}", choice.version.unwrap_or_default(), choice.because)
        }
        Choice::None(violation) => violation.text,
    })
}

/// How to get a file of a release page, which no index lists.
fn download(row: &CoupledRelease, file: &str) -> Option<String> {
    let page = row.release_page()?;
    Some(format!("; download `{file}` from {page} and pass it: `--wheel FILE`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::resolve;
    use crate::target::Target;
    use crate::versions::Machine;

    fn stack() -> Stack {
        let spec = "pytorch-cuda:2.8.0-cu128-py3.11".parse().expect("a spec");
        let any = Target::any(Machine::X86_64);
        resolve(&spec, &any, Matrix::embedded(), &ResolveOptions::default()).expect("a stack")
    }

    #[test]
    fn advice_says_how_to_get_a_file_of_a_release_page() {
        let advice = companion_advice("flash-attn", &stack(), Matrix::embedded()).expect("advice");
        let ends = "; download `flash_attn-2.8.3.post1+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl` from \
                    https://github.com/Dao-AILab/flash-attention/releases and pass it: `--wheel FILE`";
        assert!(
            advice.starts_with("flash-attn 2.8.3.post1: wheel on the release page of")
                && advice.ends_with(ends),
            "{advice}"
        );
        let torchao = companion_advice("torchao", &stack(), Matrix::embedded()).expect("advice");
        assert!(!torchao.contains("download"), "an index has it: {torchao}");
    }

    #[test]
    fn package_of_another_name_gets_no_advice_to_take_a_release() {
        assert_eq!(companion_advice("apex", &stack(), Matrix::embedded()), None);
    }
}
