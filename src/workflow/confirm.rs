//! The one way a question is asked on the terminal.

use crate::report::Printer;

/// Asks, and gives true if the answer is yes. A thread of its own reads it: Ctrl-C must not wait for it.
pub(crate) async fn confirm(question: &str) -> bool {
    Printer.say(&format!("{question} [y/N]"));
    let (sender, receiver) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(read.is_ok() && is_yes(&line));
    });
    receiver.await.unwrap_or(false)
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" Yes\n"));
        assert!(!is_yes("\n") && !is_yes("no\n") && !is_yes(""));
    }
}
