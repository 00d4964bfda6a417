//! Reports of made-up nodes, merged: who is named, with which reason, and what to do.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::failure::Exit;
use crate::model::image::info::ImageInfo;
use crate::model::sha256::sha256_hex;
use crate::model::verdict::{ImageExpectations, Verdict, judge};
use crate::model::visible::is_hidden;

/// A node's report, as its launcher prints it.
#[derive(Clone)]
struct Made {
    node: String,
    boot: String,
    nonce: &'static str,
    stage: &'static str,
    code: u32,
    driver: &'static str,
    gpus: usize,
    kernel: &'static str,
    began: i64,
    why: &'static str,
    lines: String,
    ids: String,
}

const DONE: &str = "{\"done\":true,\"seconds\":9.5}\n";

fn check(id: &str, stage: &str, outcome: &str, detail: &str, median: Option<f64>) -> String {
    let mut measured = serde_json::json!({ "gpu.0": "NVIDIA H200 (sm_90)" });
    if let Some(median) = median {
        measured["median"] = format!("{median}").into();
    }
    serde_json::json!({
        "id": id, "stage": stage, "outcome": outcome, "detail": detail, "measured": measured, "expected": {}, "hint": null,
    })
    .to_string()
        + "\n"
}

fn good() -> String {
    check("gemm-fp32-own", "gpu", "passed", "exact", None)
        + &check("gemm-tf32-own", "gpu", "passed", "exact", None)
        + DONE
}

fn at_speed(median: f64) -> String {
    check("gemm-fp32-own", "gpu", "passed", "exact", None)
        + &check("speed-gemm-fp16", "perf", "passed", "fast", Some(median))
        + DONE
}

fn made(node: &str) -> Made {
    Made {
        node: node.to_owned(),
        boot: format!("boot-{node}"),
        nonce: "0123456789abcdef",
        stage: "end",
        code: 0,
        driver: "570.86.15",
        gpus: 2,
        kernel: "6.1.0",
        began: 1_000,
        why: "",
        lines: good(),
        ids: node.to_owned(),
    }
}

impl Made {
    fn line(&self) -> String {
        let mut gpus = String::new();
        for number in 0..self.gpus {
            let _ = writeln!(gpus, "GPU-{}-{number}, {}, 96.00.01, NVIDIA H200", self.ids, self.driver);
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(self.lines.as_bytes()).expect("memory");
        let body = STANDARD.encode(packed.finish().expect("memory"));
        format!(
            "envforge-report 1 nonce={} node={} host=login job=7 boot={} stage={} code={} level=full kernel={} runtime=docker \
             agent=abc began={} seconds=12 gpus={} why={} sum={} body={body} .",
            self.nonce,
            self.node,
            self.boot,
            self.stage,
            self.code,
            self.kernel,
            self.began,
            STANDARD.encode(gpus),
            STANDARD.encode(self.why),
            &sha256_hex(body.as_bytes())[..16],
        )
    }

    fn heard(&self) -> Heard {
        self.asked_as(None)
    }

    fn asked_as(&self, asked: Option<&str>) -> Heard {
        heard(&self.line(), asked)
    }
}

fn verdict_of(lines: &str) -> Verdict {
    let expected = ImageExpectations { foreign: true, ..ImageExpectations::default() };
    judge(lines, "agent exited with code 0", &ImageInfo::default(), &expected)
}

fn heard(line: &str, asked: Option<&str>) -> Heard {
    let outcome = match NodeLine::parse(line).expect("a line of a node") {
        NodeLine::Report(report) => {
            let mut verdict = verdict_of(&report.lines);
            verdict.level.clone_from(&report.level);
            Outcome::Report(report, Box::new(verdict))
        }
        NodeLine::Stage(_, stage) => Outcome::Silent { stage: Some(stage), why: "its log ends".to_owned() },
        NodeLine::Damaged { why, .. } => Outcome::Silent { stage: None, why: why.to_owned() },
    };
    Heard { asked: asked.map(str::to_owned), source: "file".to_owned(), gpus: Some(2), outcome }
}

fn fleet(change: impl Fn(usize, &mut Made)) -> Fleet {
    let all = (1..=8).map(|number| {
        let mut one = made(&format!("node{number}"));
        change(number, &mut one);
        one.heard()
    });
    merge(all.collect(), false)
}

fn row<'a>(fleet: &'a Fleet, node: &str) -> &'a NodeRow {
    fleet.rows.iter().find(|row| row.node == node).unwrap_or_else(|| panic!("no {node}: {:#?}", fleet.rows))
}

