//! The directories of an image with their modes and owners: a layer that lists a directory must repeat them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::error::LayerError;
use super::limits::LARGEST_RECORD;
use super::step::Tools;
use crate::engine::{RunLimits, RunRequest};
use crate::model::sha256::sha256_hex;
use crate::store::SealedRecords;

/// Listing a large image from a slow disk takes minutes.
const TIME: Duration = Duration::from_mins(20);
/// Bytes of the list: a directory has some 60.
const LARGEST_LIST: usize = 64 << 20;

/// Mode and owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Directory {
    /// Permission bits.
    pub mode: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl Directory {
    /// One that everybody may read and root may write.
    pub const ROOT: Self = Self { mode: 0o755, uid: 0, gid: 0 };
}

/// Directories by path, relative to the root: `usr/local`.
pub type Directories = BTreeMap<String, Directory>;

/// Returns the directories of an image of base and system, by its tag. `layers` names its content.
pub async fn directories(
    tools: &Tools<'_>,
    image: &str,
    layers: &[String],
) -> Result<Directories, LayerError> {
    let key = sha256_hex(format!("directories 1\n{}", layers.join("\n")).as_bytes());
    let records = SealedRecords::new(tools.store, "layers");
    if let Some(known) = records.read(&key, LARGEST_RECORD).and_then(|bytes| parse(&bytes)) {
        return Ok(known);
    }
    let command = ["/usr/bin/find", "/", "-xdev", "-type", "d", "-printf", "%m %U %G %P\\0"];
    let limits = RunLimits::on(tools.engine.info(), TIME, LARGEST_LIST);
    let request = RunRequest {
        user: Some("0:0".to_owned()),
        keeps: vec!["DAC_OVERRIDE".to_owned()],
        ..RunRequest::bounded(image, command.map(str::to_owned).to_vec(), limits)
    };
    let outcome = tools.engine.run(request, Arc::clone(&tools.reporter)).await?;
    let failed = |output| LayerError::Step { what: "the list of directories", code: outcome.code, output };
    if let Some(limit) = outcome.reached {
        return Err(failed(vec![format!("ended: it {limit}")]));
    }
    if outcome.code != 0 {
        let text = String::from_utf8_lossy(&outcome.stderr);
        return Err(failed(text.lines().map(str::to_owned).collect()));
    }
    let known = parse(&outcome.stdout).ok_or_else(|| failed(vec!["it cannot be read".to_owned()]))?;
    records.write(&key, &outcome.stdout)?;
    Ok(known)
}

fn parse(list: &[u8]) -> Option<Directories> {
    let text = String::from_utf8_lossy(list);
    let text = text.strip_suffix('\0')?;
    let one = |line: &str| {
        let mut fields = line.splitn(4, ' ');
        let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((fields.next()?.to_owned(), Directory { mode, uid, gid }))
    };
    text.split('\0').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_find_is_read_and_a_cut_one_is_not() {
        let list = b"755 0 0 \x001777 0 0 workspace\x00700 1000 1000 home/dev x\x00";
        let known = parse(list).expect("a list");
        assert_eq!(known["workspace"], Directory { mode: 0o1777, uid: 0, gid: 0 });
        assert_eq!(known["home/dev x"], Directory { mode: 0o700, uid: 1000, gid: 1000 });
        assert_eq!((known.len(), parse(&list[..list.len() - 1]), parse(b"x\0")), (3, None, None));
    }
}
