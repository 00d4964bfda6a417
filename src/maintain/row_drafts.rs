//! `refresh --write`: drafts of rows for new releases, appended to the files of a folder for review.
#![expect(clippy::disallowed_methods, reason = "dates the drafts and writes the files")]

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::Utf8Path;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;

use crate::fetch::Fetcher;
use crate::maintain::refresh::{
    DraftRow, FamilyMember, IndexWheel, NewRelease, Published, Succession, Targets, draft, draft_coupled,
    draft_of_sibling, draft_of_successor, listed, metadata, newer, own_extras, relatives, targets, unlisted,
    unmeasured, upload_days,
};
use crate::model::address::Address;
use crate::model::bounded::read_text_bounded;
use crate::model::compat::Matrix;
use crate::model::compat::coupled::CoupledRelease;
use crate::model::compat::tables::{Channel, Variant};
use crate::model::versions::{FrameworkVersion, Machine};
use crate::packages::ToolOutput;
use crate::report::{Event, Reporter};
use crate::workflow::error::CommandError;

/// More than any page of an index.
pub(crate) const PAGE_LIMIT: u64 = 64 << 20;
/// The most of a file of rows, bytes: the largest has 200 kilobytes.
const LARGEST_FILE: u64 = 64 << 20;

/// More packages than carry one release.
const FAMILY: usize = 8;
/// Releases read at a time.
const PARALLEL: usize = 3;

/// Writes drafts into a folder of compat files.
pub(crate) struct RowDrafts<'a> {
    /// The rows, with those that were drafted before.
    pub(crate) matrix: &'a Matrix,
    pub(crate) fetcher: &'a Fetcher,
    /// The default index.
    pub(crate) index: &'a Address,
    pub(crate) folder: &'a Utf8Path,
    pub(crate) reporter: &'a dyn Reporter,
}

/// A new release for one processor that follows a row.
struct Follower<'a> {
    package: &'a str,
    version: &'a FrameworkVersion,
    released: Option<&'a str>,
    before: &'a Variant,
}

/// What was written of one row.
pub(crate) struct WrittenRow {
    /// `torch 2.99.0 cu132 for x86_64`.
    pub(crate) title: String,
    /// Its file.
    pub(crate) file: String,
    /// Required fields that nothing says: with any, the row is a comment.
    pub(crate) lacks: Vec<&'static str>,
}

