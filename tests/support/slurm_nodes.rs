//! A Slurm cluster of several nodes on this machine: a munged, a slurmctld and a slurmd for each node, ended with this value.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The cluster.
pub(crate) struct SlurmNodes {
    folder: PathBuf,
    munged: Vec<Child>,
    controller: Vec<Child>,
    nodes: BTreeMap<String, Child>,
}

impl SlurmNodes {
    /// Starts so many nodes with two GPUs each; the controller listens on that port, the nodes on those after it. `more`: lines of the
    /// configuration.
    pub(crate) fn start(folder: &Path, count: u16, port: u16, more: &str) -> Self {
        for name in ["state", "spool"] {
            fs::create_dir_all(folder.join(name)).expect("ours");
        }
        // Whoever submits reads the configuration and talks to munge.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("ours");
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(at("munge.key"), "envforge".repeat(128)).expect("ours");
        fs::set_permissions(at("munge.key"), fs::Permissions::from_mode(0o600)).expect("ours");
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
        let host = host.trim();
        let mut conf = format!(
            "ClusterName=envforge\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={port}\nSlurmUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={}\nMpiDefault=none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nGresTypes=gpu\nSlurmdParameters=config_overrides\n\
             SlurmctldPidFile={}\nSlurmdPidFile={}\nSlurmdSpoolDir={}\nStateSaveLocation={}\nSlurmdTimeout=10\nReturnToService=2\n\
             KillWait=5\nAccountingStorageType=accounting_storage/none\n",
            at("munge.socket"),
            at("slurmctld.pid"),
            at("slurmd-%n.pid"),
            at("spool/%n"),
            at("state"),
        );
        for number in 1..=count {
            fs::create_dir_all(folder.join(format!("spool/node{number}"))).expect("ours");
            let _ = writeln!(
                conf,
                "NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=16 RealMemory=1000 Gres=gpu:h200:2",
                port + number
            );
        }
        conf += "PartitionName=gpu Nodes=ALL Default=YES State=UP\n";
        conf += more;
        fs::write(at("slurm.conf"), conf).expect("ours");
        // Any device will do: no container is started.
        fs::write(
            at("gres.conf"),
            format!("NodeName=node[1-{count}] Name=gpu Type=h200 File={}\n", at("gpu[0-1]")),
        )
        .expect("ours");
        for name in ["gpu0", "gpu1"] {
            let made = Command::new("mknod").args([&at(name), "c", "1", "3"]).status().expect("mknod");
            assert!(made.success(), "devices are made by root");
        }
        fs::write(at("cgroup.conf"), format!("CgroupPlugin={}\n", cgroup_plugin())).expect("ours");
        let mut cluster = Self {
            folder: folder.to_owned(),
            munged: Vec::new(),
            controller: Vec::new(),
            nodes: BTreeMap::new(),
        };
        let munged = cluster.daemon(
            Command::new("munged")
                .args(["--force", "--foreground"])
                .arg(format!("--socket={}", at("munge.socket")))
                .arg(format!("--key-file={}", at("munge.key")))
                .arg(format!("--pid-file={}", at("munged.pid")))
                .arg(format!("--log-file={}", at("munged.log")))
                .arg(format!("--seed-file={}", at("munged.seed"))),
        );
        cluster.munged.push(munged);
        let controller = cluster.daemon(Command::new("slurmctld").arg("-D"));
        cluster.controller.push(controller);
        for number in 1..=count {
            let name = format!("node{number}");
            let node = cluster.daemon(Command::new("slurmd").args(["-D", "-N", &name]));
            cluster.nodes.insert(name, node);
        }
        let end = Instant::now() + Duration::from_mins(5);
        while cluster.output("sinfo", &["-h", "-N", "-o", "%T"]).matches("idle").count() < usize::from(count)
        {
            assert!(
                Instant::now() < end,
                "not all nodes after five minutes: {}",
                cluster.output("sinfo", &["-N", "-l"])
            );
            std::thread::sleep(Duration::from_millis(200));
        }
        cluster
    }

    fn daemon(&self, command: &mut Command) -> Child {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .env("SLURM_CONF", self.conf())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap_or_else(|_| panic!("{name} is not installed: .ci/setup installs it"))
    }

    /// The configuration, for `SLURM_CONF`.
    pub(crate) fn conf(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// What a program of Slurm prints.
    pub(crate) fn output(&self, program: &str, args: &[&str]) -> String {
        let output =
            Command::new(program).args(args).env("SLURM_CONF", self.conf()).output().expect("it starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Ends munge: no message is accepted from then on.
    pub(crate) fn end_munge(&mut self) {
        for mut daemon in self.munged.drain(..) {
            signal(daemon.id(), "TERM");
            drop(daemon.wait());
        }
    }

    /// Ends a node with all that runs on it, at once, as when its power fails.
    pub(crate) fn power_off(&mut self, name: &str) {
        let mut node = self.nodes.remove(name).expect("a node");
        drop(node.kill());
        drop(node.wait());
        let mark = format!("SLURMD_NODENAME={name}");
        for task in processes_with(&mark) {
            // The parent of the first process of a task is the daemon of its step.
            if command_of(parent_of(task)).starts_with("slurmstepd") {
                signal(parent_of(task), "KILL");
            }
            signal(task, "KILL");
        }
    }
}

impl Drop for SlurmNodes {
    fn drop(&mut self) {
        let daemons = || self.nodes.values().chain(&self.controller).chain(&self.munged).map(Child::id);
        daemons().for_each(|process| signal(process, "TERM"));
        let end = Instant::now() + Duration::from_secs(5);
        while daemons().any(is_running) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        // The daemon of a step asks for its controller as long as it lives.
        for process in processes_with(&format!("SLURM_CONF={}", self.conf().display())) {
            if process != std::process::id() {
                signal(process, "KILL");
            }
        }
        for child in self.nodes.values_mut().chain(&mut self.controller).chain(&mut self.munged) {
            drop(child.wait());
        }
    }
}

/// A machine without control groups: Slurm 22.05 has no word for that and takes the older kind, newer ones have one.
fn cgroup_plugin() -> &'static str {
    let output = Command::new("slurmd").arg("-V").output().expect(".ci/setup installs slurmd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version =
        text.split_whitespace().last().and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if version.is_some_and(|major| major > 22) { "disabled" } else { "cgroup/v1" }
}

/// Whether a process still runs: one that has ended waits for its parent.
fn is_running(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with('Z'))
}

/// Sends a signal to a process of ours.
pub(crate) fn signal(process: u32, name: &str) {
    drop(Command::new("kill").args(["-s", name, &process.to_string()]).stderr(Stdio::null()).status());
}

/// The processes whose environment has that variable with that value.
fn processes_with(variable: &str) -> Vec<u32> {
    let has = |process: &u32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    all_processes().into_iter().filter(has).collect()
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("readable").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The process that started a process.
pub(crate) fn parent_of(process: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = status.rsplit_once(") ").map_or("", |(_, after)| after);
    after.split(' ').nth(1).and_then(|parent| parent.parse().ok()).unwrap_or_default()
}

/// The processes below a process.
pub(crate) fn below(process: u32) -> Vec<u32> {
    let children: Vec<u32> = all_processes().into_iter().filter(|one| parent_of(*one) == process).collect();
    children.iter().flat_map(|child| [*child].into_iter().chain(below(*child))).collect()
}

fn command_of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default()
}
