//! `init`: an envforge.toml out of what the files of a folder say. Asks nothing, runs nothing.

use std::collections::BTreeMap;

use camino::Utf8Path;
use serde::Serialize;

use crate::failure::{Exit, Failure, reason};
use crate::model::compat::Matrix;
use crate::model::image_ref::ImageRef;
use crate::model::migrate::{
    Change, Migration, Origin, OtherFramework, Question, Reading, Refusal, Row, decide, starter,
};
use crate::model::project::{FILE, SCHEMA_FILE, json_schema};
use crate::model::request::{self, LockOptions, ProjectOptions, RequestedSpec, SpecArgument};
use crate::model::resolve::{CompanionRequest, ResolveOptions, resolve, unfit};
use crate::model::spec::Spec;
use crate::model::stack::Stack;
use crate::model::wrap::{hanging, wrapped};
use crate::report::{Printer, reporter};
use crate::settings::{Output, Settings};
use crate::store::write_atomically;
use crate::workflow::build_request::wanted;
use crate::workflow::companions::check_companions;
use crate::workflow::error::CommandError;
use crate::workflow::read_folder::{Surroundings, read_file, read_folder};
use crate::workflow::read_image::{read_archive, read_image, read_layout};
use crate::workflow::session::LazySession;
use crate::workflow::stack::stack;
use crate::workflow::target::{machine, options, target};

/// JSON output of `init`.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    /// The project file; null: none was written.
    file: Option<&'a str>,
    /// Its spec, or the one that the files ask for.
    spec: Option<&'a str>,
    /// The files that were taken, the most believed first.
    files: &'a [String],
    rows: &'a [Row],
    /// Why there is no project; null: there is one.
    error: Option<String>,
}

pub(super) async fn init(args: &request::Init, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = &settings.paths.current_dir;
    let file = folder.join(FILE);
    if file.exists() && !args.force {
        return Err(ProjectExists { file: file.to_string() }.into());
    }
    let readings = readings(args, folder, settings).await?;
    let resolved = |spec: &RequestedSpec| stack(settings, spec, &LockOptions::default(), &args.target, None);
    let typed = args.spec.as_ref().map(SpecArgument::checked).transpose()?;
    if let Some(typed) = typed {
        resolved(typed)?;
    }
    let is_default = readings.is_empty() && args.spec.is_none();
    let found = if readings.is_empty() {
        let stack = resolved(typed.unwrap_or(&Spec::of("pytorch-cuda").into()))?;
        let short = stack.name.trim_end_matches(&format!("-py{}", stack.python)).to_owned();
        let spec = typed.map_or(short, |typed| typed.written().to_owned());
        Migration { spec, ..Migration::default() }
    } else {
        let matrix = &*settings.matrix;
        let target = target(&args.target, &settings.target, matrix, &*reporter(settings.output))?;
        let options = options(&args.target, &LockOptions::default(), settings);
        let question = Question {
            spec: typed,
            is_here: args.from.is_none(),
            matrix,
            machine: target.machine,
            resolve: &|spec| resolve(&spec.parse().ok()?, &target, matrix, &options).ok(),
            fits: &|spec, stack, requirements| fits(spec, stack, requirements, &options, matrix),
        };
        match decide(readings, &question) {
            Ok(found) => found,
            Err(refusal) => return refused(refusal, settings.output, &resolved),
        }
    };
    if let Err(error) = compared(&found, args, settings) {
        let said = Said { file: None, spec: Some(&found.spec), files: &found.files, rows: &found.rows };
        return told_why_not(&said, error, settings.output);
    }
    let schema = serde_json::to_string_pretty(&json_schema()).expect("a schema has text keys only");
    write_atomically(&folder.join(SCHEMA_FILE), format!("{schema}\n").as_bytes())?;
    write_atomically(&file, starter(folder.file_name().unwrap_or_default(), &found).as_bytes())?;
    let said =
        Said { file: Some(file.as_str()), spec: Some(&found.spec), files: &found.files, rows: &found.rows };
    told(&said, None, settings.output);
    if !settings.output.quiet && !settings.output.json {
        if is_default {
            Printer.say("no requirements, environment or Dockerfile found: the newest default is written");
        }
        Printer.say(&format!("next: envforge build    ({})", found.spec));
    }
    Ok(Exit::Done)
}

