//! Tips below an error of the command line, for what other programs call otherwise.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use super::habits::{HABITS, OPTION_HABITS};
use super::{Cli, groups};
use crate::model::request::mount_hint;

impl Cli {
    /// Parses the command line, or ends the program with its error, a tip below it.
    pub fn read(args: impl Iterator<Item = OsString>) -> Self {
        let args: Vec<OsString> = args.collect();
        let mut program = groups::grouped(Self::command());
        let parsed = program
            .try_get_matches_from_mut(&args)
            .and_then(|found| Self::from_arg_matches(&found).map_err(|error| error.format(&mut program)));
        parsed.unwrap_or_else(|error| with_tip(error, &args).exit())
    }
}

/// The error with a tip of ours in place of the parser's guess, if there is one.
fn with_tip(mut error: clap::Error, args: &[OsString]) -> clap::Error {
    // An option that is unknown here is hardly meant as a value.
    error.remove(ContextKind::TrailingArg);
    if let Some(tip) = tip(&error, args) {
        for guess in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg] {
            error.remove(guess);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn tip(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let words: Vec<&str> =
        args.iter().skip(1).map_while(|arg| arg.to_str().filter(|word| *word != "--")).collect();
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb_tip(text(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let typed = text(ContextKind::InvalidArg)?;
            mount_tip(&words).or_else(|| command_tip(&words, typed)).or_else(|| option_tip(&words, typed))
        }
        _ => mount_tip(&words),
    }
}

/// The verb that a word of another program stands for.
fn verb_tip(word: &str) -> Option<String> {
    let habit = HABITS.iter().find(|habit| habit.words.contains(&word))?;
    Some(format!("{}, as in `{}`", habit.answer, habit.example))
}

fn option_tip(words: &[&str], typed: &str) -> Option<String> {
    let is_for = |verbs: &[&str]| verbs.is_empty() || verbs.iter().any(|verb| words.contains(verb));
    let habit = OPTION_HABITS.iter().find(|habit| habit.options.contains(&typed) && is_for(habit.verbs))?;
    Some(habit.answer.to_owned())
}

/// The tip for a command without `--` before it: `shell IMAGE python train.py`.
fn command_tip(words: &[&str], typed: &str) -> Option<String> {
    if !words.contains(&"shell") || typed.starts_with('-') {
        return None;
    }
    let at = words.iter().position(|word| *word == typed)?;
    let (before, command) = words.split_at(at);
    let call = format!("`envforge {} -- {}`", quoted(before), quoted(command));
    // An image's name has a version or a registry; a program's has not.
    match before.iter().rposition(|word| *word == "shell").map(|at| &before[at + 1..]) {
        Some([program]) if !program.contains([':', '/', '@']) => Some(format!(
            "put `--` before the command: {call}, or `envforge run {}` in a project",
            quoted(&words[at - 1..])
        )),
        _ => Some(format!("put `--` before the command: {call}")),
    }
}

fn quoted(words: &[&str]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@+%".contains(c);
    let word = |word: &&str| {
        if word.chars().all(is_plain) && !word.is_empty() {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The tip for a mount after `-v`, which is docker's option for it.
fn mount_tip(words: &[&str]) -> Option<String> {
    if !words.contains(&"shell") && !words.contains(&"run") {
        return None;
    }
    let after = |pair: &[&str]| mount_hint(pair[1]).filter(|_| pair[0] == "-v");
    let hint = words.windows(2).find_map(after)?;
    Some(format!("{hint} (`-v` is --verbose)"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// What the program says about a line that it refuses.
    fn said(line: &str) -> String {
        let args: Vec<_> = line.split(' ').map(OsString::from).collect();
        match Cli::try_parse_from(&args) {
            Ok(_) => String::new(),
            Err(error) => with_tip(error, &args).to_string(),
        }
    }

    #[test]
    fn tip_is_for_a_mount_after_v_alone() {
        for verb in ["shell", "run"] {
            let line = format!("envforge {verb} --nope -v /d:/data");
            let tip = "to mount a directory: `--mount /d:/data` (`-v` is --verbose)";
            assert!(said(&line).contains(tip), "{}", said(&line));
        }
        assert!(said("envforge shell -v cache:/c IMAGE x").contains("--volume cache:/c"));
        for other in [
            "envforge shell -v pytorch-cuda:2.8 x",
            "envforge shell --mount /d:/data IMAGE x",
            "envforge shell IMAGE -- docker run -v /d:/data x",
            "envforge verify --nope -v /d:/data x",
        ] {
            assert!(!said(other).contains("to mount"), "{other}: {}", said(other));
        }
    }

    #[test]
    fn command_of_shell_needs_two_dashes() {
        let tip = said("envforge shell pytorch-cuda:2.8 python x.py");
        assert!(
            tip.contains("put `--` before the command: `envforge shell pytorch-cuda:2.8 -- python x.py`"),
            "{tip}"
        );
        assert!(!tip.contains("envforge run"), "{tip}");
        let tip = said("envforge shell --gpus none run1 nvidia-smi");
        assert!(tip.contains("`envforge shell --gpus none run1 -- nvidia-smi`"), "{tip}");
        let tip = said("envforge shell python train.py");
        assert!(tip.contains("or `envforge run python train.py` in a project"), "{tip}");
    }

    #[test]
    fn quoted_words_are_those_of_a_shell() {
        assert_eq!(quoted(&["a b", "it's", "x=1", ""]), r"'a b' 'it'\''s' x=1 ''");
    }
}
