//! What an instruction computes from its operands' bits, by its type.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "registers hold bits, and each type takes its own"
)]

use super::Fault;

/// Keeps the bits of a type.
fn kept(kind: &str, value: u64) -> u64 {
    match kind {
        "u32" | "s32" | "b32" | "f32" => value & 0xffff_ffff,
        "pred" => value & 1,
        _ => value,
    }
}

/// A value as a signed or unsigned whole number of its type.
fn whole(kind: &str, value: u64) -> i128 {
    match kind {
        "s32" => i128::from(value as u32 as i32),
        "u32" | "b32" => i128::from(value as u32),
        "s64" => i128::from(value as i64),
        _ => i128::from(value),
    }
}

fn float(value: u64) -> f32 {
    f32::from_bits(value as u32)
}

fn bits(value: f32) -> u64 {
    u64::from(value.to_bits())
}

/// `add`, `mul`, `fma`, … `words` are the opcode's, without guards.
pub(super) fn compute(words: &[&str], values: &[u64]) -> Result<u64, Fault> {
    let kind = *words.last().unwrap_or(&"");
    let unknown = || format!("unknown instruction `{}`", words.join("."));
    if kind == "f32" && words[0] != "cvt" {
        return floating(words, values).ok_or_else(unknown);
    }
    let of = |at: usize| values.get(at).map(|value| whole(kind, *value)).ok_or_else(unknown);
    let wide = words.contains(&"wide");
    let divisor =
        || of(1).and_then(|value| if value == 0 { Err("division by zero".to_owned()) } else { Ok(value) });
    let result = match words[0] {
        "add" => of(0)? + of(1)?,
        "sub" => of(0)? - of(1)?,
        // The low half; wide keeps all of it.
        "mul" if wide || words.contains(&"lo") => of(0)?.wrapping_mul(of(1)?),
        "mad" if words.contains(&"lo") => of(0)?.wrapping_mul(of(1)?).wrapping_add(of(2)?),
        "div" => of(0)? / divisor()?,
        "rem" => of(0)? % divisor()?,
        "and" => of(0)? & of(1)?,
        "or" => of(0)? | of(1)?,
        "xor" => of(0)? ^ of(1)?,
        "not" => !of(0)?,
        "shl" => shift(of(0)?, values[1], |value, by| value << by),
        "shr" => shift(of(0)?, values[1], |value, by| value >> by),
        "min" => of(0)?.min(of(1)?),
        _ => return Err(unknown()),
    };
    Ok(if wide { result as u64 } else { kept(kind, result as u64) })
}

/// A shift by more than the width leaves nothing; `value` has the width's sign already.
fn shift(value: i128, by: u64, shifted: impl Fn(i128, u64) -> i128) -> i128 {
    shifted(value, by.min(64))
}

fn floating(words: &[&str], values: &[u64]) -> Option<u64> {
    let of = |at: usize| values.get(at).map(|value| float(*value));
    Some(bits(match (words[0], words.get(1)?) {
        ("add", &"f32" | &"rn") => of(0)? + of(1)?,
        ("mul", &"f32" | &"rn") => of(0)? * of(1)?,
        ("fma", &"rn") => of(0)?.mul_add(of(1)?, of(2)?),
        ("div", &"rn") => of(0)? / of(1)?,
        ("sqrt", &"rn") => of(0)?.sqrt(),
        _ => return None,
    }))
}

/// `setp.lt.s32`.
pub(super) fn compare(words: &[&str], values: &[u64]) -> Result<u64, Fault> {
    let [_, comparison, kind] = words else {
        return Err(format!("unknown comparison `{}`", words.join(".")));
    };
    if *kind == "f32" {
        return Err("comparison of f32".to_owned());
    }
    let (one, other) = (whole(kind, values[0]), whole(kind, values[1]));
    Ok(u64::from(match *comparison {
        "lt" => one < other,
        "le" => one <= other,
        "gt" => one > other,
        "ge" => one >= other,
        "eq" => one == other,
        "ne" => one != other,
        _ => return Err(format!("unknown comparison `{comparison}`")),
    }))
}

/// `cvt.s64.s32`, and `cvt.rna.tf32.f32`: 10 bits of fraction, ties away from zero.
pub(super) fn convert(words: &[&str], value: u64) -> Result<u64, Fault> {
    match words {
        ["cvt", "rna", "tf32", "f32"] => {
            let rounded = (value as u32).wrapping_add(0x1000) & 0xffff_e000;
            Ok(u64::from(rounded))
        }
        ["cvt", to @ ("s64" | "u64" | "s32" | "u32"), from @ ("s64" | "u64" | "s32" | "u32")] => {
            Ok(kept(to, whole(from, value) as u64))
        }
        _ => Err(format!("unknown conversion `{}`", words.join("."))),
    }
}
