//! Nodes of a Slurm cluster: `sinfo` says which are idle, one `srun` asks them all.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::error::{FleetError, RETRIES};
use super::limits::{Limits, PROBE};
use super::node_job::{Asked, Deadline, Ended, Screen, run};
use super::processes::Processes;
use crate::fleet::{
    Askable, Heard, NodeLine, NodeLog, NodeReport, Outcome, Progress, SINFO_FORMAT, Selection, SlurmNode,
    Stage, fold, idle_groups, read_sinfo, select, unfold,
};
use crate::host::async_child;
use crate::model::visible::visible_line_within;
use crate::report::{Event, NullReporter, Reporter};

/// The name of every job.
pub(super) const JOB: &str = "envforge-verify";
/// How long `sinfo`, `squeue` and `sbatch` may take.
pub(super) const ANSWER: Duration = Duration::from_mins(1);
/// Seconds after which a job that does not start is refused: its nodes were idle a moment ago.
const IMMEDIATE: u32 = 15;
/// Jobs of one node each at one time: every one has three pipes.
const ALONE: usize = 64;
/// Lines that wait to be read.
const WAITING: usize = 1_000;
/// Words of the lines that name why Slurm's machines refuse each other. Those after them say only that the call failed.
const AUTHENTICATION: [&str; 3] = ["Munge encode failed", "Munge decode failed", "authentication error"];

/// What a node was heard to say, before it has a verdict.
pub(crate) struct Answer {
    /// Its name.
    pub(crate) node: String,
    /// How many GPUs its scheduler says that it has.
    pub(crate) gpus: Option<usize>,
    /// The report, if there is one.
    pub(crate) report: Result<Box<NodeReport>, Outcome>,
}

/// Asks nodes of the cluster: all, those of a partition, or those of a list. Returns the answers, what is known of nodes that were
/// not asked, and whether the nodes were named one by one.
pub(crate) async fn ask_slurm(
    wanted: Option<&str>,
    needs_gpu: bool,
    asked: &Asked<'_>,
) -> Result<(Vec<Answer>, Vec<Heard>, bool), FleetError> {
    let Selection { idle, others, is_named } = selection(wanted, needs_gpu, (asked.words, false)).await?;
    asked.reporter.report(Event::Note { text: format!("asking {} (job {JOB})", described(&idle)) });
    for node in &idle {
        asked.note(&node.name, Progress::Waits);
    }
    let processes = Arc::new(Processes::default());
    // A limit holds for nodes, so each has a job of its own.
    let (groups, at_once) = match asked.parallel {
        Some(parallel) => {
            let is_fetched = parallel < idle.len() && asked.launcher.fetches;
            let idle = if is_fetched { ready_first(idle, asked, &processes).await } else { idle };
            (idle.into_iter().map(|node| vec![node]).collect(), parallel.max(1))
        }
        None => (idle_groups(&idle, usize::MAX), Semaphore::MAX_PERMITS),
    };
    let gate = Semaphore::new(at_once);
    let jobs = groups.into_iter().map(async |nodes| {
        let _turn = gate.acquire().await;
        one_job(&nodes, asked, &processes).await
    });
    let mut answers = Vec::new();
    for result in futures_util::future::join_all(jobs).await {
        answers.extend(result?);
    }
    processes.cancel_jobs();
    Ok((answers, others, is_named))
}

/// The nodes, those first that have the image: no other waits for one that fetches it. Where Slurm refuses to ask them the order stays.
async fn ready_first(idle: Vec<SlurmNode>, asked: &Asked<'_>, processes: &Arc<Processes>) -> Vec<SlurmNode> {
    let (launcher, reporter) = (asked.launcher.probe(), Arc::new(NullReporter) as Arc<dyn Reporter>);
    let (words, screen) = (asked.words, Screen::default());
    let probe =
        Asked { launcher: &launcher, limits: PROBE, words, parallel: None, reporter: &reporter, screen };
    let mut ready = BTreeSet::new();
    // No more nodes at one time than were allowed.
    for nodes in idle_groups(&idle, asked.parallel.unwrap_or(usize::MAX)) {
        let mut job = Job::new(&nodes);
        drop(job.run(&probe, processes).await);
        ready.extend(job.ready());
    }
    let (mut first, then): (Vec<_>, Vec<_>) = idle.into_iter().partition(|node| ready.contains(&node.name));
    first.extend(then);
    first
}