impl RowDrafts<'_> {
    /// Returns the drafts of a package's new releases. An index that lacks releases of the matrix gave half an answer: there are none from
    /// it.
    pub(crate) async fn of_package(
        &self,
        package: &str,
        rows: &[&Variant],
        published: &[Published],
    ) -> Vec<DraftRow> {
        let Some(framework) = rows.first().map(|row| row.framework.as_str()) else { return Vec::new() };
        let listed = |row: &&&Variant| {
            let version = row.version.to_string();
            published.iter().any(|one| one.wheel.name.version == version)
        };
        let known: Vec<_> =
            rows.iter().filter(|row| row.verified && row.channel == Channel::Default).collect();
        let missing = known.iter().filter(|row| !listed(row)).count();
        if missing > 0 {
            let text = format!(
                "the index lacks {missing} of {} known builds of `{package}`: no rows are written from it",
                known.len()
            );
            self.warn(text);
            return Vec::new();
        }
        let mut new: BTreeMap<FrameworkVersion, Vec<&Published>> = BTreeMap::new();
        for one in published.iter().filter(|one| !one.wheel.yanked) {
            if let Some(version) = newer(&one.wheel, rows) {
                new.entry(version).or_default().push(one);
            }
        }
        new.retain(|version, _| !self.matrix.known_versions_of(framework).any(|row| row.covers(version)));
        let unlisted = unlisted(self.matrix, package, rows, published);
        let nothing = new.is_empty() && unlisted.is_empty();
        let days = if nothing { BTreeMap::new() } else { self.days(package).await };
        let mut drafts = Vec::new();
        let mut followers = Vec::new();
        for (version, wheels) in &new {
            let released = first_day(&days, wheels);
            for machine in [Machine::X86_64, Machine::Aarch64] {
                let before = rows_before(rows, machine);
                if before.is_empty() {
                    let targets = None;
                    let release =
                        NewRelease { framework, package, version, machine, wheels, released, targets };
                    drafts.extend(self.drafted(release, None).await);
                }
                followers.extend(before.into_iter().map(|before| Follower {
                    package,
                    version,
                    released,
                    before,
                }));
            }
        }
        let following = stream::iter(&followers).map(|one| self.following(one)).buffered(PARALLEL);
        drafts.extend(following.collect::<Vec<_>>().await.into_iter().flatten());
        for ((version, machine), wheels) in &unlisted {
            let (released, machine, targets) = (first_day(&days, wheels), *machine, None);
            let sibling = rows.iter().find(|row| row.version == *version).copied();
            let release = NewRelease { framework, package, version, machine, wheels, released, targets };
            drafts.extend(self.drafted(release, sibling).await);
        }
        drafts
    }

    /// Returns the drafts of new releases of a coupled package, whose page this is.
    pub(crate) async fn of_coupled(
        &self,
        package: &str,
        rows: &[&CoupledRelease],
        page: &str,
    ) -> Vec<DraftRow> {
        let newest = rows.iter().flat_map(|row| &row.versions).max();
        let before = rows.iter().copied().max_by_key(|row| row.versions.iter().max());
        let all = listed(page, &self.page(package));
        let known =
            |version: &&FrameworkVersion| all.iter().any(|wheel| wheel.name.version == version.to_string());
        let missing = rows.iter().flat_map(|row| &row.versions).filter(|version| !known(version)).count();
        if missing > 0 {
            self.warn(format!(
                "the index lacks {missing} known releases of `{package}`: no rows are written from it"
            ));
            return Vec::new();
        }
        let mut new: BTreeMap<FrameworkVersion, Vec<Published>> = BTreeMap::new();
        for wheel in all.into_iter().filter(|wheel| !wheel.yanked) {
            let version: Option<FrameworkVersion> = wheel.name.version.parse().ok();
            if let Some(version) = version.filter(|version| newest.is_some_and(|newest| version > newest)) {
                new.entry(version).or_default().push(Published { wheel, metadata: None });
            }
        }
        let days = if new.is_empty() { BTreeMap::new() } else { self.days(package).await };
        let mut drafts = Vec::new();
        for (version, wheels) in &mut new {
            // The requirement does not depend on Python or processor.
            let is_for_linux = |one: &&mut Published| {
                one.wheel.name.machines().next().is_some() || one.wheel.name.platform_tag() == "any"
            };
            if let Some(one) = wheels.iter_mut().find(is_for_linux) {
                one.metadata = metadata(self.fetcher, &one.wheel).await.ok();
            }
            let wheels: Vec<_> = wheels.iter().collect();
            let day = first_day(&days, &wheels);
            let row = before
                .and_then(|before| draft_coupled(package, version, &wheels, day, (before, self.matrix)));
            drafts.extend(row);
        }
        drafts
    }

    /// The upload days of a package's files.
    async fn days(&self, package: &str) -> BTreeMap<String, String> {
        upload_days(self.fetcher, &self.page(package), PAGE_LIMIT).await
    }

    fn page(&self, package: &str) -> Address {
        self.index.join(&format!("{package}/"))
    }

    /// Returns the row of a release with the GPU code of its libraries, where they can be read.
    async fn drafted(&self, release: NewRelease<'_>, sibling: Option<&Variant>) -> Option<DraftRow> {
        let machine = release.machine.to_string();
        let of_machine = |one: &&&Published| one.wheel.name.machines().any(|name| name == machine);
        let first = release.wheels.iter().find(of_machine)?;
        let measured = match targets(self.fetcher, &first.wheel).await {
            Ok(targets) => Some(targets),
            Err(why) => {
                let why = ToolOutput::of(&why);
                let text = format!("cannot read the GPU architectures of {}: {why}", first.wheel.file);
                self.warn(text);
                None
            }
        };
        let release = NewRelease { targets: measured.as_ref(), ..release };
        match sibling {
            Some(sibling) => draft_of_sibling(self.matrix, &release, sibling),
            None => draft(self.matrix, &release),
        }
    }

    /// Returns the row of a release that follows another one; `None` without a wheel for its processor.
    async fn following(&self, one: &Follower<'_>) -> Option<DraftRow> {
        let Follower { package, version, released, before } = *one;
        let machine = before.machine;
        let family = self.family(package, version, before).await?;
        let family_before = self.family(package, &before.version, before).await.unwrap_or_default();
        let targets = self.code(&family, machine).await;
        let succession = Succession {
            version,
            machine,
            released,
            family: &family,
            targets: targets.as_ref(),
            before,
            family_before: &family_before,
        };
        draft_of_successor(self.matrix, &succession)
    }

    /// Returns the packages that carry a release on the processor of a row, the framework's own first.
    async fn family(
        &self,
        package: &str,
        version: &FrameworkVersion,
        row: &Variant,
    ) -> Option<Vec<FamilyMember>> {
        let mut wanted = vec![(package.to_owned(), own_extras(row))];
        let mut members: Vec<FamilyMember> = Vec::new();
        while let Some((name, extras)) = wanted.pop() {
            if members.len() == FAMILY || members.iter().any(|member| member.package == name) {
                continue;
            }
            let Some(member) = self.member(&name, version, row.machine, extras).await else { continue };
            wanted.extend(relatives(&member, package, version, row.machine));
            members.push(member);
        }
        members.first().is_some_and(|member| member.package == package).then_some(members)
    }

    /// Returns a package's wheels of a release that a processor can load, with METADATA of one.
    async fn member(
        &self,
        package: &str,
        version: &FrameworkVersion,
        machine: Machine,
        extras: Vec<String>,
    ) -> Option<FamilyMember> {
        let address = self.page(package);
        let page = self.fetcher.document(&address, PAGE_LIMIT).await.ok()?;
        let page = String::from_utf8_lossy(&page).into_owned();
        let name = machine.to_string();
        let loads = |wheel: &IndexWheel| {
            let is_for_it =
                wheel.name.machines().any(|one| one == name) || wheel.name.platform_tag() == "any";
            is_for_it && !wheel.yanked
        };
        let all: Vec<_> = listed(&page, &address).into_iter().filter(loads).collect();
        let carried = carried(&all, version)?;
        let wheels: Vec<_> = all.into_iter().filter(|wheel| wheel.name.version == carried).collect();
        match metadata(self.fetcher, wheels.first()?).await {
            Ok(metadata) => Some(FamilyMember { package: package.to_owned(), wheels, metadata, extras }),
            Err(why) => {
                let why = ToolOutput::of(&why);
                self.warn(format!("cannot read the metadata of {package} {carried}: {why}"));
                None
            }
        }
    }

    /// Returns the GPU code of a release: of its own package, or of the first other one of its name that has any.
    async fn code(&self, family: &[FamilyMember], machine: Machine) -> Option<Targets> {
        let name = machine.to_string();
        let own = family.first()?;
        let mut order: Vec<_> = family.iter().collect();
        order.sort_by_key(|member| {
            let package = member.package.as_str();
            (package != own.package, package != format!("lib{}", own.package), !package.ends_with("-pjrt"))
        });
        let mut reasons = Vec::new();
        for member in order {
            let Some(wheel) = member.wheels.iter().find(|one| one.name.machines().any(|of| of == name))
            else {
                continue;
            };
            match targets(self.fetcher, wheel).await {
                Ok(targets) => return Some(targets),
                Err(why) => reasons.push(format!("{}: {}", wheel.file, ToolOutput::of(&why))),
            }
        }
        if !reasons.is_empty() {
            self.warn(format!("cannot read the GPU architectures of {}", reasons.join("; ")));
        }
        None
    }

    /// Appends the drafts to the files of that name, those that they do not have yet, and returns these. Every file is read before the first
    /// one is written.
    pub(crate) fn write(
        &self,
        drafts: &BTreeMap<&str, Vec<DraftRow>>,
    ) -> Result<Vec<WrittenRow>, CommandError> {
        let day = Timestamp::now().strftime("%Y-%m-%d").to_string();
        let mut written = Vec::new();
        let mut additions = Vec::new();
        for (name, rows) in drafts.iter().filter(|(_, rows)| !rows.is_empty()) {
            let path = self.folder.join(format!("{name}.toml"));
            // A folder without the file is not a folder of compat files: nothing is made there.
            let mut file = fs_err::OpenOptions::new().read(true).append(true).open(&path)?;
            let text = read_text_bounded(&mut file, LARGEST_FILE)?;
            let (known, new): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.is_in(&text));
            additions.push((path, file, known, new));
        }
        for (path, mut file, known, new) in additions {
            let text: String = new.iter().map(|row| row.text(&day)).collect();
            file.write_all(text.as_bytes())?;
            if !new.is_empty() {
                self.note(format!("{} drafts for review in {path}", new.len()));
            }
            written.extend(new.iter().map(|row| WrittenRow {
                title: row.title.clone(),
                file: path.to_string(),
                lacks: row.unknown.clone(),
            }));
            if !known.is_empty() {
                let titles: Vec<_> = known.iter().map(|row| row.title.as_str()).collect();
                self.note(format!("already drafted in {path}: {}", titles.join(", ")));
            }
        }
        Ok(written)
    }

    fn warn(&self, text: String) {
        self.reporter.report(Event::Warning { text });
    }

    fn note(&self, text: String) {
        self.reporter.report(Event::Note { text });
    }
}

