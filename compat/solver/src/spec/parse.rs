//! Parses a [`Spec`]: splits the text into parts with positions, then parses each part.

use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use super::cuda_request::CudaRequest;
use super::error::{SpecError, SpecProblem};
use super::flavour::Flavour;
use super::suffix::{FLAVOURS, flavour, is_suffix};
use super::types::Spec;
use crate::versions::{FrameworkVersion, PythonVersion};

/// A part of the text and its position.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    start: usize,
}

impl Part<'_> {
    fn span(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        parse(text)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[doc(hidden)]
/// Strips the suffix `-unverified` from an argument of `shell` or `verify`; the flag is true if it was present.
pub fn strip_unverified(text: &str) -> (&str, bool) {
    text.strip_suffix("-unverified").map_or((text, false), |rest| (rest, true))
}

/// Parses a spec. Upper case is treated as lower case.
fn parse(typed: &str) -> Result<Spec, SpecError> {
    let lower = typed.to_ascii_lowercase();
    let fail = |span: Range<usize>, problem: SpecProblem, meant: Option<String>| {
        let text = typed.to_owned();
        SpecError { text, span, problem, suggestion: meant.filter(|meant| parse_parts(meant).is_ok()) }
    };
    parse_parts(&lower).map_err(|Wrong { span, problem, instead }| {
        let meant = instead.map(|instead| format!("{}{instead}{}", &lower[..span.start], &lower[span.end..]));
        let equals = lower.contains("==").then(|| lower.replacen("==", ":", 1));
        fail(span, problem, meant.or(equals))
    })
}

/// A problem, its position, and a replacement.
struct Wrong {
    span: Range<usize>,
    problem: SpecProblem,
    instead: Option<String>,
}

impl Wrong {
    fn new(span: Range<usize>, problem: SpecProblem) -> Self {
        Self { span, problem, instead: None }
    }
}

fn parse_parts(text: &str) -> Result<Spec, Wrong> {
    only_spec_characters(text)?;
    let (name, version, parts) = cut(text)?;
    let mut reader = Reader { spec: Spec::of(name.text), flavour: None };
    if let Some(version) = version {
        reader.version(version)?;
    }
    for part in parts {
        reader.part(part)?;
    }
    reader.spec.flavour = reader.flavour.unwrap_or_default();
    Ok(reader.spec)
}

fn only_spec_characters(text: &str) -> Result<(), Wrong> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | ':' | '+');
    let mut colons = 0;
    for (at, c) in text.char_indices() {
        colons += usize::from(c == ':');
        if !fits(c) || colons > 1 {
            return Err(Wrong::new(at..at + c.len_utf8(), SpecProblem::Character(c)));
        }
    }
    Ok(())
}

type Cut<'a> = (Part<'a>, Option<Part<'a>>, Vec<Part<'a>>);

/// Splits the text at `:` and `-`. Without a `:` the name ends before the first part that can only be a suffix.
fn cut(text: &str) -> Result<Cut<'_>, Wrong> {
    let mut parts = Vec::new();
    let (name_end, version) = if let Some(colon) = text.find(':') {
        let mut rest = split(text, colon + 1).into_iter();
        let version = rest.next();
        parts.extend(rest);
        (colon, version)
    } else {
        let all = split(text, 0);
        let first = all.iter().skip(1).position(|part| is_suffix(part.text)).map(|at| at + 1);
        parts.extend(first.into_iter().flat_map(|at| &all[at..]));
        (first.map_or(text.len(), |at| all[at].start - 1), None)
    };
    let name = Part { text: &text[..name_end], start: 0 };
    if !name.text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(Wrong::new(name.span(), SpecProblem::NoName));
    }
    if let Some(at) = name.text.find("--") {
        return Err(Wrong::new(at + 1..at + 1, SpecProblem::Nothing('-')));
    }
    if name.text.ends_with('-') {
        return Err(Wrong::new(name_end..name_end, SpecProblem::Nothing('-')));
    }
    if let Some(at) = name.text.find(['+', '.']) {
        let c = if name.text.as_bytes()[at] == b'+' { '+' } else { '.' };
        return Err(Wrong::new(at..at + 1, SpecProblem::Character(c)));
    }
    Ok((name, version, parts))
}

fn split(text: &str, from: usize) -> Vec<Part<'_>> {
    let mut start = from;
    text[from..]
        .split('-')
        .map(|piece| {
            let part = Part { text: piece, start };
            start += piece.len() + 1;
            part
        })
        .collect()
}

struct Reader {
    spec: Spec,
    flavour: Option<Flavour>,
}

