//! Tips below an error of the command line, for what other programs call otherwise.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};

use super::{Cli, groups};
use crate::model::request::mount_hint;

impl Cli {
    /// Parses the command line, or ends the program with its error, a tip below it.
    pub fn read(args: impl Iterator<Item = OsString>) -> Self {
        let args: Vec<OsString> = args.collect();
        let mut program = groups::grouped(Self::command());
        let parsed = program
            .try_get_matches_from_mut(&args)
            .and_then(|found| Self::from_arg_matches(&found).map_err(|error| error.format(&mut program)));
        parsed.unwrap_or_else(|mut error| {
            if let Some(tip) = mount_tip(&args) {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error.exit()
        })
    }
}

/// The tip for a mount after `-v`, which is docker's option for it.
fn mount_tip(args: &[OsString]) -> Option<String> {
    let args: Vec<_> =
        args.iter().skip(1).take_while(|arg| *arg != "--").filter_map(|arg| arg.to_str()).collect();
    if !args.contains(&"shell") {
        return None;
    }
    let after = |pair: &[&str]| mount_hint(pair[1]).filter(|_| pair[0] == "-v");
    let hint = args.windows(2).find_map(after)?;
    Some(format!("{hint} (`-v` is --verbose)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tip_is_for_a_mount_after_v_alone() {
        let tip = |line: &str| mount_tip(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let found = tip("envforge shell -v /d:/data pytorch-cuda:2.8 -- true").expect("a tip");
        assert_eq!(found, "to mount a directory: `--mount /d:/data` (`-v` is --verbose)");
        assert!(
            tip("envforge shell -v cache:/c IMAGE x").is_some_and(|tip| tip.contains("--volume cache:/c"))
        );
        for other in [
            "envforge shell -v pytorch-cuda:2.8 x",
            "envforge shell --mount /d:/data IMAGE x",
            "envforge shell IMAGE -- docker run -v /d:/data x",
            "envforge verify -v /d:/data x",
        ] {
            assert_eq!(tip(other), None, "{other}");
        }
    }
}