#[track_caller]
fn assert_row(fleet: &Fleet, node: &str, state: NodeState, action: Action, why: &str) {
    let row = row(fleet, node);
    assert_eq!((row.state, row.action), (state, action), "{node}: {:?}", row.why);
    assert!(row.why.iter().any(|text| text.contains(why)), "{node}: `{why}` is not in {:?}", row.why);
}

#[test]
fn nodes_alike_are_one_line() {
    let fleet = fleet(|_, _| {});
    assert_eq!(fleet.exit(), Exit::Done);
    assert_eq!(answer(&fleet), "STATE  DO   NODE\nok     use  node[1-8]\n8 nodes: 8 ok\n");
    assert_eq!(
        matrix(&fleet),
        Matrix { groups: vec![(1..=8).map(|number| format!("node{number}")).collect()], rows: vec![] }
    );
}

#[test]
fn five_faults_are_named_first_and_fit_one_screen() {
    let fleet = fleet(|number, node| match number {
        1 => node.lines = check("gemm-fp32-own", "gpu", "failed", "3 elements differ", None) + DONE,
        2 => {
            (node.code, node.lines) = (124, check("gemm-fp32-own", "gpu", "passed", "exact", None));
        }
        3 => node.gpus = 1,
        4 => node.driver = "550.54.15",
        5 => {
            (node.stage, node.code, node.why, node.lines) =
                ("pull", 1, "no space left on device\n", String::new());
        }
        _ => {}
    });
    assert_row(&fleet, "node1", NodeState::Failed, Action::Drain, "gemm-fp32-own: 3 elements differ");
    assert_row(
        &fleet,
        "node2",
        NodeState::NoReport,
        Action::Watch,
        "deadline, after 1 check, the last `gemm-fp32-own`",
    );
    assert_row(&fleet, "node3", NodeState::Different, Action::Drain, "GPUs 1, most have 2");
    assert_row(&fleet, "node4", NodeState::Different, Action::Watch, "driver 550.54.15, most have 570.86.15");
    assert_row(
        &fleet,
        "node5",
        NodeState::NoReport,
        Action::Watch,
        "docker, fetching the image: no space left on device",
    );
    for node in ["node6", "node7", "node8"] {
        assert_eq!(row(&fleet, node).state, NodeState::Ok);
    }
    assert_eq!(fleet.exit(), Exit::No);
    let text = answer(&fleet);
    insta::assert_snapshot!(text);
    assert!(text.lines().count() <= 24, "{text}");
}

#[test]
fn exit_code_follows_the_gravest_state() {
    let failed = |_: usize, node: &mut Made| {
        node.lines = check("gemm-tf32-own", "gpu", "failed", "wrong", None) + DONE;
    };
    let cut = |_: usize, node: &mut Made| node.lines = node.lines.replace(DONE, "");
    let slow_driver = |_: usize, node: &mut Made| node.driver = "1";
    let first = |change: fn(usize, &mut Made)| {
        fleet(move |number, node| {
            if number == 1 {
                change(number, node);
            }
        })
    };
    assert_eq!(first(failed).exit(), Exit::No);
    assert_eq!(first(cut).exit(), Exit::Outside);
    assert_eq!(first(slow_driver).exit(), Exit::Done, "a difference only warns");
    let not_run = || {
        vec![
            made("node1").heard(),
            Heard {
                asked: Some("node2".to_owned()),
                source: String::new(),
                gpus: None,
                outcome: Outcome::NotRun { why: "drained: Xid 79".to_owned() },
            },
        ]
    };
    assert_eq!(merge(not_run(), false).exit(), Exit::Done, "of many nodes one is always drained");
    assert_eq!(merge(not_run(), true).exit(), Exit::Outside, "a node that was named counts");
    assert!(merge(not_run(), false).refusals().is_empty(), "one was asked");
    let none = merge(not_run().split_off(1), false);
    assert_eq!((none.exit(), none.refusals()), (Exit::Outside, vec!["drained: Xid 79"]));
}

