//! A program on a pseudo-terminal: what it is answered, and everything it shows.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::Run;

/// Rows of a screen that nothing scrolls out of.
const ROWS: u16 = 400;

/// What stands on the terminal when the program has ended.
pub(crate) struct Screen {
    pub(crate) code: i32,
    /// The lines as a person sees them, without the spaces at their ends.
    pub(crate) text: String,
    /// All bytes that were written.
    pub(crate) bytes: Vec<u8>,
}

/// A change of the terminal's width while the program runs.
#[derive(Clone, Copy)]
pub(crate) struct Resize {
    /// What must have been written before.
    pub(crate) after: &'static str,
    pub(crate) columns: u16,
}

/// What must have been written, and what is done then.
type Moment<'a> = (&'a [&'a str], &'a mut dyn FnMut(Pid));

/// Runs a program to its end with a terminal for all three streams; `typed` waits in it from the start. Both streams are in `stdout`.
pub(crate) fn run_on_terminal(command: Command, typed: &str) -> Run {
    let Screen { code, bytes, .. } = screen_of(command, 0, typed, None);
    let stdout = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    Run { code, stdout, stderr: String::new() }
}

/// The screen after a program that ran on a terminal of so many columns; 0: the terminal does not know its size.
pub(crate) fn screen_of(command: Command, columns: u16, typed: &str, resize: Option<Resize>) -> Screen {
    run(command, columns, typed, resize, None)
}

/// The same of a program that is done something to, by its process, once all of `after` was written.
pub(crate) fn screen_with(
    command: Command,
    columns: u16,
    after: &[&str],
    act: &mut dyn FnMut(Pid),
) -> Screen {
    run(command, columns, "", None, Some((after, act)))
}

fn run(
    mut command: Command,
    columns: u16,
    typed: &str,
    resize: Option<Resize>,
    mut moment: Option<Moment<'_>>,
) -> Screen {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let path = Path::new(name.to_str().expect("a path"));
    // The terminal is not this process's own: it would end with it.
    let slave =
        || File::from(open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other end"));
    let end = slave();
    if columns > 0 {
        set_columns(&end, columns);
    }
    command.stdin(Stdio::from(slave())).stdout(Stdio::from(slave())).stderr(Stdio::from(end));
    let mut child = command.spawn().expect("the program starts");
    // It holds the other end open: the output ends when the program does.
    drop(command);
    let mut master = File::from(master);
    master.write_all(typed.as_bytes()).expect("the terminal takes it");
    let mut emulator = vt100::Parser::new(cells(ROWS), cells(if columns > 0 { columns } else { 80 }), 0);
    let mut bytes = Vec::new();
    let mut waiting = resize;
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = master.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..read]);
        emulator.process(&buffer[..read]);
        if let Some(Resize { after, columns }) = waiting
            && String::from_utf8_lossy(&bytes).contains(after)
        {
            // Written for the width before: the program waits until it is read.
            let id = Pid::from_child(&child);
            let signal = |signal| kill_process(id, signal).expect("nobody waited for it yet");
            signal(Signal::STOP);
            while ioctl_fionread(&master).is_ok_and(|left| left > 0)
                && let Ok(read @ 1..) = master.read(&mut buffer)
            {
                bytes.extend_from_slice(&buffer[..read]);
                emulator.process(&buffer[..read]);
            }
            set_columns(&master, columns);
            signal(Signal::CONT);
            emulator.screen_mut().set_size(cells(ROWS), cells(columns));
            waiting = None;
        }
        let came = |(after, _): &Moment<'_>| {
            let written = String::from_utf8_lossy(&bytes);
            after.iter().all(|text| written.contains(text))
        };
        if moment.as_ref().is_some_and(came)
            && let Some((_, act)) = moment.take()
        {
            act(Pid::from_child(&child));
        }
    }
    assert!(waiting.is_none(), "the terminal was never resized: {}", String::from_utf8_lossy(&bytes));
    let status = child.wait().expect("the program ends");
    let text = emulator.screen().contents().lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    Screen { code: status.code().unwrap_or(-1), text, bytes }
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a screen has cells")
}

fn set_columns(terminal: impl AsFd, columns: u16) {
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal has a size");
}

impl Screen {
    /// Asserts that nothing stands there that a person would not have written.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        let Self { text, .. } = self;
        assert!(!text.contains("\\u{") && !text.contains("\\x1b"), "an escape as text:\n{text}");
        assert!(!text.contains('\u{1b}'), "a control character:\n{text}");
        // The signs of a spinner that nobody took away.
        assert!(!text.contains(|sign: char| ('\u{2800}'..='\u{28ff}').contains(&sign)), "a spinner:\n{text}");
        assert!(!text.contains('\u{fffd}'), "a broken character:\n{text}");
    }

    /// Whether it was given color.
    pub(crate) fn has_color(&self) -> bool {
        String::from_utf8_lossy(&self.bytes).contains("\u{1b}[3")
    }

    /// Whether it was given any control sequence.
    pub(crate) fn has_sequences(&self) -> bool {
        self.bytes.contains(&0x1b)
    }
}
