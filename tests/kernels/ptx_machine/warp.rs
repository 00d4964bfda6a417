//! What a warp does together: shuffles, and products on tensor cores. How a matrix lies in the lanes' registers is the
//! hardware's own affair: here element by element, and a program may only treat all elements alike.
#![expect(clippy::cast_possible_truncation, reason = "registers hold bits, and each type takes its own")]

use super::Fault;
use super::machine::Thread;
use super::memory::Memory;
use super::parse::{Instruction, Operand};

pub(super) const LANES: usize = 32;

/// Carries out one instruction for all lanes, which are all at it.
pub(super) fn together(
    instruction: &Instruction,
    lanes: &mut [Thread],
    memory: &mut Memory,
) -> Result<(), Fault> {
    let words: Vec<_> = instruction.words.iter().map(String::as_str).collect();
    if lanes.len() != LANES {
        return Err(format!("{} lanes of {LANES}", lanes.len()));
    }
    match words.as_slice() {
        ["shfl", "sync", "down", "b32"] => shuffle_down(&instruction.operands, lanes),
        ["wmma", "load", side, "sync", "aligned", "row", shape, kind] => {
            load(&instruction.operands, lanes, memory, &tile(shape, kind)?.of_side(side))
        }
        ["wmma", "store", "d", "sync", "aligned", "row", shape, "f32"] => {
            store(&instruction.operands, lanes, memory, &tile(shape, "f32")?.of_side("d"))
        }
        ["wmma", "mma", "sync", "aligned", "row", "row", shape, kinds @ ..] => {
            let kind =
                if kinds == ["f32", "f32"] { "f16" } else { kinds.get(1).copied().unwrap_or_default() };
            multiply(&instruction.operands, lanes, &tile(shape, kind)?)
        }
        _ => Err(format!("unknown instruction `{}`", words.join("."))),
    }
}

/// `shfl.sync.down.b32 d|p, a, distance, 31, mask`: a lane beyond the end keeps its own.
fn shuffle_down(operands: &[Operand], lanes: &mut [Thread]) -> Result<(), Fault> {
    let [Operand::List(to), from, distance, last, mask] = operands else {
        return Err("operands of a shuffle".to_owned());
    };
    let values: Vec<_> = lanes.iter().map(|lane| lane.value(from)).collect::<Result<_, _>>()?;
    for (at, lane) in lanes.iter_mut().enumerate() {
        if (lane.value(last)?, lane.value(mask)? as u32) != (31, u32::MAX) {
            return Err("a shuffle within a part of the warp".to_owned());
        }
        let source = at + lane.value(distance)? as usize;
        lane.set(&to[0], values.get(source).copied().unwrap_or(values[at]))?;
        lane.set(&to[1], u64::from(source < LANES))?;
    }
    Ok(())
}

/// The sizes of a product, and the bytes of its inputs' elements.
struct Tile {
    m: usize,
    n: usize,
    k: usize,
    kind: &'static str,
}

/// One matrix in memory.
struct Side {
    rows: usize,
    columns: usize,
    bytes: usize,
}

fn tile(shape: &str, kind: &str) -> Result<Tile, Fault> {
    Ok(match (shape, kind) {
        ("m16n16k16", "f16") => Tile { m: 16, n: 16, k: 16, kind: "f16" },
        ("m16n16k16", "bf16") => Tile { m: 16, n: 16, k: 16, kind: "bf16" },
        ("m16n16k8", "tf32") => Tile { m: 16, n: 16, k: 8, kind: "tf32" },
        ("m16n16k16" | "m16n16k8", "f32") => Tile { m: 16, n: 16, k: 0, kind: "f32" },
        _ => return Err(format!("unknown shape {shape} of {kind}")),
    })
}

impl Tile {
    fn of_side(&self, side: &str) -> Side {
        let (rows, columns) = match side {
            "a" => (self.m, self.k),
            "b" => (self.k, self.n),
            _ => (self.m, self.n),
        };
        Side { rows, columns, bytes: if matches!(self.kind, "f16" | "bf16") { 2 } else { 4 } }
    }
}

/// Elements of a lane's registers: two halves or one whole each. Lane after lane; fp16 holds every element twice.
fn places(registers: usize, side: &Side) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let (each, all) = (4 / side.bytes, side.rows * side.columns);
    let bits = 8 * side.bytes;
    (0..LANES).flat_map(move |lane| {
        (0..registers).flat_map(move |register| {
            (0..each).map(move |part| {
                let element = (lane * registers + register) * each + part;
                (lane, register, bits * part, element % all)
            })
        })
    })
}