/// Apptainer's line begins with paths, and is longer than a reason.
#[test]
fn reader_without_the_compression_of_a_file_is_named() {
    const FATAL: &str = "INFO:    underlay of /etc/localtime required more than 50 (71) bind mounts\n\
                         FATAL:   container creation failed: mount hook function failure: mount /proc/self/fd/9->/var/apptainer/mnt/session/rootfs \
                         error: while mounting image /proc/self/fd/9: squashfuse_ll exited with status 255: Squashfs image uses zstd \
                         compression, this version supports only zlib, xz.\n";
    let fleet = fleet(|number, node| {
        if number <= 2 {
            (node.stage, node.code, node.why, node.lines) = ("check", 255, FATAL, String::new());
        }
        if number == 2 {
            node.why = "FATAL:   container creation failed: no such file";
        }
    });
    let says = "running the checks: this machine does not know the compression of the image file: write it with `--compression gzip`";
    assert_row(&fleet, "node1", NodeState::NoReport, Action::Watch, says);
    assert_row(
        &fleet,
        "node2",
        NodeState::NoReport,
        Action::Watch,
        "checks: FATAL:   container creation failed: no",
    );
}

/// A failure that most nodes share is the image's: no node is drained for it.
#[test]
fn failure_of_most_nodes_drains_none() {
    let wrong = |id: &str| check(id, "gpu", "failed", "wrong", None);
    let shared = fleet(|number, node| {
        if number <= 6 {
            node.lines = wrong("gemm-tf32-own") + DONE;
        }
        if number == 1 {
            node.lines = wrong("gemm-tf32-own") + &wrong("gemm-fp32-own") + DONE;
        }
    });
    assert_eq!(shared.widespread, ["gemm-tf32-own"]);
    assert_row(&shared, "node2", NodeState::Failed, Action::Watch, "gemm-tf32-own");
    assert_row(&shared, "node1", NodeState::Failed, Action::Drain, "gemm-fp32-own");
    assert!(answer(&shared).contains("gemm-tf32-own fails on more than half of the nodes"));
    let rare = fleet(|number, node| {
        if number <= 2 {
            node.lines = wrong("gemm-tf32-own") + DONE;
        }
    });
    assert!(rare.widespread.is_empty());
    assert_row(&rare, "node2", NodeState::Failed, Action::Drain, "gemm-tf32-own");
}

/// A check of a library that the image brings may fail by the image's will; and a node may have fewer GPUs than others.
#[test]
fn what_may_not_be_the_hosts_fault_is_watched() {
    let wrong = |id: &str| check(id, "gpu", "failed", "wrong", None);
    let library = fleet(|number, node| {
        if number == 2 {
            node.lines = wrong("gemm-large") + DONE;
        }
        if number == 3 {
            node.lines = wrong("check:anything") + DONE;
        }
    });
    assert_row(&library, "node2", NodeState::Failed, Action::Watch, "gemm-large");
    assert_row(&library, "node3", NodeState::Failed, Action::Watch, "check:anything");
    let mixed = ["node1", "node2", "node3", "node4"].map(|name| {
        let mut node = made(name);
        if name == "node4" {
            node.gpus = 1;
        }
        Heard { gpus: None, ..node.heard() }
    });
    assert_row(&merge(mixed.to_vec(), false), "node4", NodeState::Different, Action::Watch, "GPUs 1");
}

/// Of two calls the later one counts, even if it came to nothing.
#[test]
fn newer_failure_to_report_outweighs_an_older_report() {
    let old = made("node1");
    let mut new = made("node1");
    (new.stage, new.code, new.why, new.lines) = ("pull", 1, "no space left on device\n", String::new());
    (new.nonce, new.began) = ("ffffffffffffffff", old.began + 86_400);
    let fleet = merge(vec![new.heard(), old.heard()], false);
    assert_eq!(fleet.rows[0].state, NodeState::NoReport, "{:?}", fleet.rows[0].why);
}

#[test]
fn slow_node_is_named_with_its_distance() {
    let speeds = |slow: f64| {
        fleet(move |number, node| {
            node.lines = at_speed(if number == 3 {
                slow
            } else {
                700.0 + f64::from(u8::try_from(number).expect("small"))
            });
        })
    };
    let found = speeds(600.0);
    assert_row(
        &found,
        "node3",
        NodeState::Slow,
        Action::Watch,
        "speed-gemm-fp16 15 % under the median of 8 nodes (600.0, median 7",
    );
    assert_eq!((found.count(NodeState::Slow), found.exit()), (1, Exit::Done));
    assert_eq!(speeds(680.0).count(NodeState::Slow), 0, "less than five percent");
}

