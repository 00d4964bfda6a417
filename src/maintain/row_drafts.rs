//! `refresh --write`: drafts of rows for new releases, appended to the files of a folder for review.
#![expect(clippy::disallowed_methods, reason = "dates the drafts and writes the files")]

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::Utf8Path;
use jiff::Timestamp;

use crate::fetch::Fetcher;
use crate::maintain::refresh::{
    DraftRow, NewRelease, Published, draft, draft_coupled, draft_of_sibling, listed, metadata, newer,
    targets, unlisted, upload_days,
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

/// Writes drafts into a folder of compat files.
pub(crate) struct RowDrafts<'a> {
    pub(crate) fetcher: &'a Fetcher,
    /// The default index.
    pub(crate) index: &'a Address,
    pub(crate) folder: &'a Utf8Path,
    pub(crate) reporter: &'a dyn Reporter,
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
        let matrix = Matrix::current();
        let unlisted = unlisted(matrix, package, rows, published);
        let mut drafts = Vec::new();
        let nothing = new.is_empty() && unlisted.is_empty();
        let days = if nothing { BTreeMap::new() } else { self.days(package).await };
        for (version, wheels) in &new {
            let released = first_day(&days, wheels);
            for machine in [Machine::X86_64, Machine::Aarch64] {
                let targets = None;
                let release = NewRelease { framework, package, version, machine, wheels, released, targets };
                drafts.extend(self.drafted(release, None).await);
            }
        }
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
            if let Some(one) = wheels.iter_mut().find(|one| one.wheel.name.machines().next().is_some()) {
                one.metadata = metadata(self.fetcher, &one.wheel).await.ok();
            }
            let wheels: Vec<_> = wheels.iter().collect();
            drafts.extend(draft_coupled(package, version, &wheels, first_day(&days, &wheels)));
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
            Some(sibling) => draft_of_sibling(Matrix::current(), &release, sibling),
            None => draft(Matrix::current(), &release),
        }
    }

    /// Appends the drafts to the files of that name, those that they do not have yet. Every file is read before the first one is written.
    pub(crate) fn write(&self, drafts: &BTreeMap<&str, Vec<DraftRow>>) -> Result<(), CommandError> {
        let day = Timestamp::now().strftime("%Y-%m-%d").to_string();
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
            if !known.is_empty() {
                let titles: Vec<_> = known.iter().map(|row| row.title.as_str()).collect();
                self.note(format!("already drafted in {path}: {}", titles.join(", ")));
            }
        }
        Ok(())
    }

    fn warn(&self, text: String) {
        self.reporter.report(Event::Warning { text });
    }

    fn note(&self, text: String) {
        self.reporter.report(Event::Note { text });
    }
}

/// The first day on which one of the wheels was uploaded.
fn first_day<'a>(days: &'a BTreeMap<String, String>, wheels: &[&Published]) -> Option<&'a str> {
    wheels.iter().filter_map(|one| days.get(&one.wheel.file)).min().map(String::as_str)
}