impl Reader {
    fn version(&mut self, part: Part<'_>) -> Result<(), Wrong> {
        if part.text.is_empty() {
            return Err(Wrong::new(part.span(), SpecProblem::Nothing(':')));
        }
        let (number, local) = match part.text.split_once('+') {
            Some((number, local)) => {
                (number, Some(Part { text: local, start: part.start + number.len() + 1 }))
            }
            None => (part.text, None),
        };
        if number != "latest" {
            let plain = number.strip_prefix('v').unwrap_or(number);
            let span = part.start..part.start + number.len();
            self.spec.version = Some(plain.parse::<FrameworkVersion>().map_err(|_| Wrong {
                problem: SpecProblem::Version(number.to_owned()),
                instead: (strsim::osa_distance(number, "latest") <= 2).then(|| "latest".to_owned()),
                span,
            })?);
        }
        match local {
            Some(local) if local.text.is_empty() => Err(Wrong::new(local.span(), SpecProblem::Nothing('+'))),
            Some(local) => match self.spec.version.as_ref().and_then(|number| with_label(number, local.text))
            {
                Some(own) => {
                    self.spec.version = Some(own);
                    Ok(())
                }
                None => self.cuda(local),
            },
            None => Ok(()),
        }
    }

    fn part(&mut self, part: Part<'_>) -> Result<(), Wrong> {
        let text = part.text;
        if text.is_empty() {
            return Err(Wrong::new(part.span(), SpecProblem::Nothing('-')));
        }
        if let Some(flavour) = flavour(text) {
            return match self.flavour.replace(flavour) {
                Some(_) => Err(twice(part, "flavour")),
                None => Ok(()),
            };
        }
        let digits = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        if text.strip_prefix("py").is_some_and(digits) {
            return self.python(part);
        }
        if text.strip_prefix("cuda").or_else(|| text.strip_prefix("cu")).is_some_and(digits) {
            return self.cuda(part);
        }
        let problem = SpecProblem::Part(text.to_owned());
        Err(Wrong { span: part.span(), problem, instead: meant(text) })
    }

    fn cuda(&mut self, part: Part<'_>) -> Result<(), Wrong> {
        let request = cuda(part.text)
            .ok_or_else(|| Wrong::new(part.span(), SpecProblem::Cuda(part.text.to_owned())))?;
        match self.spec.cuda {
            // `2.8.0+cu128-cu128` repeats the same CUDA, which is allowed.
            Some(before) if before != request => Err(twice(part, "CUDA")),
            _ => {
                self.spec.cuda = Some(request);
                Ok(())
            }
        }
    }

    fn python(&mut self, part: Part<'_>) -> Result<(), Wrong> {
        let python = python(&part.text[2..])
            .ok_or_else(|| Wrong::new(part.span(), SpecProblem::Python(part.text.to_owned())))?;
        match self.spec.python.replace(python) {
            Some(_) => Err(twice(part, "Python")),
            None => Ok(()),
        }
    }
}

/// Returns the version of a team's own build, `2.8.0+corp1`; `None`: the local part is no label.
fn with_label(number: &FrameworkVersion, local: &str) -> Option<FrameworkVersion> {
    format!("{number}+{local}").parse().ok()
}

fn twice(part: Part<'_>, what: &'static str) -> Wrong {
    Wrong::new(part.span(), SpecProblem::Twice(part.text.to_owned(), what))
}

/// Parses `cu128`, `cu12.8`, `cuda12.8`, `cuda12.8.1`, `cu12`.
fn cuda(text: &str) -> Option<CudaRequest> {
    let digits = text.strip_prefix("cuda").or_else(|| text.strip_prefix("cu"))?;
    let number = |part: &str| {
        let plain = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if plain { part.parse::<u8>().ok() } else { None }
    };
    let mut parts = digits.split('.');
    let first = parts.next()?;
    let (major, glued) = first.split_at_checked(2).unwrap_or((first, ""));
    let rest: Vec<&str> = parts.collect();
    let (minor, patch) = match (glued, rest.as_slice()) {
        ("", []) => (None, None),
        (glued, []) => (Some(number(glued)?), None),
        ("", [minor]) => (Some(number(minor)?), None),
        ("", [minor, patch]) => (Some(number(minor)?), Some(number(patch)?)),
        _ => return None,
    };
    // A single digit has no canonical spelling.
    if minor.is_none() && major.len() < 2 {
        return None;
    }
    Some(CudaRequest { major: number(major)?, minor, patch })
}

/// Parses `3.11` and `311`.
fn python(text: &str) -> Option<PythonVersion> {
    if text.contains('.') {
        return text.parse().ok();
    }
    let (major, minor) = text.split_at_checked(1)?;
    format!("{major}.{minor}").parse().ok()
}

/// Returns the likely intention of a part of unknown kind.
fn meant(text: &str) -> Option<String> {
    let dotted_python = |text: &str| text.starts_with("3.") && python(text).is_some();
    if let Some(rest) = text.strip_prefix("python").filter(|rest| python(rest).is_some()) {
        return Some(format!("py{rest}"));
    }
    if dotted_python(text) {
        return Some(format!("py{text}"));
    }
    if cuda(&format!("cu{text}")).is_some() {
        return Some(format!("cu{text}"));
    }
    FLAVOURS
        .iter()
        .find(|(word, _)| strsim::osa_distance(word, text) <= 2)
        .map(|(word, _)| (*word).to_owned())
}