#[test]
fn mixed_models_are_not_compared_by_speed() {
    let fleet = fleet(|number, node| {
        let (label, speed) =
            if number <= 4 { ("NVIDIA H200 (sm_90)", 700.0) } else { ("NVIDIA L4 (sm_89)", 60.0) };
        node.lines = at_speed(speed).replace("NVIDIA H200 (sm_90)", label);
    });
    assert_eq!(fleet.count(NodeState::Slow), 0, "{:#?}", fleet.rows);
}

#[test]
fn report_of_another_node_is_refused_and_the_other_stays() {
    let heard = vec![
        made("node1").asked_as(Some("node1")),
        made("node1").asked_as(Some("node2")),
        made("node3").asked_as(Some("node3")),
    ];
    let fleet = merge(heard, true);
    assert_row(&fleet, "node2", NodeState::NoReport, Action::Watch, "its report says that it is `node1`");
    for node in ["node1", "node3"] {
        assert_eq!(row(&fleet, node).state, NodeState::Ok, "{node}");
    }
}

#[test]
fn boot_or_gpu_of_two_nodes_is_refused_for_both() {
    let boot = fleet(|number, node| {
        if number <= 2 {
            node.boot = "same".to_owned();
        }
    });
    assert_row(&boot, "node1", NodeState::NoReport, Action::Watch, "the boot same of `node2`");
    assert_row(&boot, "node2", NodeState::NoReport, Action::Watch, "the boot same of `node1`");
    let gpu = fleet(|number, node| {
        if number <= 2 {
            node.ids = "copied".to_owned();
        }
    });
    assert_row(&gpu, "node1", NodeState::NoReport, Action::Watch, "the GPU GPU-copied-");
    assert_eq!((boot.exit(), gpu.exit()), (Exit::Outside, Exit::Outside));
    assert_eq!(fleet(|_, _| {}).count(NodeState::NoReport), 0);
}

#[test]
fn newest_report_of_a_node_counts_whatever_its_place() {
    let old = Made {
        lines: check("gemm-tf32-own", "gpu", "failed", "wrong", None) + DONE,
        nonce: "aaaa",
        ..made("node1")
    };
    let new = Made { began: 2_000, nonce: "bbbb", boot: "later".to_owned(), ..made("node1") };
    for order in [[&old, &new], [&new, &old]] {
        let fleet = merge(order.map(Made::heard).to_vec(), false);
        assert_eq!((fleet.rows.len(), fleet.rows[0].state, fleet.rows[0].older), (1, NodeState::Ok, 1));
    }
    // The newest is a failure: an older pass does not hide it.
    let fleet = merge(vec![Made { began: 3_000, ..old }.heard(), new.heard()], false);
    assert_eq!(fleet.exit(), Exit::No);
    // One that was cut does not replace one that is whole, and the beginning of a stage neither.
    let line = made("node1").line();
    let stage = "envforge-node 1 nonce=0123456789abcdef node=node1 host=login job=7 boot=b stage=check .";
    for other in [&line[..line.len() - 9], stage] {
        let one = Heard { source: "node1".to_owned(), ..heard(other, None) };
        let fleet = merge(vec![made("node1").heard(), one], false);
        assert_eq!((fleet.rows.len(), fleet.rows[0].state), (1, NodeState::Ok), "{other}");
    }
}

#[test]
fn two_nodes_of_one_name_in_one_call_are_refused() {
    let fleet = merge(
        vec![made("n").heard(), Made { boot: "other".to_owned(), ids: "o".to_owned(), ..made("n") }.heard()],
        false,
    );
    assert_row(&fleet, "n", NodeState::NoReport, Action::Watch, "two nodes gave a report with this name");
    // The same log twice is one report.
    let twice = merge(vec![made("n").heard(), made("n").heard()], false);
    assert_eq!(twice.exit(), Exit::Done);
}

#[test]
fn pieces_of_srun_are_put_together() {
    let lines = [made("node1").line(), made("node2").line()];
    let noise = "1: module: loaded\n srun: launching\n";
    let mut log = NodeLog::default();
    let mut found = Vec::new();
    for line in noise.lines() {
        found.extend(log.push(line));
    }
    let pieces = |line: &str| -> Vec<String> {
        line.as_bytes().chunks(100).map(|piece| String::from_utf8(piece.to_vec()).expect("ASCII")).collect()
    };
    let (one, two) = (pieces(&lines[0]), pieces(&lines[1]));
    for at in 0..one.len().max(two.len()) {
        for (rank, pieces) in [(0, &one), (1, &two)] {
            if let Some(piece) = pieces.get(at) {
                found.extend(log.push(&format!("{rank}: {piece}")));
            }
        }
    }
    let ranks: Vec<_> =
        found.iter().map(|(rank, line)| (*rank, matches!(line, NodeLine::Report(_)))).collect();
    assert_eq!(ranks, [(Some(0), true), (Some(1), true)]);
    assert!(log.finish().is_empty());
}