async fn readings(
    args: &request::Init,
    folder: &Utf8Path,
    settings: &Settings,
) -> Result<Vec<Reading>, CommandError> {
    let around = Surroundings { matrix: &settings.matrix, machine: machine(&args.target, &settings.matrix) };
    let Some(from) = &args.from else { return Ok(read_folder(folder, around)) };
    let path = folder.join(from);
    match fs_err::metadata(&path) {
        Ok(found) if found.is_dir() && path.join("oci-layout").is_file() => {
            Ok(vec![read_layout(&path, around)?])
        }
        Ok(found) if found.is_dir() => Ok(read_folder(&path, around)),
        Ok(_) if path.extension() == Some("tar") => Ok(vec![read_archive(&path, around)?]),
        Ok(_) => Ok(read_file(&path, around)),
        Err(_) if is_image_name(from.as_str()) => {
            let lazy = LazySession::of(settings);
            Ok(vec![read_image(lazy.session().await?, from.as_str(), around).await?])
        }
        Err(error) => Err(NoSuchSource { path: from.to_string(), why: reason(&error) }.into()),
    }
}

/// Whether a name, not of a file, is one of an image: with a tag or a digest.
fn is_image_name(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.contains([':', '@']) && name.parse::<ImageRef>().is_ok()
}

/// Whether packages fit a stack, as far as the matrix knows.
fn fits(
    spec: &str,
    stack: &Stack,
    requirements: &[String],
    options: &ResolveOptions,
    matrix: &Matrix,
) -> bool {
    let Ok(spec) = spec.parse() else { return false };
    unfit(CompanionRequest { spec: &spec, matrix, options, requirements, allow_source: &[] }, stack)
        .is_empty()
}

/// Compares every package that is asked for with the stack, as `build` would.
fn compared(found: &Migration, args: &request::Init, settings: &Settings) -> Result<(), CommandError> {
    let spec = SpecArgument::from(found.spec.clone());
    let stack = stack(settings, spec.checked()?, &LockOptions::default(), &args.target, None)?;
    let source = LockOptions { with: found.compared.clone(), ..LockOptions::default() };
    let wanted = wanted(Some(&spec), &ProjectOptions::default(), &source, &args.target, settings)?;
    check_companions(settings, &wanted, &stack, &settings.matrix)
}

