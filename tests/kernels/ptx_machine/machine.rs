//! Runs a kernel: blocks one after the other, in each the threads up to where a warp or the block meets.

use super::Fault;
use super::arithmetic::{compare, compute, convert};
use super::memory::{Memory, read};
use super::parse::{Entry, Instruction, Operand, width};
use super::warp::{LANES, together};

/// The sizes of a launch, and the bits of each argument.
pub(crate) struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) arguments: &'a [u64],
}

/// One CUDA thread.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    at: usize,
    registers: Vec<Option<u64>>,
    state: State,
    index: [u32; 3],
    block: [u32; 3],
    sizes: [[u32; 3]; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// At an instruction of the whole warp.
    Warp,
    /// At a barrier of the block.
    Block,
    Ended,
}

/// More instructions than any test needs: a loop that never ends is a fault.
const MOST: usize = 20_000_000;

struct Machine<'a> {
    entry: &'a Entry,
    arguments: &'a [u64],
    memory: &'a mut Memory,
    shared: Vec<u8>,
    left: usize,
}

/// Runs an entry to its end.
pub(crate) fn run(entry: &Entry, memory: &mut Memory, launch: &Launch<'_>) -> Result<(), Fault> {
    let threads: u32 = launch.block.iter().product();
    if entry.most_threads.is_some_and(|most| threads > most) {
        return Err(format!("{threads} threads in a block"));
    }
    if launch.arguments.len() != entry.parameters.len() {
        return Err(format!("{} arguments, {} parameters", launch.arguments.len(), entry.parameters.len()));
    }
    let mut machine = Machine { entry, arguments: launch.arguments, memory, shared: Vec::new(), left: MOST };
    for number in 0..launch.grid.iter().product() {
        // Shared memory begins as anything.
        machine.shared = vec![0xa5; entry.shared];
        machine.run_block(&mut block(entry, launch, number))?;
    }
    Ok(())
}

/// The threads of a block.
fn block(entry: &Entry, launch: &Launch<'_>, number: u32) -> Vec<Thread> {
    let place = |number: u32, [x, y, _]: [u32; 3]| [number % x, number / x % y, number / x / y];
    let thread = |own| Thread {
        at: 0,
        registers: vec![None; entry.registers],
        state: State::Runs,
        index: place(own, launch.block),
        block: place(number, launch.grid),
        sizes: [launch.block, launch.grid],
    };
    (0..launch.block.iter().product()).map(thread).collect()
}