/// However a log is cut, and whichever byte of it is lost: no report, never another one.
#[test]
fn damaged_lines_are_no_reports() {
    let line = made("node1").line();
    for end in 0..line.len() {
        let mut log = NodeLog::default();
        let mut found = log.push(&line[..end]);
        found.extend(log.finish());
        let is_report = found.iter().any(|(_, line)| matches!(line, NodeLine::Report(_)));
        assert!(!is_report, "cut at {end}");
        assert_eq!(found.len(), usize::from(end >= "envforge-report 1 ".len()), "cut at {end}");
    }
    let start = line.find("body=").expect("a body") + 5;
    for at in (start..line.len() - 2).step_by(7) {
        let lost = format!("{}{}", &line[..at], &line[at + 1..]);
        assert!(
            matches!(NodeLine::parse(&lost), Some(NodeLine::Damaged { why, .. }) if why.contains("checksum")),
            "{at}"
        );
    }
    assert!(matches!(NodeLine::parse(&line), Some(NodeLine::Report(_))), "the twin");
    // A second line begins while the first is not at its end.
    let mut log = NodeLog::default();
    assert!(log.push(&line[..300]).is_empty());
    let found: Vec<_> =
        log.push(&line).into_iter().map(|(_, line)| matches!(line, NodeLine::Report(_))).collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn body_that_unpacks_without_end_is_refused() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..12 {
        packed.write_all(&vec![b'x'; 1 << 20]).expect("memory");
    }
    let body = STANDARD.encode(packed.finish().expect("memory"));
    let line = format!(
        "envforge-report 1 nonce=a node=n stage=end code=0 sum={} body={body} .",
        &sha256_hex(body.as_bytes())[..16]
    );
    assert!(
        matches!(NodeLine::parse(&line), Some(NodeLine::Damaged { why, .. }) if why.contains("too large"))
    );
}

/// Names and reasons that would write into the terminal, into JSON or into a page.
#[test]
fn hostile_texts_stay_texts() {
    const HOSTILE: &str = "\u{1b}[2J<script>alert(1)</script>\u{202e}&\"'\rok use node1";
    let line = Made { stage: "pull", code: 1, why: HOSTILE, lines: String::new(), ..made("node1") }.line();
    let forged = made("node2").line().replace("node=node2", "node=\u{1b}[2J<b>x</b>");
    let detail =
        Made { lines: check("gemm-tf32-own", "gpu", "failed", HOSTILE, None) + DONE, ..made("node3") };
    let not_run = Heard {
        asked: Some("node4".to_owned()),
        source: String::new(),
        gpus: None,
        outcome: Outcome::NotRun { why: HOSTILE.to_owned() },
    };
    let source = Heard {
        source: HOSTILE.to_owned(),
        gpus: None,
        outcome: Outcome::Silent { stage: None, why: HOSTILE.to_owned() },
        asked: None,
    };
    let fleet = merge(vec![heard(&line, None), heard(&forged, None), detail.heard(), not_run, source], false);
    assert_eq!(fleet.rows.len(), 5, "{:#?}", fleet.rows);
    assert!(
        fleet.rows.iter().any(|row| row.node == "login"),
        "a name that is not one is not taken: {:#?}",
        fleet.rows
    );
    let text = answer(&fleet);
    assert!(!text.contains(|character| is_hidden(character) && character != '\n'), "{text:?}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ok")).count(), 1, "no line is forged: {text}");
    let page = crate::pages::fleet_page(&fleet, Some(HOSTILE));
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    let json = serde_json::to_value(FleetReport::new(&fleet, Some("x"), (&[], None))).expect("JSON");
    assert_eq!(json["nodes"].as_array().expect("nodes").len(), 5);
    let unit = crate::model::verdict::junit(&verdicts(&fleet).iter().collect::<Vec<_>>());
    assert!(!unit.contains("<script>") && !unit.contains('\u{1b}'), "{unit}");
}

