//! PTX text as instructions: registers, labels, parameters and shared variables by number.

use std::collections::BTreeMap;

use super::Fault;

/// The kernels of one file.
#[derive(Debug)]
pub(crate) struct Program {
    entries: BTreeMap<String, Entry>,
}

/// One kernel.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Bytes of each parameter.
    pub(crate) parameters: Vec<usize>,
    /// Bytes of shared memory.
    pub(crate) shared: usize,
    pub(crate) registers: usize,
    pub(crate) code: Vec<Instruction>,
    /// `.maxntid`, x.
    pub(crate) most_threads: Option<u32>,
}

#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    /// The predicate's register, and whether it must be false.
    pub(crate) guard: Option<(usize, bool)>,
    /// `setp.lt.s32` in parts.
    pub(crate) words: Vec<String>,
    pub(crate) operands: Vec<Operand>,
    /// The text, for faults.
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(usize),
    Number(u64),
    /// `%tid.x`.
    Special(String),
    /// The address of a parameter, by its number.
    Parameter(usize),
    /// `[base+offset]`.
    Address(Box<Self>, i64),
    /// `{a, b}`.
    List(Vec<Self>),
    /// The number of an instruction.
    Label(usize),
}

impl Program {
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let mut entries = BTreeMap::new();
        let plain: String =
            text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect();
        for part in plain.split(".entry ").skip(1) {
            let (name, rest) = part.split_once('(').ok_or("an entry without parameters")?;
            let (parameters, rest) = rest.split_once(')').ok_or("parameters do not end")?;
            let (head, body) = rest.split_once('{').ok_or("an entry without body")?;
            let mut reader = Reader::default();
            reader.read_parameters(parameters)?;
            if let Some((_, most)) = head.split_once(".maxntid") {
                reader.entry.most_threads =
                    most.split(',').next().and_then(|count| count.trim().parse().ok());
            }
            let body = body.rsplit_once('}').ok_or("a body does not end")?.0;
            entries.insert(name.trim().to_owned(), reader.read(body)?);
        }
        Ok(Self { entries })
    }

    pub(crate) fn entry(&self, name: &str) -> Result<&Entry, Fault> {
        self.entries.get(name).ok_or_else(|| format!("no entry `{name}`"))
    }
}

#[derive(Default)]
struct Reader {
    entry: Entry,
    registers: BTreeMap<String, usize>,
    parameters: BTreeMap<String, usize>,
    /// Where each shared variable begins.
    shared: BTreeMap<String, u64>,
    labels: BTreeMap<String, usize>,
}