/// The nodes that can be asked, those in use too if `busy`.
pub(super) async fn selection(
    wanted: Option<&str>,
    needs_gpu: bool,
    (words, busy): (&[String], bool),
) -> Result<Selection, FleetError> {
    let reserved = words.iter().any(|word| word.starts_with("--reservation"));
    let args = ["--noheader", "--Node", "--format", SINFO_FORMAT];
    let output = answer_of("sinfo", &args).await?;
    let selection = select(read_sinfo(&output), wanted, needs_gpu, Askable { busy, reserved })?;
    if selection.idle.is_empty() && selection.others.is_empty() {
        return Err(FleetError::NoNode { within: wanted.map(str::to_owned) });
    }
    Ok(selection)
}

fn described(idle: &[SlurmNode]) -> String {
    if idle.is_empty() {
        return "no node: none is idle".to_owned();
    }
    visible_line_within(&fold(idle.iter().map(|node| node.name.as_str())), 100)
}

/// The output of a program of Slurm.
async fn answer_of(program: &'static str, args: &[&str]) -> Result<String, FleetError> {
    let mut command = async_child(program);
    command.args(args).stdin(std::process::Stdio::null());
    output_of((program, command)).await
}

/// A program of Slurm failed with that on its standard error.
pub(super) fn failed_with(program: &'static str, errors: &str) -> FleetError {
    let text = match cause(program, errors) {
        "" => "it printed nothing",
        text => text,
    };
    FleetError::Scheduler { program, text: visible_line_within(text, 300) }
}

/// The line of a program's errors that says most, without the program's name: one that names a refused message, else the last.
pub(super) fn cause<'a>(program: &str, errors: &'a str) -> &'a str {
    let named = AUTHENTICATION.iter().find_map(|words| errors.lines().find(|line| line.contains(words)));
    let line = named.or_else(|| errors.lines().rfind(|line| !line.trim().is_empty()));
    without_prefix(program, line.unwrap_or_default())
}

/// A program of Slurm gave no answer in time.
pub(super) fn without_answer(program: &'static str) -> FleetError {
    FleetError::Scheduler { program, text: format!("no answer within {} s", ANSWER.as_secs()) }
}