#[test]
fn matrix_has_the_checks_that_differ_by_groups_of_nodes() {
    let fleet = fleet(|number, node| {
        let outcome = |bad: bool| if bad { "failed" } else { "passed" };
        node.lines = check("gemm-fp32-own", "gpu", outcome(number == 1 || number == 2), "x", None)
            + &check("gemm-tf32-own", "gpu", outcome(number == 1), "x", None)
            + &check("memory-peers", "gpu", "skipped", "one GPU", None)
            + &check("driver", "gpu", "passed", "x", None)
            + DONE;
    });
    let matrix = matrix(&fleet);
    assert_eq!(matrix.groups[..2], [["node1"], ["node2"]]);
    assert_eq!(matrix.groups[2].len(), 6);
    assert_eq!(
        matrix.rows,
        [
            ("gemm-fp32-own".to_owned(), vec!["failed", "failed", "ok"]),
            ("gemm-tf32-own".to_owned(), vec!["failed", "ok", "ok"]),
        ]
    );
    let text = answer(&fleet);
    assert!(
        text.contains("CHECK          node1   node2   node[3-8]\ngemm-fp32-own  failed  failed  ok\n"),
        "{text}"
    );
}

#[test]
fn many_faults_fit_one_screen() {
    let heard = (0..400).map(|number| {
        let mut node = made(&format!("node{number}"));
        node.lines = check("gemm-tf32-own", "gpu", "failed", &format!("{number} elements differ"), None)
            + &check(&format!("own-{}", number % 40), "gpu", "failed", "x", None)
            + DONE;
        node.heard()
    });
    let fleet = merge(heard.collect(), false);
    let text = answer(&fleet);
    assert!(text.lines().count() <= 40, "{}", text.lines().count());
    assert!(text.contains("and 386 nodes more"), "{text}");
}

#[test]
fn unit_has_a_suite_for_each_node() {
    let fleet = merge(
        vec![
            made("node1").heard(),
            Made { lines: String::new(), stage: "pull", code: 124, ..made("node2") }.heard(),
        ],
        false,
    );
    let unit = crate::model::verdict::junit(&verdicts(&fleet).iter().collect::<Vec<_>>());
    assert!(unit.contains("<testsuite name=\"node1\" tests=\"3\" failures=\"0\" errors=\"0\""), "{unit}");
    assert!(unit.contains("<testsuite name=\"node2\" tests=\"1\" failures=\"0\" errors=\"1\""), "{unit}");
    assert!(unit.contains("no report: docker, fetching the image: ended at its deadline"), "{unit}");
}

/// A fault that is not found again drains nothing, and the reason is ours alone.
#[test]
fn fault_that_is_found_twice_is_drained() {
    let wrong = |id: &str| check(id, "gpu", "failed", "$(reboot)\u{1b}[2J", None) + DONE;
    let with = |faults: [Option<&str>; 3], missing: bool| {
        fleet(|number, node| {
            if let Some(id) = number.checked_sub(1).and_then(|at| *faults.get(at)?) {
                node.lines = wrong(id);
            }
            if number == 4 && missing {
                node.gpus = 1;
            }
        })
    };
    let mut first = with([Some("gemm-tf32-own"), Some("gemm-tf32-own"), Some("gemm-tf32-own")], true);
    assert_eq!(suspects(&first), ["node1", "node2", "node3", "node4"]);
    let second = with([Some("gemm-tf32-own"), None, Some("memory-peers")], true);
    let drains = confirm(&mut first, &second);
    let reasons: Vec<_> = drains.iter().map(|drain| (drain.node.as_str(), drain.reason.as_str())).collect();
    let (large, count) = ("envforge: gemm-tf32-own failed twice", "envforge: gpu-count failed twice");
    assert_eq!(reasons, [("node1", large), ("node4", count)]);
    assert_eq!(
        drains[0].command()[2..],
        ["NodeName=node1".to_owned(), "State=DRAIN".to_owned(), format!("Reason={large}")]
    );
    assert_row(&first, "node1", NodeState::Failed, Action::Drain, "gemm-tf32-own");
    assert_row(&first, "node2", NodeState::Failed, Action::Watch, "when asked again: ok");
    assert_row(&first, "node3", NodeState::Failed, Action::Watch, "when asked again: failed");
    assert_eq!([2, 8, 29, 30, 400].map(most_drained), [2, 2, 2, 3, 40]);
}
