//! The one way a question is asked on the terminal.

use std::io::IsTerminal as _;

use crate::report::Printer;

/// Whether there is a terminal to ask on.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Lists options and asks for one of them; an empty answer chooses the first. `None`: the answer matches no option.
pub(crate) async fn choose(question: &str, options: &[String]) -> Option<usize> {
    for (at, option) in options.iter().enumerate() {
        Printer.say(&format!("{:>4}  {option}", at + 1));
    }
    Printer.say(&format!("{question} [1-{}, default 1]", options.len()));
    chosen(&answer().await?, options.len())
}

fn chosen(line: &str, count: usize) -> Option<usize> {
    match line.trim() {
        "" => Some(0),
        number => number.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < count),
    }
}

/// Asks, and gives true if the answer is yes.
pub(crate) async fn confirm(question: &str) -> bool {
    Printer.say(&format!("{question} [y/N]"));
    answer().await.is_some_and(|line| is_yes(&line))
}

/// Reads a line. A thread of its own does: Ctrl-C must not wait for it. `None`: the input ended.
async fn answer() -> Option<String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(read.ok().filter(|count| *count > 0).map(|_| line));
    });
    receiver.await.ok().flatten()
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::{chosen, is_yes};

    #[test]
    fn only_a_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" Yes\n"));
        assert!(!is_yes("\n") && !is_yes("no\n") && !is_yes(""));
    }

    #[test]
    fn options_are_chosen_by_number_and_the_first_by_default() {
        let three = |line| chosen(line, 3);
        assert_eq!((three("\n"), three("1\n"), three(" 3 \n")), (Some(0), Some(0), Some(2)));
        assert_eq!((three("0"), three("4"), three("q"), three("-1")), (None, None, None, None));
    }
}