/// Prints the table, and returns why there is no project.
fn refused(
    refusal: Refusal,
    output: Output,
    resolved: &dyn Fn(&RequestedSpec) -> Result<Stack, CommandError>,
) -> Result<Exit, CommandError> {
    let (spec, files, rows, error) = match refusal {
        Refusal::NothingUnderstood { files, rows } => {
            let what = "nothing in these files was understood".to_owned();
            let hint = hint(&rows, None);
            (None, files.clone(), rows, NotUnderstood { files, what, hint }.into())
        }
        Refusal::NoFramework { files, other, rows } => {
            let hint = hint(&rows, other.as_ref());
            let what = match other {
                Some(OtherFramework { name, package, product: None }) => {
                    format!("these files ask for {name} (`{package}`), for which envforge has no product")
                }
                Some(OtherFramework { name, package, product: Some(_) }) => {
                    format!("these files ask for {name} (`{package}`)")
                }
                None => "these files name no framework with CUDA".to_owned(),
            };
            (None, files.clone(), rows, NotUnderstood { files, what, hint }.into())
        }
        Refusal::UnknownRelease { written, origin, product, files, rows } => {
            let what = format!(
                "the variable in `{written}` ({origin}) has no value, and no other line names the version"
            );
            let hint = format!(
                "name the version yourself: `envforge init {product}:VERSION`, or give the variable a default"
            );
            (None, files.clone(), rows, NotUnderstood { files, what, hint }.into())
        }
        Refusal::Contradiction { lines, files, rows } => {
            let said = |(written, origin): &(String, Origin)| format!("{origin} says {written}");
            let what = lines.iter().map(said).collect::<Vec<_>>().join(", ");
            let hint = "keep one of these lines".to_owned();
            (None, files, rows, Contradiction { what, hint }.into())
        }
        Refusal::NoRelease { requirement, origin, files, rows } => {
            let what = format!("no release satisfies {requirement} ({origin})");
            let hint = "change the line; `envforge list --all` shows the releases".to_owned();
            (None, files, rows, Contradiction { what, hint }.into())
        }
        Refusal::OtherThanTyped { spec, written, origin, files, rows } => {
            let what = format!("you asked for {spec}; {origin} says {written}");
            let hint = "change the line, or run `envforge init` without a spec".to_owned();
            (None, files, rows, Contradiction { what, hint }.into())
        }
        Refusal::Impossible { spec, files, rows } => {
            let what = "these files contradict each other".to_owned();
            let hint = hint(&rows, None);
            let contradiction = || NotUnderstood { files: files.clone(), what, hint }.into();
            let asked = spec.parse().map_err(CommandError::from);
            let error = asked.and_then(|spec| resolved(&spec)).err().unwrap_or_else(contradiction);
            (Some(spec), files, rows, error)
        }
    };
    told_why_not(&Said { file: None, spec: spec.as_deref(), files: &files, rows: &rows }, error, output)
}

/// The next step where no framework was found: a product, or a file that was not read.
fn hint(rows: &[Row], other: Option<&OtherFramework>) -> String {
    if let Some(other) = other {
        return match other.product {
            Some(product) => format!("name its product yourself: `envforge init {product}`"),
            None => "`envforge list` shows the frameworks that envforge has images for".to_owned(),
        };
    }
    let unread = || rows.iter().filter(|row| row.why.starts_with("not read: "));
    let is_for_gpu = |row: &&Row| row.origin.file.contains("gpu") || row.origin.file.contains("cuda");
    match unread().find(is_for_gpu).or_else(|| unread().next()) {
        Some(row) => format!("name the file that is meant: `envforge init --from {}`", row.origin.file),
        None => {
            "name the framework yourself: `envforge init pytorch-cuda`; `envforge list` shows all".to_owned()
        }
    }
}

/// What is printed: where the project is, and the table.
struct Said<'a> {
    file: Option<&'a str>,
    spec: Option<&'a str>,
    files: &'a [String],
    rows: &'a [Row],
}

/// The table, and the reason behind it: one object for programs.
fn told_why_not(said: &Said<'_>, error: CommandError, output: Output) -> Result<Exit, CommandError> {
    if output.json {
        told(said, Some(error.to_string()), output);
        return Ok(Exit::No);
    }
    told(said, None, output);
    if let Some(spec) = said.spec.filter(|_| !output.quiet) {
        let verb = if said.files.len() == 1 { "asks" } else { "ask" };
        Printer.say(&format!("{} {verb} for {spec}:", said.files.join(", ")));
    }
    Err(error)
}

/// The table of what became of every line: for people on stderr, kept lines together; for programs on stdout, each.
fn told(said: &Said<'_>, error: Option<String>, output: Output) {
    let Said { file, spec, files, rows } = *said;
    if output.json {
        return Printer.json(&Report { schema: 1, file, spec, files, rows, error });
    }
    if let Some(file) = file {
        Printer.text(file);
    }
    if output.quiet || rows.is_empty() {
        return;
    }
    Printer.say(&wrapped(&table(files, rows), output.talk_width));
}

/// Lines of one kind that the table for people has; `--json` has all.
const MOST_LINES: usize = 20;

