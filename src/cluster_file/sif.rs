//! What stands before a squashfs to make a SIF of it, the file that Apptainer and Singularity start.
//!
//! Ids and times are zero, as the formats' own deterministic mode writes them: the same image gives the same bytes.

use crate::model::versions::Machine;

/// Bytes before the squashfs.
pub(crate) const FRONT: u64 = 32_768;

/// Where the table of descriptors begins, how many it has room for, and the size of each.
const TABLE: u64 = 4096;
const ROOM: u64 = 48;
const DESCRIPTOR: u64 = 585;
/// Where the objects begin.
const DATA: u64 = TABLE + ROOM * DESCRIPTOR;

const DEFINITION_FILE: u32 = 0x4001;
const PARTITION: u32 = 0x4004;
/// The one group of objects.
const GROUP: u32 = 0xf000_0001;

/// Returns the bytes before a squashfs of that size, with a definition that `apptainer inspect --deffile` shows.
///
/// # Panics
/// If the definition has more than some hundred bytes.
pub(crate) fn sif_front(squashfs: u64, machine: Machine, definition: &str) -> Vec<u8> {
    let arch: &[u8; 3] = match machine {
        Machine::X86_64 => b"02\0",
        Machine::Aarch64 => b"04\0",
    };
    let definition_size = definition.len() as u64;
    assert!(DATA + definition_size <= FRONT, "the definition does not fit");
    let mut front = Vec::new();
    front.extend_from_slice(&padded(b"#!/usr/bin/env run-singularity\n", 32));
    front.extend_from_slice(b"SIF_MAGIC\0");
    front.extend_from_slice(b"01\0");
    front.extend_from_slice(arch);
    front.extend_from_slice(&[0; 16]);
    let objects = 2;
    let data_size = FRONT - DATA + squashfs;
    for value in [0, 0, ROOM - objects, ROOM, TABLE, ROOM * DESCRIPTOR, DATA, data_size] {
        front.extend_from_slice(&value.to_le_bytes());
    }
    front.resize(usize::try_from(TABLE).expect("small"), 0);
    let text = Object { kind: DEFINITION_FILE, id: 1, start: DATA, size: definition_size, before: DATA };
    front.extend_from_slice(&text.descriptor("Def.FILE", &[]));
    // A squashfs, the system that is started.
    let extra = [&1_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), arch].concat();
    let system =
        Object { kind: PARTITION, id: 2, start: FRONT, size: squashfs, before: DATA + definition_size };
    front.extend_from_slice(&system.descriptor("image.squashfs", &extra));
    front.resize(usize::try_from(DATA).expect("small"), 0);
    front.extend_from_slice(definition.as_bytes());
    front.resize(usize::try_from(FRONT).expect("small"), 0);
    front
}

/// An object of a SIF.
struct Object {
    kind: u32,
    id: u32,
    start: u64,
    size: u64,
    /// Where the object before it ends.
    before: u64,
}

impl Object {
    fn descriptor(&self, name: &str, extra: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        bytes.push(1);
        for value in [self.id, GROUP, 0] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        let with_padding = self.start + self.size - self.before;
        for value in [self.start, self.size, with_padding, 0, 0, 0, 0] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&padded(name.as_bytes(), 128));
        bytes.extend_from_slice(&padded(extra, 384));
        bytes
    }
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(size, 0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Offsets by the description of the format, not by the code above.
    #[test]
    fn front_has_the_fields_of_the_format() {
        let front = sif_front(1 << 33, Machine::X86_64, "# a lock\n");
        assert_eq!(front.len(), 32_768);
        assert_eq!(&front[..54], b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\x0001\x0002\0\0\0\0\0\0\0");
        let fields = [80, 88, 96, 104, 112, 120].map(|at| number(&front, at));
        assert_eq!(fields, [46, 48, 4096, 48 * 585, 32_176, (1 << 33) + 592]);
        assert_eq!(front[4096..4101], [1, 0x40, 0, 0, 1], "a definition file, in use");
        assert_eq!(number(&front, 4096 + 17), 32_176);
        assert_eq!(&front[32_176..32_185], b"# a lock\n");
        let second = 4096 + 585;
        assert_eq!(front[second..second + 5], [4, 0x40, 0, 0, 1], "a partition, in use");
        assert_eq!(front[second + 5..second + 17], [2, 0, 0, 0, 1, 0, 0, 0xf0, 0, 0, 0, 0]);
        let places = [17, 25, 33].map(|at| number(&front, second + at));
        assert_eq!(places, [32_768, 1 << 33, (1 << 33) + 592 - 9]);
        assert_eq!(front[second + 201..second + 212], [1, 0, 0, 0, 2, 0, 0, 0, b'0', b'2', 0]);
        assert_eq!(&sif_front(1, Machine::Aarch64, "")[45..48], b"04\0");
    }
}
