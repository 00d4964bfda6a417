//! Fenced blocks of a document: their commands, and the sessions of a console with the output shown.

/// A fenced block: its fence is ```` ```LANGUAGE KIND ````.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// A command of a console and the output shown below it.
pub(crate) struct Session {
    pub(crate) command: String,
    pub(crate) output: Vec<String>,
}

/// The blocks of a document.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut all: Vec<Block> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            is_open = !is_open;
            if is_open {
                let (language, kind) = fence.split_once(' ').unwrap_or((fence, ""));
                all.push(Block { language: language.to_owned(), kind: kind.to_owned(), text: String::new() });
            }
        } else if let Some(block) = all.last_mut().filter(|_| is_open) {
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    all
}

/// The commands of a console with their output. A line that ends in `\` continues.
pub(crate) fn sessions(block: &Block) -> Vec<Session> {
    let mut all: Vec<Session> = Vec::new();
    let mut continues = false;
    for line in block.text.lines() {
        let new = line.strip_prefix("$ ");
        match (new, all.last_mut()) {
            (Some(command), _) => all.push(Session { command: command.to_owned(), output: Vec::new() }),
            (None, Some(last)) if continues => last.command = format!("{}\n{line}", last.command),
            (None, Some(last)) => last.output.push(line.to_owned()),
            (None, None) => panic!("a console begins with `$ `: {line}"),
        }
        continues = line.ends_with('\\');
    }
    all
}

/// Whether an output is that shown; `…` alone on a line stands for any lines. The error is the first line that is missing.
pub(crate) fn matches(shown: &[String], output: &str) -> Result<(), String> {
    let mut lines = output.lines().map(str::trim_end);
    let mut any = false;
    for line in shown.iter().map(|line| line.trim_end()) {
        if line == "…" {
            any = true;
            continue;
        }
        let found = if any { lines.any(|next| next == line) } else { lines.next() == Some(line) };
        if !found {
            return Err(line.to_owned());
        }
        any = false;
    }
    match lines.find(|line| !line.is_empty()) {
        Some(more) if !any => Err(format!("{more} (output goes on)")),
        _ => Ok(()),
    }
}

/// The calls of envforge in a block of a shell, a console or a pipeline, as words.
pub(crate) fn commands(block: &Block) -> Vec<Vec<String>> {
    if !["sh", "console", "yaml", "text", ""].contains(&&*block.language) {
        return Vec::new();
    }
    let joined = block.text.replace("\\\n", " ");
    let lines = joined.lines().filter_map(|line| {
        let line = line.trim();
        let line = if block.language == "console" { line.strip_prefix("$ ")? } else { line };
        let line = line.trim_start_matches("- ").trim_start_matches("run: ");
        (line.starts_with("envforge ") && !line.contains("[OPTIONS]")).then_some(line)
    });
    // Examples of `--help` have an explanation after two blanks; usage has placeholders.
    let of_help = block.language == "text";
    lines
        .flat_map(|line| calls(if of_help { line.split("  ").next().unwrap_or(line) } else { line }))
        .collect()
}

/// Splits a line at `&&`, `|`, `>` and `#`, and each part into words, as a shell does.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => {
                let last: &mut Vec<String> = all.last_mut().expect("one at least");
                match word.take() {
                    Some(operator) if ["&&", "|", "||", ";"].contains(&&*operator) => all.push(Vec::new()),
                    Some(end) if end == ">" || end == "#" => break,
                    Some(plain) => last.push(plain),
                    None => {}
                }
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.retain(|words| words.first().is_some_and(|name| name == "envforge"));
    all
}

#[test]
fn output_is_compared_with_gaps() {
    let shown = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(matches(&shown("a\n…\nd"), "a\nb\nc\nd\n"), Ok(()));
    assert_eq!(matches(&shown("a\n…"), "a\nb\n"), Ok(()));
    assert_eq!(matches(&shown("a\nc"), "a\nb\nc\n"), Err("c".to_owned()));
    assert_eq!(matches(&shown("a"), "a\nb\n"), Err("b (output goes on)".to_owned()));
    assert_eq!(matches(&shown("…\ne"), "a\nb\n"), Err("e".to_owned()));
}

#[test]
fn commands_are_split_as_in_a_shell() {
    let all = calls("envforge plan x --gpu \"NVIDIA L4\" && envforge build -t 'a b' > f # note");
    assert_eq!(
        all,
        [vec!["envforge", "plan", "x", "--gpu", "NVIDIA L4"], vec!["envforge", "build", "-t", "a b"]]
    );
    let block = &blocks("```console docker\n$ envforge a \\\n  b\nout\n$ ls\n```\n")[0];
    assert_eq!((block.language.as_str(), block.kind.as_str()), ("console", "docker"));
    assert_eq!(commands(block), [["envforge", "a", "b"]]);
    let sessions = sessions(block);
    assert_eq!(sessions[0].command, "envforge a \\\n  b");
    assert_eq!((&*sessions[1].command, sessions[0].output.len()), ("ls", 1));
}
