//! Commands of a shell script, cut into words: enough to read what `pip install` and `apt-get install` lines say.

use std::iter::Peekable;
use std::str::Chars;

/// The commands of a line of shell: split at `&&`, `||`, `;`, `|` and newlines outside of quotes, each as its words without quotes and
/// comments. A command in a word (`$(uname -r)`) is part of the word as it is written.
pub(super) fn commands(script: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut has_word = false;
    let mut quote: Option<char> = None;
    let mut rest = script.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                if let Some(next) = rest.next().filter(|next| *next != '\n') {
                    word.push(next);
                    has_word = true;
                }
            }
            (Some('"') | None, '$') if rest.peek() == Some(&'(') => {
                word.push(c);
                substitution(&mut word, &mut rest);
                has_word = true;
            }
            (Some('"') | None, '`') => {
                word.push(c);
                for next in rest.by_ref() {
                    word.push(next);
                    if next == '`' {
                        break;
                    }
                }
                has_word = true;
            }
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                has_word = true;
            }
            // A comment, to the end of the line.
            (None, '#') if !has_word && word.is_empty() => {
                while rest.next_if(|next| *next != '\n').is_some() {}
            }
            (None, '&' | '|' | ';' | '\n' | '(' | ')') => {
                // `2>&1` is no end of a command.
                if c == '&' && word.ends_with('>') {
                    word.push(c);
                    continue;
                }
                end_word(&mut words, &mut word, &mut has_word);
                if !words.is_empty() {
                    all.push(std::mem::take(&mut words));
                }
            }
            (None, c) if c.is_whitespace() => end_word(&mut words, &mut word, &mut has_word),
            (None, c) => {
                word.push(c);
                has_word = true;
            }
        }
    }
    end_word(&mut words, &mut word, &mut has_word);
    if !words.is_empty() {
        all.push(words);
    }
    all
}

/// Takes the command behind a `$` into the word, up to its closing parenthesis.
fn substitution(word: &mut String, rest: &mut Peekable<Chars<'_>>) {
    let mut depth = 0_usize;
    let mut quote: Option<char> = None;
    for c in rest.by_ref() {
        word.push(c);
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Whether a word has a command whose output is not known here: `linux-headers-$(uname -r)`.
pub(super) fn is_computed(word: &str) -> bool {
    word.contains("$(") || word.contains('`')
}

/// Whether a word sends the input or output elsewhere, and whether the file is the next word: `2>`, `>/dev/null`.
pub(super) fn redirection(word: &str) -> Option<bool> {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let target = rest.strip_prefix(['>', '<'])?.trim_start_matches(['>', '<', '&']);
    Some(target.is_empty())
}

/// The lines of a script joined at `\`, without comments and blank lines, each with the number of its first line.
pub(super) fn lines_of_shell(text: &str) -> Vec<(usize, String)> {
    joined_lines(text, without_comment)
}

/// The lines of a file joined at `\`, without blank lines and what is a comment there, each with the number of its first line.
pub(super) fn joined_lines(text: &str, without_comment: fn(&str) -> &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let mut whole = without_comment(first).trim().to_owned();
        while let Some(part) = whole.strip_suffix('\\') {
            let length = part.trim_end().len();
            whole.truncate(length);
            let Some((_, next)) = lines.next() else { break };
            whole.push(' ');
            whole.push_str(without_comment(next).trim());
        }
        let whole = whole.trim();
        if !whole.is_empty() {
            found.push((at + 1, whole.to_owned()));
        }
    }
    found
}

/// A line up to the `#` that begins a word outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before): (Option<char>, char) = (None, ' ');
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') if before != '\\' => quote = Some(c),
            _ => {}
        }
        before = c;
    }
    line
}

fn end_word(words: &mut Vec<String>, word: &mut String, has_word: &mut bool) {
    if std::mem::take(has_word) || !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_into_commands_and_words() {
        let script = "apt-get update && apt-get install -y 'git' \\\n  curl; pip install \"torch>=2.1\" x==1 2>&1 | tee log";
        let found: Vec<_> = commands(script).into_iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            found,
            ["apt-get update", "apt-get install -y git curl", "pip install torch>=2.1 x==1 2>&1", "tee log"]
        );
    }

    #[test]
    fn comments_and_commands_in_words_are_known() {
        for (script, expected) in [
            ("pip install --user onnx   # cmake from apt-get is too old", vec!["pip install --user onnx"]),
            ("apt-get install -y git vim  # for debugging only", vec!["apt-get install -y git vim"]),
            ("# nothing", vec![]),
            ("a # one; two\nb", vec!["a", "b"]),
            (
                "pip install 'x #1' y#2 \"#z\" git+https://h/x#egg=x",
                vec!["pip install x #1 y#2 #z git+https://h/x#egg=x"],
            ),
            ("a;# c", vec!["a"]),
            (
                "apt-get install -y cuda-tools-$(cut -f1,2 -d- <<< ${CUDA//./-}) git && hmmer",
                vec!["apt-get install -y cuda-tools-$(cut -f1,2 -d- <<< ${CUDA//./-}) git", "hmmer"],
            ),
            (
                "i linux-headers-$(uname -r) `uname; x` git",
                vec!["i linux-headers-$(uname -r) `uname; x` git"],
            ),
            ("A=\"$(echo \"a b\" | sed 's/)//')\" && b", vec!["A=$(echo \"a b\" | sed 's/)//')", "b"]),
            ("(cd x; make)", vec!["cd x", "make"]),
            ("i $(never", vec!["i $(never"]),
        ] {
            let found: Vec<_> = commands(script).into_iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn lines_of_a_script_have_no_comments() {
        let text = "#!/bin/sh\npip install a \\\n  b # c \\\nd 'e # f'\n\n  # g\n";
        let found = lines_of_shell(text);
        let expected = [(2, "pip install a b".to_owned()), (4, "d 'e # f'".to_owned())];
        assert_eq!(found, expected);
    }

    #[test]
    fn redirections_are_no_words_of_a_command() {
        for (word, expected) in [
            (">", Some(true)),
            ("2>&1", Some(false)),
            (">/x", Some(false)),
            ("<<<", Some(true)),
            ("a>b", None),
        ] {
            assert_eq!(redirection(word), expected, "{word}");
        }
    }
}
