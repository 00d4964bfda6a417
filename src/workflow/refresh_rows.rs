//! `compat refresh --write`: drafts of rows for new releases, appended to the files of a folder for review.
#![expect(clippy::disallowed_methods, reason = "dates the drafts and writes the files")]

use std::collections::BTreeMap;
use std::io::Write as _;

use camino::Utf8Path;
use jiff::Timestamp;

use crate::fetch::Fetcher;
use crate::model::bounded::read_text_bounded;
use crate::model::compat::Matrix;
use crate::model::compat::tables::{Channel, Variant};
use crate::model::versions::{FrameworkVersion, Machine};
use crate::packages::ToolOutput;
use crate::refresh::{DraftRow, NewRelease, Published, draft, newer, targets};
use crate::report::{Event, Reporter};
use crate::workflow::error::CommandError;

/// The most of a file of rows, bytes: the largest has 200 kilobytes.
const LARGEST_FILE: u64 = 64 << 20;

/// Writes drafts into a folder of compat files.
pub(crate) struct RowDrafts<'a> {
    pub(crate) fetcher: &'a Fetcher,
    pub(crate) folder: &'a Utf8Path,
    pub(crate) reporter: &'a dyn Reporter,
}

impl RowDrafts<'_> {
    /// Appends the drafts of a package's new releases to its framework's file; returns the number of those it did not have. An index that lacks
    /// releases of the matrix gave half an answer: nothing is written from it.
    pub(crate) async fn append(
        &self,
        package: &str,
        rows: &[&Variant],
        published: &[Published],
    ) -> Result<usize, CommandError> {
        let Some(framework) = rows.first().map(|row| row.framework.as_str()) else { return Ok(0) };
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
            self.reporter.report(Event::Warning { text });
            return Ok(0);
        }
        let mut new: BTreeMap<FrameworkVersion, Vec<&Published>> = BTreeMap::new();
        for one in published.iter().filter(|one| !one.wheel.yanked) {
            if let Some(version) = newer(&one.wheel, rows) {
                new.entry(version).or_default().push(one);
            }
        }
        let mut drafts = Vec::new();
        for (version, wheels) in &new {
            for machine in [Machine::X86_64, Machine::Aarch64] {
                let release = NewRelease { framework, package, version, machine, wheels, targets: None };
                drafts.extend(self.drafted(release).await);
            }
        }
        self.write(framework, &drafts)
    }

    /// Returns the row of a release with the GPU code of its libraries, where they can be read.
    async fn drafted(&self, release: NewRelease<'_>) -> Option<DraftRow> {
        let machine = release.machine.to_string();
        let of_machine = |one: &&&Published| one.wheel.name.machines().any(|name| name == machine);
        let first = release.wheels.iter().find(of_machine)?;
        let measured = match targets(self.fetcher, &first.wheel).await {
            Ok(targets) => Some(targets),
            Err(why) => {
                let why = ToolOutput::of(&why);
                let text = format!("cannot read the GPU architectures of {}: {why}", first.wheel.file);
                self.reporter.report(Event::Warning { text });
                None
            }
        };
        draft(Matrix::current(), &NewRelease { targets: measured.as_ref(), ..release })
    }

    /// Appends the drafts that the file does not have yet; returns their number.
    fn write(&self, framework: &str, drafts: &[DraftRow]) -> Result<usize, CommandError> {
        if drafts.is_empty() {
            return Ok(0);
        }
        let day = Timestamp::now().strftime("%Y-%m-%d").to_string();
        let path = self.folder.join(format!("{framework}.toml"));
        // A folder without the file is not a folder of compat files: nothing is made there.
        let mut file = fs_err::OpenOptions::new().read(true).append(true).open(&path)?;
        let text = read_text_bounded(&mut file, LARGEST_FILE)?;
        let (known, new): (Vec<_>, Vec<_>) = drafts.iter().partition(|row| row.is_in(&text));
        for row in &new {
            file.write_all(row.text(&day).as_bytes())?;
        }
        if !new.is_empty() {
            self.note(format!("{} drafts for review in {path}", new.len()));
        }
        if !known.is_empty() {
            let titles: Vec<_> = known.iter().map(|row| row.title.as_str()).collect();
            self.note(format!("already drafted in {path}: {}", titles.join(", ")));
        }
        Ok(new.len())
    }

    fn note(&self, text: String) {
        self.reporter.report(Event::Note { text });
    }
}
