//! `verify --on` and `verify --merge`.

use std::str::FromStr;

use camino::Utf8PathBuf;

/// The part of a request for `verify` that is about many nodes.
#[derive(Debug, Clone, Default)]
pub struct FleetOptions {
    /// The nodes to ask.
    pub on: Option<Nodes>,
    /// Files and directories with reports.
    pub merge: Vec<Utf8PathBuf>,
    /// The most nodes at one time.
    pub parallel: Option<usize>,
    /// Submit a job for each node instead, and leave their reports in this directory.
    pub as_they_free: Option<Utf8PathBuf>,
    /// The most seconds of a node's checks.
    pub deadline: Option<u32>,
    /// The most seconds in which a node fetches the image.
    pub pull_deadline: Option<u32>,
    /// Ask nodes with a fault of their own again, and print the command that drains them.
    pub drain: bool,
    /// Run that command.
    pub yes: bool,
    /// Words of the site for `srun`, `sbatch` or `ssh`.
    pub words: Vec<String>,
}

/// Nodes, and the way to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nodes {
    /// Nodes of a Slurm cluster: those of a partition or of a list; `None`: all.
    Slurm(Option<String>),
    /// Hosts that ssh reaches.
    Ssh(SshHosts),
}

/// Hosts that ssh reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshHosts {
    /// A list of them.
    List(String),
    /// A file with one a line.
    File(Utf8PathBuf),
}

impl FromStr for Nodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (way, rest) = text.split_once(':').map_or((text, None), |(way, rest)| (way, Some(rest)));
        match (way, rest) {
            ("slurm", None) => Ok(Self::Slurm(None)),
            ("slurm", Some(list)) if !list.is_empty() => Ok(Self::Slurm(Some(list.to_owned()))),
            ("ssh", Some(list)) if !list.is_empty() => Ok(Self::Ssh(match list.strip_prefix('@') {
                Some(file) => SshHosts::File(file.into()),
                None => SshHosts::List(list.to_owned()),
            })),
            _ => Err("expected `slurm`, `slurm:PARTITION`, `slurm:NODELIST`, `ssh:HOST,…` or `ssh:@FILE`"
                .to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_to_the_nodes_is_read() {
        for (text, nodes) in [
            ("slurm", Nodes::Slurm(None)),
            ("slurm:gpu", Nodes::Slurm(Some("gpu".to_owned()))),
            ("slurm:node[1-8]", Nodes::Slurm(Some("node[1-8]".to_owned()))),
            ("ssh:a,root@b", Nodes::Ssh(SshHosts::List("a,root@b".to_owned()))),
            ("ssh:@hosts.txt", Nodes::Ssh(SshHosts::File("hosts.txt".into()))),
        ] {
            assert_eq!(text.parse(), Ok(nodes), "{text}");
        }
        for text in ["", "ssh", "ssh:", "slurm:", "kubernetes", "node1"] {
            assert!(text.parse::<Nodes>().is_err(), "{text}");
        }
    }
}