impl Machine<'_> {
    fn run_block(&mut self, threads: &mut [Thread]) -> Result<(), Fault> {
        loop {
            for warp in threads.chunks_mut(LANES) {
                self.run_warp(warp)?;
            }
            let mut live = threads.iter_mut().filter(|thread| thread.state != State::Ended).peekable();
            if live.peek().is_none() {
                return Ok(());
            }
            for thread in live {
                thread.at += 1;
                thread.state = State::Runs;
            }
        }
    }

    /// Runs a warp until its threads have ended or wait for the block.
    fn run_warp(&mut self, warp: &mut [Thread]) -> Result<(), Fault> {
        loop {
            for thread in warp.iter_mut().filter(|thread| thread.state == State::Runs) {
                self.run_thread(thread)?;
            }
            let first = warp.iter().find(|thread| thread.state == State::Warp).map(|thread| thread.at);
            let Some(at) = first else { return Ok(()) };
            if !warp.iter().all(|thread| thread.state == State::Warp && thread.at == at) {
                return Err(format!("not the whole warp is at `{}`", self.entry.code[at].text));
            }
            let instruction = &self.entry.code[at];
            together(instruction, warp, self.memory)
                .map_err(|fault| format!("{}: {fault}", instruction.text))?;
            for thread in warp.iter_mut() {
                thread.at += 1;
                thread.state = State::Runs;
            }
        }
    }

    /// Runs a thread until it ends or waits.
    fn run_thread(&mut self, thread: &mut Thread) -> Result<(), Fault> {
        while thread.state == State::Runs {
            let instruction = self.entry.code.get(thread.at).ok_or("the code ends without `ret`")?;
            self.left = self.left.checked_sub(1).ok_or("it does not end")?;
            self.step(thread, instruction).map_err(|fault| format!("{}: {fault}", instruction.text))?;
        }
        Ok(())
    }

    fn step(&mut self, thread: &mut Thread, instruction: &Instruction) -> Result<(), Fault> {
        if let Some((register, negated)) = instruction.guard
            && (thread.register(register)? == 1) == negated
        {
            thread.at += 1;
            return Ok(());
        }
        let words: Vec<_> = instruction.words.iter().map(String::as_str).collect();
        let operands = instruction.operands.as_slice();
        match (words[0], operands) {
            ("ret", _) => thread.state = State::Ended,
            ("bar", _) => thread.state = State::Block,
            ("shfl" | "wmma", _) => thread.state = State::Warp,
            ("bra", [Operand::Label(to)]) => thread.at = *to,
            _ => {
                match (words[0], operands) {
                    ("mov", [to, from]) => copy(thread, words[1], to, from)?,
                    ("cvta", [to, from]) => thread.set(to, thread.value(from)?)?,
                    ("ld", [to, from]) => {
                        let value = self.load(thread, &words, from)?;
                        thread.set(to, value)?;
                    }
                    ("st", [to, from]) => self.store(thread, &words, to, from)?,
                    ("atom", [to, place, operand]) => self.atomic(thread, &words, [to, place, operand])?,
                    ("setp", [to, one, other]) => {
                        let values = [thread.value(one)?, thread.value(other)?];
                        thread.set(to, compare(&words, &values)?)?;
                    }
                    ("cvt", [to, from]) => thread.set(to, convert(&words, thread.value(from)?)?)?,
                    (_, [to, from @ ..]) => {
                        let values: Vec<_> =
                            from.iter().map(|operand| thread.value(operand)).collect::<Result<_, _>>()?;
                        thread.set(to, compute(&words, &values)?)?;
                    }
                    _ => return Err("unknown instruction".to_owned()),
                }
                thread.at += 1;
            }
        }
        Ok(())
    }

    fn load(&self, thread: &Thread, words: &[&str], from: &Operand) -> Result<u64, Fault> {
        let bytes = words.last().and_then(|kind| width(kind)).ok_or("unknown type")?;
        let value = match (words[1], from) {
            ("param", Operand::Address(base, 0)) => match **base {
                Operand::Parameter(number) => self.arguments[number],
                _ => return Err("no parameter".to_owned()),
            },
            ("global", place) => self.memory.load(thread.address(place)?, bytes)?,
            ("shared", place) => read(&self.shared[self.in_shared(thread.address(place)?, bytes)?]),
            _ => return Err("unknown space".to_owned()),
        };
        // No file loads a signed number into a wider register.
        Ok(if bytes == 4 { value & 0xffff_ffff } else { value })
    }

    fn store(&mut self, thread: &Thread, words: &[&str], to: &Operand, from: &Operand) -> Result<(), Fault> {
        let bytes = words.last().and_then(|kind| width(kind)).ok_or("unknown type")?;
        let (address, value) = (thread.address(to)?, thread.value(from)?);
        match words[1] {
            "global" => self.memory.store(address, bytes, value),
            "shared" => {
                let place = self.in_shared(address, bytes)?;
                self.shared[place].copy_from_slice(&value.to_le_bytes()[..bytes]);
                Ok(())
            }
            _ => Err("unknown space".to_owned()),
        }
    }

    fn in_shared(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, Fault> {
        let at = usize::try_from(address).unwrap_or(usize::MAX);
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.shared.len());
        if inside {
            Ok(at..at + bytes)
        } else {
            Err(format!("shared address {address} of {}", self.shared.len()))
        }
    }

    /// `atom.global.add.u64 d, [place], operand`.
    fn atomic(&mut self, thread: &mut Thread, words: &[&str], operands: [&Operand; 3]) -> Result<(), Fault> {
        let ["atom", "global", operation, kind] = words else { return Err("unknown atomic".to_owned()) };
        let bytes = width(kind).ok_or("unknown type")?;
        let address = thread.address(operands[1])?;
        let before = self.memory.load(address, bytes)?;
        let after = compute(&[operation, kind], &[before, thread.value(operands[2])?])?;
        self.memory.store(address, bytes, after)?;
        thread.set(operands[0], before)
    }
}

/// `mov`, which also takes a register apart and puts two together.
fn copy(thread: &mut Thread, kind: &str, to: &Operand, from: &Operand) -> Result<(), Fault> {
    match (to, from) {
        (Operand::List(parts), from) if parts.len() == 2 && kind == "b64" => {
            let value = thread.value(from)?;
            thread.set(&parts[0], value & 0xffff_ffff)?;
            thread.set(&parts[1], value >> 32)
        }
        (to, Operand::List(parts)) if parts.len() == 2 && kind == "b64" => {
            let value = thread.value(&parts[0])? & 0xffff_ffff | thread.value(&parts[1])? << 32;
            thread.set(to, value)
        }
        (to, from) => {
            let value = thread.value(from)?;
            thread.set(to, if width(kind) == Some(4) { value & 0xffff_ffff } else { value })
        }
    }
}

impl Thread {
    fn register(&self, number: usize) -> Result<u64, Fault> {
        self.registers[number].ok_or_else(|| "a register is read before it is written".to_owned())
    }

    pub(super) fn value(&self, operand: &Operand) -> Result<u64, Fault> {
        match operand {
            Operand::Register(number) => self.register(*number),
            Operand::Number(number) => Ok(*number),
            Operand::Special(name) => {
                let (name, axis) = name.trim_start_matches('%').split_once('.').ok_or("no axis")?;
                let axis = ["x", "y", "z"].iter().position(|known| *known == axis).ok_or("no axis")?;
                let all = match name {
                    "tid" => self.index,
                    "ctaid" => self.block,
                    "ntid" => self.sizes[0],
                    "nctaid" => self.sizes[1],
                    _ => return Err(format!("unknown register `{name}`")),
                };
                Ok(u64::from(all[axis]))
            }
            other => Err(format!("{other:?} has no value")),
        }
    }

    /// The address in brackets.
    pub(super) fn address(&self, operand: &Operand) -> Result<u64, Fault> {
        match operand {
            Operand::Address(base, offset) => Ok(self.value(base)?.wrapping_add_signed(*offset)),
            other => Err(format!("{other:?} is no address")),
        }
    }

    pub(super) fn set(&mut self, operand: &Operand, value: u64) -> Result<(), Fault> {
        match operand {
            Operand::Register(number) => {
                self.registers[*number] = Some(value);
                Ok(())
            }
            other => Err(format!("{other:?} cannot be written")),
        }
    }
}