impl Reader {
    fn read_parameters(&mut self, text: &str) -> Result<(), Fault> {
        for line in text.split(',').map(str::trim).filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace().skip(1);
            let kind = words.next().unwrap_or_default();
            let bytes = width(kind.trim_start_matches('.')).ok_or(format!("parameter `{line}`"))?;
            let name = words.next().unwrap_or_default().to_owned();
            self.parameters.insert(name, self.entry.parameters.len());
            self.entry.parameters.push(bytes);
        }
        Ok(())
    }

    fn read(mut self, body: &str) -> Result<Entry, Fault> {
        // Labels end in a colon, everything else in a semicolon.
        let body = body.replace(":\n", ":;");
        let statements: Vec<_> =
            body.split(';').map(str::trim).filter(|statement| !statement.is_empty()).collect();
        let mut count = 0;
        for statement in &statements {
            match statement.strip_suffix(':') {
                Some(label) => drop(self.labels.insert(label.to_owned(), count)),
                None if statement.starts_with('.') => self.declare(statement)?,
                None => count += 1,
            }
        }
        let is_code = |statement: &&&str| !statement.ends_with(':') && !statement.starts_with('.');
        for statement in statements.iter().filter(is_code) {
            let instruction = self.instruction(statement).map_err(|fault| format!("{statement}: {fault}"))?;
            self.entry.code.push(instruction);
        }
        self.entry.registers = self.registers.len();
        Ok(self.entry)
    }

    fn declare(&mut self, statement: &str) -> Result<(), Fault> {
        if let Some(rest) = statement.strip_prefix(".shared .align ") {
            let (align, rest) = rest.split_once(" .b8 ").ok_or(statement)?;
            let (name, bytes) = rest.split_once('[').ok_or(statement)?;
            let align: usize = align.parse().map_err(|_| statement)?;
            let bytes: usize = bytes.trim_end_matches(']').parse().map_err(|_| statement)?;
            let start = self.entry.shared.next_multiple_of(align);
            self.shared.insert(name.to_owned(), start as u64);
            self.entry.shared = start + bytes;
            return Ok(());
        }
        let is_known = statement.starts_with(".reg ") || statement.starts_with(".pragma ");
        if is_known { Ok(()) } else { Err(format!("unknown directive `{statement}`")) }
    }

    fn instruction(&mut self, text: &str) -> Result<Instruction, Fault> {
        let (guard, rest) = match text.strip_prefix('@') {
            None => (None, text),
            Some(rest) => {
                let (name, rest) = rest.split_once(char::is_whitespace).ok_or("a guard alone")?;
                let plain = name.trim_start_matches('!');
                (Some((self.register(plain), plain != name)), rest.trim())
            }
        };
        let (opcode, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let words = opcode.split('.').map(str::to_owned).collect();
        let operands = parts(operands).map(|operand| self.operand(operand)).collect::<Result<_, _>>()?;
        Ok(Instruction { guard, words, operands, text: text.to_owned() })
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn operand(&mut self, text: &str) -> Result<Operand, Fault> {
        let inside = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(list) = inside('{', '}') {
            return Ok(Operand::List(
                parts(list).map(|operand| self.operand(operand)).collect::<Result<_, _>>()?,
            ));
        }
        if let Some(place) = inside('[', ']') {
            let (base, offset) = place.split_once('+').unwrap_or((place, "0"));
            let offset = offset.trim().parse().map_err(|_| format!("offset `{offset}`"))?;
            return Ok(Operand::Address(Box::new(self.operand(base.trim())?), offset));
        }
        if let Some(special) =
            ["%tid.", "%ctaid.", "%ntid.", "%nctaid."].iter().find(|it| text.starts_with(**it))
        {
            let _ = special;
            return Ok(Operand::Special(text.to_owned()));
        }
        // The predicate of a shuffle says whether the lane exists; nothing here reads it.
        if let Some((value, predicate)) = text.split_once('|') {
            return Ok(Operand::List(vec![self.operand(value)?, self.operand(predicate)?]));
        }
        if text.starts_with('%') {
            return Ok(Operand::Register(self.register(text)));
        }
        if let Some(label) = self.labels.get(text) {
            return Ok(Operand::Label(*label));
        }
        if let Some(number) = self.parameters.get(text) {
            return Ok(Operand::Parameter(*number));
        }
        if let Some(start) = self.shared.get(text) {
            return Ok(Operand::Number(*start));
        }
        number(text).map(Operand::Number).ok_or(format!("unknown operand `{text}`"))
    }
}

/// Operands between the commas that stand in no brackets.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let split = text.split(move |character| {
        depth += i32::from(matches!(character, '{' | '[')) - i32::from(matches!(character, '}' | ']'));
        character == ',' && depth == 0
    });
    split.map(str::trim).filter(|part| !part.is_empty())
}

/// `12`, `-1`, `0x7f`, and `0f3F800000`, the bits of a number.
fn number(text: &str) -> Option<u64> {
    if let Some(bits) = text.strip_prefix("0f") {
        return u32::from_str_radix(bits, 16).ok().map(u64::from);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    #[expect(clippy::cast_sign_loss, reason = "the bits are kept")]
    let negative = text.parse::<i64>().ok().map(|value| value as u64);
    negative.or_else(|| text.parse().ok())
}

/// Bytes of a type.
pub(super) fn width(kind: &str) -> Option<usize> {
    Some(match kind {
        "u64" | "s64" | "b64" => 8,
        "u32" | "s32" | "b32" | "f32" => 4,
        "pred" => 1,
        _ => return None,
    })
}