/// The rows of the newest release for a processor, one for each CUDA.
fn rows_before<'a>(rows: &[&'a Variant], machine: Machine) -> Vec<&'a Variant> {
    let of_machine = rows.iter().copied().filter(|row| row.machine == machine && row.verified);
    let newest = of_machine.clone().map(|row| &row.version).max();
    of_machine.filter(|row| Some(&row.version) == newest).collect()
}

/// The version of a package that a release of its family has: the same, or the newest of its line.
fn carried(wheels: &[IndexWheel], version: &FrameworkVersion) -> Option<String> {
    let own = version.to_string();
    if wheels.iter().any(|wheel| wheel.name.version == own) {
        return Some(own);
    }
    let line = |one: &FrameworkVersion| (one.major(), one.minor()) == (version.major(), version.minor());
    let all = wheels.iter().filter_map(|wheel| wheel.name.version.parse::<FrameworkVersion>().ok());
    all.filter(line).max().map(|one| one.to_string())
}

/// Returns rows of the cuDNN and NCCL that drafted variants are the first to have, by library.
pub(crate) fn libraries(matrix: &Matrix, drafts: &[DraftRow]) -> Vec<(&'static str, DraftRow)> {
    let mut all: Vec<(&'static str, DraftRow)> = Vec::new();
    for row in drafts.iter().filter_map(DraftRow::variant).flat_map(|one| unmeasured(matrix, &one)) {
        let file = if row.title.starts_with("cudnn ") { "cudnn" } else { "nccl" };
        if all.iter().all(|(_, other)| other.title != row.title) {
            all.push((file, row));
        }
    }
    all
}

/// The first day on which one of the wheels was uploaded.
fn first_day<'a>(days: &'a BTreeMap<String, String>, wheels: &[&Published]) -> Option<&'a str> {
    wheels.iter().filter_map(|one| days.get(&one.wheel.file)).min().map(String::as_str)
}
