//! Proves that the image's user is not root and cannot change the locked environment.

use std::os::unix::fs::MetadataExt;

use envforge_protocol::CheckId;

use super::Options;
use crate::report::Report;

const ID: CheckId = CheckId::User;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let mut problems = Vec::new();
    let uid = std::fs::metadata("/proc/self").map(|own| own.uid());
    match &uid {
        Ok(0) => problems.push("the image runs as root".to_owned()),
        Ok(_) => {}
        Err(error) => problems.push(format!("cannot determine the user: {error}")),
    }
    // The environment of envforge's own images: a user may well write to his own.
    let probe = options.root.join("opt/env/.envforge-write-probe");
    if std::fs::write(&probe, "").is_ok() {
        let _ = std::fs::remove_file(&probe);
        problems.push("the user can write to /opt/env".to_owned());
    }
    let home = options.root.join("home/dev/.envforge-write-probe");
    match std::fs::write(&home, "") {
        Ok(()) => drop(std::fs::remove_file(&home)),
        Err(error) => problems.push(format!("the user cannot write to its home: {error}")),
    }
    vec![Report::of_problems(ID, format!("uid {}", uid.unwrap_or_default()), &problems)]
}