/// The output of a program of Slurm.
async fn output_of((program, mut command): (&'static str, Command)) -> Result<String, FleetError> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let failed = |cause| FleetError::Program { program, cause };
    let child = command.spawn().map_err(failed)?;
    let output = tokio::time::timeout(ANSWER, child.wait_with_output())
        .await
        .map_err(|_| without_answer(program))?
        .map_err(failed)?;
    if !output.status.success() {
        return Err(failed_with(program, &String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Asks nodes in one job; if Slurm refuses it, each node in a job of its own.
async fn one_job(
    nodes: &[SlurmNode],
    asked: &Asked<'_>,
    processes: &Arc<Processes>,
) -> Result<Vec<Answer>, FleetError> {
    let mut job = Job::new(nodes);
    let ended = job.run(asked, processes).await?;
    // A refused message is refused for each node, too; and after the deadline none is asked.
    let is_of_all = ended.is_late || AUTHENTICATION.iter().any(|words| ended.errors.contains(words));
    if job.was_refused(&ended) && nodes.len() > 1 && !is_of_all {
        tracing::debug!(error = ended.last_error(), "the job was refused: one job for each node");
        let gate = Semaphore::new(ALONE);
        let single = nodes.iter().map(async |node| {
            let _turn = gate.acquire().await;
            let mut job = Job::new(std::slice::from_ref(node));
            let ended = job.run(asked, processes).await?;
            Ok::<_, FleetError>(job.answers(&ended, asked))
        });
        let mut answers = Vec::new();
        for result in futures_util::future::join_all(single).await {
            answers.extend(result?);
        }
        return Ok(answers);
    }
    Ok(job.answers(&ended, asked))
}

/// One `srun`.
struct Job<'a> {
    nodes: &'a [SlurmNode],
    log: NodeLog,
    /// The node of each rank, as Slurm gave them out.
    order: Option<Vec<String>>,
    stages: BTreeMap<usize, (Stage, Instant)>,
    reports: BTreeMap<usize, Box<NodeReport>>,
    damaged: BTreeMap<usize, &'static str>,
}

impl<'a> Job<'a> {
    fn new(nodes: &'a [SlurmNode]) -> Self {
        Self {
            nodes,
            log: NodeLog::default(),
            order: (nodes.len() == 1).then(|| vec![nodes[0].name.clone()]),
            stages: BTreeMap::new(),
            reports: BTreeMap::new(),
            damaged: BTreeMap::new(),
        }
    }

    fn command(&self, asked: &Asked<'_>) -> Command {
        let mut command = async_child("srun");
        let minutes = asked.limits.minutes();
        let names = fold(self.nodes.iter().map(|node| node.name.as_str()));
        command.args([
            format!("--job-name={JOB}"),
            format!("--nodelist={names}"),
            format!("--nodes={}", self.nodes.len()),
            format!("--ntasks={}", self.nodes.len()),
            format!("--partition={}", self.nodes[0].partition),
            format!("--time={minutes}"),
            format!("--immediate={IMMEDIATE}"),
        ]);
        if self.nodes[0].gpus > 0 {
            command.arg(format!("--gpus-per-node={}", self.nodes[0].gpus));
        }
        command.args([
            "--ntasks-per-node=1",
            "--exclusive",
            "--mem=0",
            "--chdir=/",
            "--cpu-bind=none",
            "--mpi=none",
        ]);
        command.args(["--label", "--input=all", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"]);
        // What a site needs comes last and counts.
        command.args(asked.words).args(["bash", "-s"]);
        // Inside of a job `srun` would start a step of it.
        outside_of_a_job(&mut command);
        command
    }

    async fn run(&mut self, asked: &Asked<'_>, processes: &Arc<Processes>) -> Result<Ended, FleetError> {
        let (sender, mut lines) = mpsc::channel(WAITING);
        let command = self.command(asked);
        let input = asked.launcher.input.clone();
        let began = Instant::now();
        for node in self.nodes {
            asked.note(&node.name, Progress::Asked);
        }
        let deadline = Deadline::after(asked.limits.whole());
        let process = run(("srun", command), input, &deadline, processes, sender);
        let listen = async {
            while let Some(line) = lines.recv().await {
                for (rank, line) in self.log.push(&line) {
                    self.hear(rank, line, asked, processes).await;
                    deadline.move_to(self.until(began, asked.limits));
                }
            }
        };
        let (ended, ()) = tokio::join!(process, listen);
        for (rank, line) in std::mem::take(&mut self.log).finish() {
            self.hear(rank, line, asked, processes).await;
        }
        ended
    }

    async fn hear(&mut self, rank: Option<usize>, line: NodeLine, asked: &Asked<'_>, processes: &Processes) {
        let Some(rank) = rank.filter(|rank| *rank < self.nodes.len()) else { return };
        let place = match &line {
            NodeLine::Stage(place, _) | NodeLine::Damaged { place, .. } => place,
            NodeLine::Report(report) => &report.place,
        };
        // A line of another call is not about this one.
        if place.nonce != asked.launcher.nonce {
            return;
        }
        processes.add_job(&place.job);
        if self.order.is_none() {
            self.order = Some(order_of(&place.job, self.nodes).await);
        }
        match line {
            // A node that begins again and again would hold the call for ever.
            NodeLine::Stage(_, stage) if self.stages.get(&rank).is_some_and(|(known, _)| stage <= *known) => {
            }
            NodeLine::Stage(_, stage) => {
                self.stages.insert(rank, (stage, Instant::now()));
                asked.note(self.node(rank), Progress::At(stage));
            }
            NodeLine::Report(report) => {
                asked.note(self.node(rank), Progress::Reported);
                self.stages.insert(rank, (Stage::End, Instant::now()));
                self.reports.insert(rank, report);
            }
            NodeLine::Damaged { why, .. } => {
                self.damaged.insert(rank, why);
            }
        }
    }

    /// When the last node must have given its report: one that died holds the others no longer than its stage may take.
    fn until(&self, began: Instant, limits: Limits) -> Instant {
        let ends = (0..self.nodes.len()).map(|rank| match self.stages.get(&rank) {
            Some((stage, since)) => *since + limits.of(*stage),
            None => began + limits.whole(),
        });
        ends.max().unwrap_or(began)
    }

    /// The nodes that would run the checks next.
    fn ready(&self) -> Vec<String> {
        let ready = self.stages.iter().filter(|(_, (stage, _))| *stage == Stage::Check);
        ready.map(|(rank, _)| self.node(*rank).to_owned()).collect()
    }

    fn node(&self, rank: usize) -> &str {
        let name = self.order.as_ref().and_then(|order| order.get(rank));
        name.map_or(self.nodes[rank].name.as_str(), String::as_str)
    }

    /// Whether no node was asked: Slurm gave out no job.
    fn was_refused(&self, ended: &Ended) -> bool {
        let is_given_up = if ended.is_late { ended.errors.contains(RETRIES) } else { ended.code != Some(0) };
        is_given_up && self.stages.is_empty() && self.reports.is_empty()
    }

    fn answers(mut self, ended: &Ended, asked: &Asked<'_>) -> Vec<Answer> {
        let was_refused = self.was_refused(ended);
        let mut answers = Vec::new();
        for rank in 0..self.nodes.len() {
            let node = self.node(rank).to_owned();
            let report = match self.reports.remove(&rank) {
                Some(report) => Ok(report),
                None if was_refused => Err(Outcome::NotRun { why: refusal(ended) }),
                None => {
                    let why = match self.damaged.get(&rank) {
                        Some(why) => format!("damaged report: {why}"),
                        None => error_of(&node, rank, ended),
                    };
                    let stage = self.stages.get(&rank).map(|(stage, _)| *stage);
                    Err(Outcome::Silent { stage, why })
                }
            };
            // One that gave its report stays with it.
            asked.note(&node, Progress::Silent);
            let gpus = Some(self.nodes[rank].gpus);
            answers.push(Answer { node, gpus, report });
        }
        answers
    }
}

/// Removes what says that a program runs in a job.
pub(super) fn outside_of_a_job(command: &mut Command) {
    for name in ["SLURM_JOB_ID", "SLURM_JOBID", "SLURM_STEP_ID", "SLURM_NODELIST", "SLURM_JOB_NODELIST"] {
        command.env_remove(name);
    }
}

fn without_prefix<'a>(program: &str, line: &'a str) -> &'a str {
    let line = line.trim();
    let line = line.strip_prefix(program).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line);
    line.strip_prefix("error: ").unwrap_or(line)
}

fn refusal(ended: &Ended) -> String {
    match cause("srun", &ended.errors) {
        "" => "srun ended without a word".to_owned(),
        text => text.strip_prefix("Unable to allocate resources: ").unwrap_or(text).to_owned(),
    }
}

/// What srun says of a node that gave no report.
fn error_of(node: &str, rank: usize, ended: &Ended) -> String {
    let names = |line: &&str| {
        let mut words =
            line.split(|character: char| !(character.is_ascii_alphanumeric() || "._-".contains(character)));
        words.any(|word| word == node) || line.contains(&format!("task {rank}:"))
    };
    let lines = ended.errors.lines().map(|line| without_prefix("srun", line));
    let lines: Vec<&str> = lines.filter(names).collect();
    match lines.last() {
        Some(line) => (*line).to_owned(),
        None if ended.is_late => "no answer before the deadline".to_owned(),
        None => "it ended without a report".to_owned(),
    }
}

/// The nodes of a job by rank: Slurm has an order of its own, whatever was asked for.
async fn order_of(job: &str, nodes: &[SlurmNode]) -> Vec<String> {
    let given = || nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    let Ok(list) = answer_of("squeue", &["--noheader", "--format=%N", "--states=all", "--jobs", job]).await
    else {
        return given();
    };
    let order = unfold(list.trim()).unwrap_or_default();
    let (mut have, mut want) = (order.clone(), given());
    have.sort_unstable();
    want.sort_unstable();
    if have == want { order } else { given() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUNGE: &str = "srun: error: If munged is up, restart with --num-threads=10\n\
                         srun: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\"\n\
                         srun: error: slurm_send_node_msg: auth_g_create: REQUEST_RESOURCE_ALLOCATION has authentication error\n\
                         srun: error: Unable to allocate resources: Protocol authentication error\n";

    fn ended(is_late: bool, errors: &str) -> Ended {
        Ended { code: Some(1), errors: errors.to_owned(), is_late }
    }

    #[test]
    fn line_that_names_the_cause_is_shown() {
        for (errors, text) in [
            (MUNGE, "Munge encode failed: Failed to access \"/run/munge/munge.socket.2\""),
            ("srun: error: a\nsrun: error: Unable to allocate resources: Invalid qos\n\n", "Invalid qos"),
            (
                "slurm_load_partitions: Protocol authentication error",
                "slurm_load_partitions: Protocol authentication error",
            ),
            ("", "srun ended without a word"),
        ] {
            assert_eq!(refusal(&ended(false, errors)), text);
        }
    }

    /// A queue that is full is tried again until the deadline: no node was asked, and srun says why.
    #[test]
    fn job_that_never_began_was_refused() {
        let node = SlurmNode {
            name: "node1".to_owned(),
            partition: "gpu".to_owned(),
            is_default: true,
            state: "idle".to_owned(),
            gpus: 2,
            reason: String::new(),
        };
        let nodes = [node];
        let mut job = Job::new(&nodes);
        let full =
            ended(true, "srun: error: Slurm temporarily unable to accept job, sleeping and retrying\n");
        assert!(job.was_refused(&full));
        assert_eq!(refusal(&full), "Slurm temporarily unable to accept job, sleeping and retrying");
        assert!(!job.was_refused(&ended(true, "srun: Force Terminated job 7\n")), "it ran, and said nothing");
        assert!(job.was_refused(&ended(false, MUNGE)));
        job.stages.insert(0, (Stage::Start, Instant::now()));
        assert!(!job.was_refused(&full) && !job.was_refused(&ended(false, MUNGE)));
    }
}
