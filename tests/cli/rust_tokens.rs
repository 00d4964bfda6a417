//! Rust source as tokens: comments are dropped, strings are one token each, so that neither hides a path nor invents one.

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// An identifier or keyword; raw ones (`r#type`) without their prefix.
    Ident(String),
    /// The content of a string literal, raw and byte strings too.
    Text(String),
    /// `::`
    Sep,
    /// Any other character.
    Punct(char),
    /// A number, a character or a lifetime.
    Other,
}

/// Splits source text into tokens, each with its line.
pub(crate) fn tokens(text: &str) -> Vec<(Token, usize)> {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0, line: 1, tokens: Vec::new() };
    while lexer.at < lexer.chars.len() {
        lexer.step();
    }
    lexer.tokens
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    tokens: Vec<(Token, usize)>,
}

impl Lexer {
    /// The character `ahead` of the present one; NUL at the end.
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    /// Moves on by one character and counts lines.
    fn bump(&mut self) -> char {
        let c = self.peek(0);
        self.at += 1;
        self.line += usize::from(c == '\n');
        c
    }

    fn push(&mut self, token: Token, line: usize) {
        self.tokens.push((token, line));
    }

    fn step(&mut self) {
        let (line, c) = (self.line, self.peek(0));
        match c {
            _ if c.is_whitespace() => {
                self.bump();
            }
            '/' if self.peek(1) == '/' => {
                while self.at < self.chars.len() && self.peek(0) != '\n' {
                    self.bump();
                }
            }
            '/' if self.peek(1) == '*' => self.block_comment(),
            '"' => self.string(line),
            '\'' => self.quote(line),
            ':' if self.peek(1) == ':' => {
                self.at += 2;
                self.push(Token::Sep, line);
            }
            _ if c.is_ascii_digit() => {
                while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                    self.bump();
                }
                self.push(Token::Other, line);
            }
            _ if c.is_alphabetic() || c == '_' => self.word(line),
            _ => {
                self.bump();
                self.push(Token::Punct(c), line);
            }
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => (depth, self.at) = (depth + 1, self.at + 2),
                ('*', '/') => (depth, self.at) = (depth - 1, self.at + 2),
                _ => {
                    self.bump();
                }
            }
            if depth == 0 || self.at >= self.chars.len() {
                return;
            }
        }
    }

    /// A string that begins at the present `"`.
    fn string(&mut self, line: usize) {
        self.bump();
        let mut text = String::new();
        while self.at < self.chars.len() {
            match self.bump() {
                '"' => break,
                '\\' => match self.bump() {
                    'n' => text.push('\n'),
                    // A line continued: its indentation is no text.
                    '\n' => {
                        while self.peek(0).is_whitespace() {
                            self.bump();
                        }
                    }
                    other => text.push(other),
                },
                c => text.push(c),
            }
        }
        self.push(Token::Text(text), line);
    }

    /// A string of the form `#"…"#`, whose prefix letter has been read.
    fn raw_string(&mut self, line: usize) {
        let mut hashes = 0;
        while self.peek(0) == '#' {
            hashes += 1;
            self.bump();
        }
        self.bump();
        let mut text = String::new();
        while self.at < self.chars.len() {
            if self.peek(0) == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == '#') {
                self.at += 1 + hashes;
                break;
            }
            text.push(self.bump());
        }
        self.push(Token::Text(text), line);
    }

    /// A character literal or a lifetime.
    fn quote(&mut self, line: usize) {
        self.bump();
        if self.peek(0) == '\\' {
            self.at += 2;
            while self.at < self.chars.len() && self.bump() != '\'' {}
        } else if self.peek(1) == '\'' {
            self.bump();
            self.bump();
        } else {
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                self.bump();
            }
        }
        self.push(Token::Other, line);
    }

    /// An identifier, or a string with a prefix.
    fn word(&mut self, line: usize) {
        let mut word = String::new();
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            word.push(self.bump());
        }
        let raw = matches!(word.as_str(), "r" | "br" | "cr");
        let begins_raw = self.peek(0) == '"'
            || (self.peek(0) == '#' && self.chars[self.at..].iter().find(|c| **c != '#') == Some(&'"'));
        if raw && begins_raw {
            self.raw_string(line);
        } else if word == "r" && self.peek(0) == '#' {
            self.bump();
            self.word(line);
        } else if matches!(word.as_str(), "b" | "c") && self.peek(0) == '"' {
            self.string(line);
        } else if word == "b" && self.peek(0) == '\'' {
            self.quote(line);
        } else {
            self.push(Token::Ident(word), line);
        }
    }
}
