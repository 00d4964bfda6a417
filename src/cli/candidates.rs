//! Which values complete a command line: the argument parser knows what is expected, the matrix and the engine know the values.

use clap::{Arg, Command};

use crate::model::request::CandidateKind;

/// Returns the kinds of values that the last of some words can be, and its beginning. Nothing for options and paths.
pub(super) fn expected(cli: &Command, words: &[String]) -> (Vec<CandidateKind>, String) {
    let Some((last, before)) = words.split_last() else { return (Vec::new(), String::new()) };
    let (mut command, mut option): (&Command, Option<&Arg>) = (cli, None);
    let mut attaches = false;
    for word in before {
        if option.take().is_some() {
            continue;
        }
        if word == "--" {
            return (Vec::new(), last.clone());
        }
        attaches |= word == "--attach";
        match command.find_subcommand(word) {
            Some(sub) => command = sub,
            None => option = option_with_value(command, word),
        }
    }
    let positional = || command.get_positionals().find(|arg| !arg.is_last_set());
    let arg = if last.starts_with('-') { None } else { option.or_else(positional) };
    let kinds = arg.map(|arg| kinds(command.get_name(), arg.get_id().as_str(), attaches));
    (kinds.unwrap_or_default(), last.clone())
}

/// Returns the option that a word is, if its value is the next word.
fn option_with_value<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is_it = |arg: &&Arg| {
        let short = arg.get_short().is_some_and(|short| word == format!("-{short}"));
        short || arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
    };
    command.get_arguments().find(is_it).filter(|arg| arg.get_action().takes_values())
}

/// Whether an argument is an option whose values [`expected`] knows.
pub(super) fn option_has_values(command: &Command, arg: &Arg) -> bool {
    !arg.is_positional() && !kinds(command.get_name(), arg.get_id().as_str(), false).is_empty()
}

fn kinds(command: &str, arg: &str, attaches: bool) -> Vec<CandidateKind> {
    use CandidateKind::{Containers, Gpus, Images, Packages, Specs};
    match (command, arg) {
        (_, "gpu") => vec![Gpus],
        (_, "with") => vec![Packages],
        ("stop" | "logs", "name" | "names") => vec![Containers],
        ("shell", "image") if attaches => vec![Containers],
        (_, "image" | "images") | ("inspect" | "size" | "diff", "name" | "from" | "to") => {
            vec![Specs, Images]
        }
        (_, "spec" | "specs" | "all_supported") | ("list", "name") => vec![Specs],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn expected_values_follow_from_the_words_before() {
        use CandidateKind::{Containers, Gpus, Images, Specs};
        let mut cli = crate::cli::Cli::command();
        cli.build();
        let of = |line: &str| expected(&cli, &line.split(' ').map(str::to_owned).collect::<Vec<_>>()).0;
        assert_eq!(of("plan pyt"), [Specs]);
        assert_eq!(of("--json build --no-cache "), [Specs]);
        assert_eq!(of("plan pytorch-cuda --gpu NVI"), [Gpus]);
        assert_eq!(of("build pytorch-cuda --with fl"), [CandidateKind::Packages]);
        assert_eq!(of("plan --gpu sm_90 pyt"), [Specs]);
        assert_eq!(of("verify "), [Specs, Images]);
        assert_eq!(of("diff a "), [Specs, Images]);
        assert_eq!(of("export dockerfile p"), [Specs]);
        assert_eq!(of("logs "), [Containers]);
        assert_eq!(of("shell --attach "), [Containers]);
        for other in ["", "plan --gp", "shell pytorch-cuda -- py", "build --tag x", "generate man d", "pl"] {
            assert_eq!(of(other), [], "{other}");
        }
    }
}
