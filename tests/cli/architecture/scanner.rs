//! Reads the tokens of a file into modules: declarations, imports, and the paths of its code.

use super::modules::{Files, Import, Module, Modules, PathText};
use crate::rust_tokens::Token;

/// What the attributes before an item say.
#[derive(Default)]
struct Attributes {
    is_test: bool,
    path: Option<(String, usize)>,
}

/// Reads the tokens of one file.
pub(super) struct Scanner<'a> {
    modules: &'a mut Modules,
    files: &'a Files,
    tokens: &'a [(Token, usize)],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(modules: &'a mut Modules, files: &'a Files, tokens: &'a [(Token, usize)]) -> Self {
        Self { modules, files, tokens, at: 0 }
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    fn is_punct(&self, ahead: usize, c: char) -> bool {
        self.token(ahead) == Some(&Token::Punct(c))
    }

    fn ident(&self, ahead: usize) -> Option<&str> {
        match self.token(ahead) {
            Some(Token::Ident(name)) => Some(name),
            _ => None,
        }
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |(_, line)| *line)
    }

    /// Reads a module up to its closing brace, or the end of the file.
    pub(super) fn scan(&mut self, module: usize, is_file: bool) {
        let mut depth = 0;
        let mut attributes = Attributes::default();
        let mut is_public = false;
        while let Some(token) = self.token(0).cloned() {
            match token {
                Token::Punct('#')
                    if self.is_punct(1, '[') || (self.is_punct(1, '!') && self.is_punct(2, '[')) =>
                {
                    let is_inner = self.is_punct(1, '!');
                    self.attribute(module, &mut attributes);
                    if is_inner && std::mem::take(&mut attributes.is_test) {
                        self.modules.all[module].is_test = true;
                    }
                    continue;
                }
                Token::Ident(word) if word == "pub" => {
                    is_public = true;
                    self.at += 1;
                    if self.is_punct(0, '(') {
                        self.skip_group();
                    }
                    continue;
                }
                Token::Ident(word) if word == "mod" && self.ident(1).is_some() => {
                    self.module(module, &std::mem::take(&mut attributes));
                    is_public = false;
                    continue;
                }
                _ if attributes.is_test => {
                    self.skip_item();
                    (attributes, is_public) = (Attributes::default(), false);
                    continue;
                }
                Token::Ident(word) if word == "use" && !self.is_punct(1, '<') => {
                    self.at += 1;
                    self.use_tree(module, &mut Vec::new(), None, is_public);
                }
                Token::Ident(word) if word == "extern" && self.ident(1) == Some("crate") => {
                    self.extern_crate(module, is_public);
                }
                Token::Punct('{') => depth += 1,
                Token::Punct('}') if depth == 0 && !is_file => {
                    self.at += 1;
                    return;
                }
                Token::Punct('}') => depth -= 1,
                Token::Ident(word) => self.word(module, &word, depth == 0),
                _ => {}
            }
            (attributes, is_public) = (Attributes::default(), false);
            self.at += 1;
        }
    }

    /// An identifier in code: a definition, a macro call, or the beginning of a path.
    fn word(&mut self, module: usize, word: &str, is_top: bool) {
        let line = self.line();
        self.modules.all[module].has_code = true;
        let next = self.ident(1).map(ToOwned::to_owned);
        let defines = ["fn", "struct", "enum", "trait", "type", "const", "static", "union"].contains(&word);
        if let (true, true, Some(name)) = (is_top, defines, &next) {
            self.modules.all[module].items.insert(name.clone());
        }
        if self.is_punct(1, '!') {
            if let ("macro_rules", Some(name)) = (word, self.ident(2).map(ToOwned::to_owned)) {
                if !self.modules.all[module].is_test {
                    let file = self.modules.all[module].file.clone();
                    self.modules.macros.insert(name, file);
                }
            } else if ['(', '[', '{'].iter().any(|open| self.is_punct(2, *open)) {
                self.modules.all[module].macro_calls.push((word.to_owned(), line));
                if let ("include", Some(Token::Text(file))) = (word, self.token(3).cloned()) {
                    let file = normal(&join(parent(&self.modules.all[module].file), &file));
                    self.modules.all[module].file_references.push((file, line));
                }
            }
        }
        let before = |back: usize| self.at.checked_sub(back).map(|at| &self.tokens[at].0);
        if before(1) == Some(&Token::Punct('.')) {
            return;
        }
        let is_absolute = before(1) == Some(&Token::Sep);
        if is_absolute && matches!(before(2), Some(Token::Ident(_) | Token::Punct('>'))) {
            return;
        }
        self.modules.all[module].idents.entry(word.to_owned()).or_insert(line);
        if self.token(1) == Some(&Token::Sep) {
            let mut segments = vec![word.to_owned()];
            let mut ahead = 1;
            while let (Some(Token::Sep), Some(name)) = (self.token(ahead), self.ident(ahead + 1)) {
                segments.push(name.to_owned());
                ahead += 2;
            }
            self.modules.all[module].paths.push(PathText { segments, is_absolute, line });
        }
    }

    /// Reads an attribute; paths in its strings count (`serde(with = "…")`), and its other tokens as code.
    fn attribute(&mut self, module: usize, attributes: &mut Attributes) {
        let begin = self.at;
        self.at += 1 + usize::from(self.is_punct(1, '!'));
        self.skip_group();
        let end = std::mem::replace(&mut self.at, begin);
        let had_code = self.modules.all[module].has_code;
        let words: Vec<&Token> = self.tokens[begin..end].iter().map(|(token, _)| token).collect();
        let is = |at: usize, name: &str| matches!(words.get(at), Some(Token::Ident(word)) if word == name);
        let first = words.iter().position(|token| matches!(token, Token::Ident(_))).unwrap_or(0);
        // `cfg(test)` and `cfg(all(test, …))`, but not `cfg(any(test, …))`.
        attributes.is_test |= is(first, "cfg")
            && (is(first + 2, "test") && words.get(first + 3) == Some(&&Token::Punct(')'))
                || (is(first + 2, "all") && is(first + 4, "test")));
        let (is_path, is_prose) = (is(first, "path") || is(first, "cfg_attr"), is(first, "doc"));
        while self.at < end {
            let line = self.line();
            match self.token(0).cloned() {
                Some(Token::Text(text)) if is_path && self.assigned("path") => {
                    attributes.path = Some((text, line));
                }
                Some(Token::Text(text)) if !is_prose && !self.assigned("reason") && is_path_text(&text) => {
                    let segments = text.split("::").map(|segment| segment.trim().to_owned()).collect();
                    self.modules.all[module].paths.push(PathText { segments, is_absolute: false, line });
                }
                Some(Token::Ident(word)) => self.word(module, &word, false),
                _ => {}
            }
            self.at += 1;
        }
        self.modules.all[module].has_code = had_code;
    }

    /// Whether the present token is the value of `name = …`.
    fn assigned(&self, name: &str) -> bool {
        self.at >= 2
            && self.tokens[self.at - 1].0 == Token::Punct('=')
            && self.tokens[self.at - 2].0 == Token::Ident(name.to_owned())
    }

    /// `mod name;` or `mod name { … }`.
    fn module(&mut self, parent_module: usize, attributes: &Attributes) {
        let line = self.line();
        let name = self.ident(1).unwrap_or_default().to_owned();
        self.at += 2;
        let (is_inline, above) = (self.is_punct(0, '{'), &self.modules.all[parent_module]);
        let is_nested = above.parent.is_some_and(|up| self.modules.all[up].file == above.file);
        let mut child = Module {
            file: above.file.clone(),
            root: above.root,
            parent: Some(parent_module),
            is_test: above.is_test || attributes.is_test,
            ..Module::default()
        };
        if is_inline {
            let own = attributes.path.as_ref().map_or(name.as_str(), |(path, _)| path);
            child.folder = normal(&join(&above.folder, own));
            let child = self.modules.add_child(&name, child);
            self.at += 1;
            self.scan(child, false);
            return;
        }
        if let Some((path, _)) = &attributes.path {
            let beside = if is_nested { above.folder.clone() } else { parent(&above.file).to_owned() };
            child.file = normal(&join(&beside, path));
            parent(&child.file).clone_into(&mut child.folder);
        } else {
            let plain = join(&above.folder, &format!("{name}.rs"));
            child.folder = join(&above.folder, &name);
            child.file = if self.files.contains_key(&plain) { plain } else { join(&child.folder, "mod.rs") };
        }
        let in_folder = above.folder != parent(&above.file) && is_nested;
        if (attributes.path.is_some() || in_folder) && !child.is_test {
            let reference = (child.file.clone(), line);
            self.modules.all[parent_module].file_references.push(reference);
        }
        if !self.files.contains_key(&child.file) {
            let from = self.modules.all[parent_module].file.clone();
            self.modules.missing.push((from, child.file));
            return;
        }
        let child = self.modules.add_child(&name, child);
        self.modules.read_file(self.files, child);
    }

    /// One branch of a `use` tree; stops at the token that ends it.
    fn use_tree(&mut self, module: usize, prefix: &mut Vec<String>, absolute: Option<bool>, is_public: bool) {
        let (line, depth) = (self.line(), prefix.len());
        let mut is_absolute = absolute;
        loop {
            match self.token(0).cloned() {
                Some(Token::Sep) => is_absolute = is_absolute.or(Some(true)),
                Some(Token::Punct('{')) => {
                    self.at += 1;
                    while self.token(0).is_some() && !self.is_punct(0, '}') {
                        self.use_tree(module, prefix, is_absolute, is_public);
                        if self.is_punct(0, ',') {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                Some(Token::Punct('*')) => {
                    self.at += 1;
                    self.import(module, None, prefix, (is_absolute, line, is_public));
                    break;
                }
                Some(Token::Ident(word)) => {
                    is_absolute = is_absolute.or(Some(false));
                    if word != "self" || prefix.is_empty() {
                        prefix.push(word);
                    }
                    if self.token(1) != Some(&Token::Sep) {
                        self.at += 1;
                        let mut name = prefix.last().cloned().unwrap_or_default();
                        if self.ident(0) == Some("as") {
                            self.ident(1).unwrap_or_default().clone_into(&mut name);
                            self.at += 2;
                        }
                        self.import(module, Some(name), prefix, (is_absolute, line, is_public));
                        break;
                    }
                }
                _ => break,
            }
            self.at += 1;
        }
        prefix.truncate(depth);
    }

    fn import(
        &mut self,
        module: usize,
        name: Option<String>,
        segments: &[String],
        (is_absolute, line, is_public): (Option<bool>, usize, bool),
    ) {
        let path = PathText { segments: segments.to_vec(), is_absolute: is_absolute.unwrap_or(false), line };
        self.modules.all[module].imports.push(Import { name, path, is_public });
    }

    /// `extern crate name as other;`
    fn extern_crate(&mut self, module: usize, is_public: bool) {
        let line = self.line();
        let name = self.ident(2).unwrap_or_default().to_owned();
        self.at += 2;
        let alias =
            if self.ident(1) == Some("as") { self.ident(2).unwrap_or_default() } else { &name }.to_owned();
        let (segments, is_absolute) =
            if name == "self" { (vec!["crate".to_owned()], false) } else { (vec![name], true) };
        let path = PathText { segments, is_absolute, line };
        self.modules.all[module].imports.push(Import { name: Some(alias), path, is_public });
        while self.token(0).is_some() && !self.is_punct(0, ';') {
            self.at += 1;
        }
    }

    /// Skips a bracketed group that begins at the present token.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.token(0) {
            match token {
                Token::Punct('(' | '[' | '{') => depth += 1,
                Token::Punct(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips an item that is compiled for tests only, or a field, arm or statement.
    fn skip_item(&mut self) {
        let ends_at_semicolon = match self.ident(0) {
            Some("use" | "static" | "type" | "let" | "extern") => true,
            Some("const") => !matches!(self.ident(1), Some("fn" | "unsafe" | "async")),
            _ => false,
        };
        let is_item = ends_at_semicolon
            || ["fn", "impl", "struct", "enum", "trait", "unsafe", "async", "const", "macro_rules", "union"]
                .iter()
                .any(|word| self.ident(0) == Some(word));
        while let Some(token) = self.token(0).cloned() {
            match token {
                Token::Punct('(' | '[') => self.skip_group(),
                Token::Punct('{') => {
                    self.skip_group();
                    if !ends_at_semicolon {
                        return;
                    }
                }
                Token::Punct('}' | ')' | ']') => return,
                Token::Punct(';') => {
                    self.at += 1;
                    return;
                }
                Token::Punct(',') if !is_item => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }
}

/// The folder of a file.
pub(super) fn parent(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// A path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether a string is a path of at least two names, as attributes take it.
fn is_path_text(text: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.trim();
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    text.contains("::") && text.split("::").all(is_name)
}
