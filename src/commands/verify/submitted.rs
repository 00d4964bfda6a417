//! `verify --on slurm --as-they-free DIR`: what was submitted, and how its answer is read.

use std::fmt::Write as _;

use serde::Serialize;

use crate::failure::Exit;
use crate::fleet::{Heard, Outcome, fold};
use crate::model::counted::counted;
use crate::model::image::render::shell_word;
use crate::workflow::fleet::Job;

/// What the call prints with `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Submission {
    schema: u32,
    /// The image by its digest.
    image: String,
    /// The directory of the reports.
    reports: String,
    /// The jobs that wait for their nodes.
    jobs: Vec<Job>,
    /// Nodes that have no job, each with its reason.
    not_run: Vec<NotRun>,
    #[serde(skip)]
    is_named: bool,
}

#[derive(Debug, Serialize)]
struct NotRun {
    node: String,
    why: String,
}

impl Submission {
    pub(super) fn new(
        (image, reports): (String, String),
        (jobs, others): (Vec<Job>, Vec<Heard>),
        is_named: bool,
    ) -> Self {
        let not_run = others.into_iter().filter_map(|heard| match (heard.asked, heard.outcome) {
            (Some(node), Outcome::NotRun { why }) => Some(NotRun { node, why }),
            _ => None,
        });
        Self { schema: 1, image, reports, jobs, not_run: not_run.collect(), is_named }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for NotRun { node, why } in &self.not_run {
            let _ = writeln!(text, "not run: {node}: {why}");
        }
        let count = counted(self.jobs.len(), "job");
        if self.jobs.is_empty() {
            let _ = writeln!(text, "submitted no job");
            return text;
        }
        let nodes = fold(self.jobs.iter().map(|job| job.node.as_str()));
        let _ = writeln!(
            text,
            "submitted {count} for {nodes}; `squeue --me --name=envforge-verify` shows those that wait"
        );
        let _ = writeln!(text, "their answer: envforge verify --merge {}", quoted(&self.reports));
        text
    }

    /// 3 if no job was submitted, or one that was named has none.
    pub(super) fn exit(&self) -> Exit {
        let is_short = self.jobs.is_empty() || (self.is_named && !self.not_run.is_empty());
        if is_short { Exit::Outside } else { Exit::Done }
    }
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=_-./".contains(&byte)) {
        return word.to_owned();
    }
    shell_word(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::markdown::{documented_fields, printed_fields};

    fn submission(jobs: &[&str], not_run: &[&str], is_named: bool) -> Submission {
        let others = not_run.iter().map(|node| Heard {
            asked: Some((*node).to_owned()),
            source: String::new(),
            gpus: None,
            outcome: Outcome::NotRun { why: "drained".to_owned() },
        });
        let jobs = (1..).zip(jobs).map(|(job, node)| Job { node: (*node).to_owned(), job });
        let names = ("box.test/team/torch".to_owned(), "/shared/the reports".to_owned());
        Submission::new(names, (jobs.collect(), others.collect()), is_named)
    }

    #[test]
    fn submission_has_the_documented_fields() {
        let documented =
            documented_fields("envforge verify IMAGE@sha256:… --on slurm --as-they-free reports");
        assert_eq!(printed_fields(&submission(&["node1"], &[], false)), documented);
    }

    #[test]
    fn text_names_nodes_without_a_job_first_and_the_way_to_the_answer() {
        assert_eq!(
            submission(&["node1", "node2", "node4"], &["node3"], false).text(),
            "not run: node3: drained\n\
             submitted 3 jobs for node[1-2,4]; `squeue --me --name=envforge-verify` shows those that wait\n\
             their answer: envforge verify --merge '/shared/the reports'\n"
        );
    }

    #[test]
    fn named_node_without_a_job_counts() {
        assert_eq!(submission(&["node1"], &["node3"], false).exit(), Exit::Done);
        assert_eq!(submission(&["node1"], &["node3"], true).exit(), Exit::Outside);
        assert_eq!(submission(&[], &["node3"], false).exit(), Exit::Outside);
    }
}