fn list(operand: &Operand) -> Result<&[Operand], Fault> {
    match operand {
        Operand::List(registers) => Ok(registers),
        other => Err(format!("{other:?} is no list of registers")),
    }
}

/// The address and the stride, which every lane must give alike.
fn origin(lanes: &[Thread], place: &Operand, stride: &Operand) -> Result<(u64, u64), Fault> {
    let own = |lane: &Thread| Ok::<_, Fault>((lane.address(place)?, lane.value(stride)?));
    let first = own(&lanes[0])?;
    for lane in lanes {
        if own(lane)? != first {
            return Err("lanes give different addresses".to_owned());
        }
    }
    if !first.0.is_multiple_of(32) {
        return Err(format!("tile at {:#x}: not aligned to 32 bytes", first.0));
    }
    Ok(first)
}

fn load(operands: &[Operand], lanes: &mut [Thread], memory: &Memory, side: &Side) -> Result<(), Fault> {
    let [to, place, stride] = operands else { return Err("operands of a load".to_owned()) };
    let registers = list(to)?;
    let (start, stride) = origin(lanes, place, stride)?;
    for (lane, register, shift, element) in places(registers.len(), side) {
        let (row, column) = (element / side.columns, element % side.columns);
        let address = start + (row as u64 * stride + column as u64) * side.bytes as u64;
        let value = memory.load(address, side.bytes)? << shift;
        let before = if shift == 0 { 0 } else { lanes[lane].value(&registers[register])? };
        lanes[lane].set(&registers[register], before | value)?;
    }
    Ok(())
}

fn store(operands: &[Operand], lanes: &mut [Thread], memory: &mut Memory, side: &Side) -> Result<(), Fault> {
    let [place, from, stride] = operands else { return Err("operands of a store".to_owned()) };
    let registers = list(from)?;
    let (start, stride) = origin(lanes, place, stride)?;
    for (lane, register, _, element) in places(registers.len(), side) {
        let (row, column) = (element / side.columns, element % side.columns);
        let address = start + (row as u64 * stride + column as u64) * 4;
        memory.store(address, 4, lanes[lane].value(&registers[register])? & 0xffff_ffff)?;
    }
    Ok(())
}

/// The matrix that the lanes' registers hold.
fn gathered(lanes: &[Thread], registers: &[Operand], side: &Side, kind: &str) -> Result<Vec<f64>, Fault> {
    let mut matrix = vec![f64::NAN; side.rows * side.columns];
    for (lane, register, shift, element) in places(registers.len(), side) {
        let bits = (lanes[lane].value(&registers[register])? >> shift) as u32;
        matrix[element] = match kind {
            "f16" => half(bits & 0xffff),
            "bf16" => f64::from(f32::from_bits(bits << 16)),
            // The hardware takes no notice of the low bits.
            "tf32" => f64::from(f32::from_bits(bits & 0xffff_e000)),
            _ => f64::from(f32::from_bits(bits)),
        };
    }
    Ok(matrix)
}

fn half(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31).cast_signed(), f64::from(bits & 1023));
    let value = if exponent == 0 {
        fraction * 2f64.powi(-24)
    } else {
        (1024.0 + fraction) * 2f64.powi(exponent - 25)
    };
    if bits >> 15 == 1 { -value } else { value }
}

/// d = a × b + c, rounded once.
fn multiply(operands: &[Operand], lanes: &mut [Thread], tile: &Tile) -> Result<(), Fault> {
    let [d, a, b, c] = operands else { return Err("operands of a product".to_owned()) };
    let result = Side { rows: tile.m, columns: tile.n, bytes: 4 };
    let left = gathered(lanes, list(a)?, &tile.of_side("a"), tile.kind)?;
    let right = gathered(lanes, list(b)?, &tile.of_side("b"), tile.kind)?;
    let mut sums = gathered(lanes, list(c)?, &result, "f32")?;
    for (at, sum) in sums.iter_mut().enumerate() {
        let (row, column) = (at / tile.n, at % tile.n);
        *sum += (0..tile.k).map(|l| left[row * tile.k + l] * right[l * tile.n + column]).sum::<f64>();
    }
    let registers = list(d)?;
    for (lane, register, _, element) in places(registers.len(), &result) {
        lanes[lane].set(&registers[register], u64::from((sums[element] as f32).to_bits()))?;
    }
    Ok(())
}
