//! Errors of GPUs in the kernel's log: Xid lines of NVIDIA's driver.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;

use camino::Utf8Path;
use rustix::fs::OFlags;
use serde::Serialize;

/// The longest record that the kernel gives.
const RECORD: usize = 8 << 10;
/// The most that is read of a log.
const MOST: usize = 32 << 20;

/// Errors of one kind on one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct XidErrors {
    /// The GPU's PCI address as the driver writes it: `0000:3b:00`.
    pub gpu: String,
    /// The kind of error.
    pub xid: u16,
    /// How often the log has it.
    pub count: usize,
    /// The driver's last message.
    pub last: String,
}

/// Returns the errors in the kernel's log since boot, as far back as the kernel keeps it; `None`: the log cannot be read.
pub(super) fn xid_errors(log: &Utf8Path) -> Option<Vec<XidErrors>> {
    Some(parse(&read(log).ok()?))
}

/// Reads all records: the device gives one for each call and an error at the end.
fn read(log: &Utf8Path) -> std::io::Result<String> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(std::io::Error::other)?;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(log)?;
    let (mut all, mut record) = (Vec::new(), vec![0; RECORD]);
    while all.len() < MOST {
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&record[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // Newer records replaced the one to be read: reading goes on behind them.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

fn parse(log: &str) -> Vec<XidErrors> {
    let mut found = BTreeMap::<(String, u16), XidErrors>::new();
    for (gpu, xid, message) in log.lines().filter_map(xid_of) {
        let first = || XidErrors { gpu: gpu.to_owned(), xid, count: 0, last: String::new() };
        let one = found.entry((gpu.to_owned(), xid)).or_insert_with(first);
        one.count += 1;
        message.clone_into(&mut one.last);
    }
    found.into_values().collect()
}

/// GPU, number and message of `6,812,5140900,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.`
fn xid_of(line: &str) -> Option<(&str, u16, &str)> {
    // A line of the device: priority, number and time before a semicolon. Only the kernel's own facility, 0, is below 8.
    let (head, message) = line.split_once(';')?;
    let facility: u16 = head.split(',').next()?.parse().ok()?;
    let rest = message.strip_prefix("NVRM: Xid (").filter(|_| facility < 8)?;
    let (gpu, rest) = rest.split_once("): ")?;
    let xid = rest.split_once(',')?.0.parse().ok()?;
    Some((gpu.strip_prefix("PCI:").unwrap_or(gpu), xid, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_gpu_and_number() {
        let log = "6,812,5140900,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=812, name=python, Ch 00000008\n\
                   6,813,5140901,-;usb 1-1: new device\n SUBSYSTEM=usb\n\
                   3,814,5140902,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=813, name=python, Ch 00000009\n\
                   3,815,5140903,-;NVRM: Xid (0000:5e:00): 79, GPU has fallen off the bus.\n";
        let found = parse(log);
        let short: Vec<_> = found.iter().map(|one| (one.gpu.as_str(), one.xid, one.count)).collect();
        assert_eq!(short, [("0000:3b:00", 31, 2), ("0000:5e:00", 79, 1)]);
        assert!(found[0].last.ends_with("Ch 00000009"), "{}", found[0].last);
    }

    #[test]
    fn line_of_a_program_is_no_error_of_a_gpu() {
        for line in [
            "12,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
            "6,1,5,-;my-program: NVRM: Xid (PCI:0000:3b:00): 79, no",
            "6,1,5,-;NVRM: Xid (PCI:0000:3b:00): no number, 1",
            "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        ] {
            assert_eq!(xid_of(line), None, "{line}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "writes the file it reads")]
    fn log_that_cannot_be_read_is_unknown() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        assert_eq!(xid_errors(&root.join("kmsg")), None);
        let long = format!("6,1,5,-;{}\n6,2,5,-;NVRM: Xid (PCI:0000:3b:00): 62, x\n", "a".repeat(3 * RECORD));
        fs_err::write(root.join("kmsg"), long).expect("written");
        assert_eq!(xid_errors(&root.join("kmsg")).expect("readable").len(), 1);
    }

    #[test]
    fn log_of_this_machine_ends() {
        // Readable for root on most machines: the call must come back whatever it holds.
        let _ = xid_errors("/dev/kmsg".into());
    }
}
