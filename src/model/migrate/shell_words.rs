//! Commands of a shell script, cut into words: enough to read what `pip install` and `apt-get install` lines say.

/// The commands of a line of shell: split at `&&`, `||`, `;`, `|` and newlines outside of quotes, each as its words without quotes.
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
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                has_word = true;
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
}