/// Entries of one line of it.
const MOST_ENTRIES: usize = 60;

/// `and 7 more: --json has all`, if some are left out.
fn more(all: usize, shown: usize) -> Option<String> {
    let left = all.checked_sub(shown).filter(|left| *left > 0)?;
    Some(format!("and {left} more: `envforge init --json` has all"))
}

fn table(files: &[String], rows: &[Row]) -> String {
    let mut text =
        format!("read: {}\n", if files.is_empty() { "nothing".to_owned() } else { files.join(", ") });
    for (change, head) in [
        (Change::Kept, "kept"),
        (Change::Changed, "changed"),
        (Change::Offered, "may be asked for"),
        (Change::NotTakenOver, "not taken over"),
    ] {
        let of_kind: Vec<_> = rows.iter().filter(|row| row.change == change).collect();
        if of_kind.is_empty() {
            continue;
        }
        text = format!("{text}{head}:\n");
        if change == Change::Kept {
            text += &kept(&of_kind);
            continue;
        }
        for row in of_kind.iter().take(MOST_LINES) {
            text += &hanging(&format!("  {}: ", row.origin), &format!("{} ({})", row.text, row.why));
        }
        if let Some(more) = more(of_kind.len(), MOST_LINES) {
            text += &hanging("  ", &more);
        }
    }
    text
}

/// What was kept: those of one reason in one line.
fn kept(rows: &[&Row]) -> String {
    let mut reasons: Vec<(&str, Vec<&Row>)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        let at = *places.entry(&row.why).or_insert(reasons.len());
        if at == reasons.len() {
            reasons.push((&row.why, Vec::new()));
        }
        reasons[at].1.push(row);
    }
    let entry = |row: &&Row| {
        if row.why.is_empty() { row.text.clone() } else { format!("{} ({})", row.text, row.origin) }
    };
    let line = |(why, of_reason): &(&str, Vec<&Row>)| {
        let is_long = why.is_empty() && of_reason.len() > MOST_LINES;
        let why = if why.is_empty() { "packages" } else { why };
        let entries = if is_long {
            counts(of_reason)
        } else {
            let shown = of_reason.iter().take(MOST_ENTRIES).map(entry);
            shown.chain(more(of_reason.len(), MOST_ENTRIES)).collect()
        };
        hanging(&format!("  {why}: "), &entries.join(", "))
    };
    let mut text: String = reasons.iter().take(MOST_LINES).map(line).collect();
    if let Some(more) = more(reasons.len(), MOST_LINES) {
        text += &hanging("  ", &more);
    }
    text
}

/// The number of packages of each file: `92 of requirements.txt`.
fn counts(rows: &[&Row]) -> Vec<String> {
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        *files.entry(&row.origin.file).or_default() += 1;
    }
    let of_file = files.into_iter().map(|(file, count)| format!("{count} of {file}"));
    of_file.chain(["`envforge init --json` has all".to_owned()]).collect()
}

/// A project file exists already.
#[derive(Debug, thiserror::Error)]
#[error("`{file}` already exists")]
struct ProjectExists {
    file: String,
}

impl Failure for ProjectExists {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["edit it, or overwrite it with `--force`".to_owned()]
    }
}

/// What `--from` names is not there.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `{path}`: {why}")]
struct NoSuchSource {
    path: String,
    why: String,
}

impl Failure for NoSuchSource {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![
            "`--from` takes a file, a directory, an image with its tag, or a file of `docker save`"
                .to_owned(),
        ]
    }
}

/// Files that are there, and say nothing that makes a project.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {}", files.join(", "))]
struct NotUnderstood {
    files: Vec<String>,
    what: String,
    hint: String,
}

impl Failure for NotUnderstood {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint.clone()]
    }
}

/// Lines that no project can meet together, or with the spec that was typed.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Contradiction {
    what: String,
    hint: String,
}

impl Failure for Contradiction {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec![self.hint.clone()]
    }
}
