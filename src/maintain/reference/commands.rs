//! The book's pages of commands, from the argument parser.

use clap::{Arg, Command};

use crate::model::markdown::{MarkdownPage, code};

/// Returns the page of all commands and one page for each, by path below the reference.
pub(in crate::maintain) fn pages(cli: &Command) -> Vec<(String, String)> {
    let mut all = vec![("commands.md".to_owned(), index(cli))];
    for command in visible(cli) {
        let mut page = MarkdownPage::new(&format!("envforge {}", command.get_name()));
        describe(&mut page, command, &format!("envforge {}", command.get_name()), 2);
        all.push((format!("cli/{}.md", command.get_name()), page.finish()));
    }
    all
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
}

fn index(cli: &Command) -> String {
    let mut page = MarkdownPage::new("Commands");
    page.paragraph("Each command has a page with its arguments. `envforge COMMAND --help` prints the same.");
    page.table(
        &["command", "purpose"],
        visible(cli).map(|command| {
            let name = command.get_name();
            vec![format!("[`{name}`](cli/{name}.md)"), about(command)]
        }),
    );
    let global: Vec<_> = cli.get_arguments().filter(|arg| arg.is_global_set()).collect();
    page.heading(2, "Options of every command");
    page.list(global.into_iter().map(entry));
    after(&mut page, cli, 2);
    page.finish()
}

/// Describes a command and those below it.
fn describe(page: &mut MarkdownPage, command: &Command, name: &str, level: usize) {
    page.paragraph(&full_stop(&about(command)));
    let usage = command.clone().bin_name(name).render_usage().to_string();
    page.block(usage.trim_start_matches("Usage:").trim_start());
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| {
            !arg.is_global_set()
                && !arg.is_hide_set()
                && !["help", "version"].contains(&arg.get_id().as_str())
        })
        .collect();
    let heading = |arg: &Arg| -> String {
        let default = if arg.is_positional() { "Arguments" } else { "Options" };
        arg.get_help_heading().filter(|_| !arg.is_positional()).unwrap_or(default).to_owned()
    };
    let mut headings: Vec<String> = Vec::new();
    for arg in &own {
        let name = heading(arg);
        if !headings.contains(&name) {
            headings.push(name);
        }
    }
    for name in headings {
        page.heading(level, &name);
        page.list(own.iter().filter(|arg| heading(arg) == name).map(|arg| entry(arg)));
    }
    after(page, command, level);
    for sub in visible(command) {
        let name = format!("{name} {}", sub.get_name());
        page.heading(level, &name);
        describe(page, sub, &name, level + 1);
    }
}

/// Adds the text that `--help` prints last: examples, then paragraphs.
fn after(page: &mut MarkdownPage, command: &Command, level: usize) {
    let text = command.get_after_long_help().or(command.get_after_help());
    let Some(text) = text.map(ToString::to_string) else { return };
    for paragraph in text.split("\n\n") {
        let (head, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        if let Some(title) = head.strip_suffix(':').filter(|_| rest.starts_with("  ")) {
            page.heading(level, title);
            let lines: Vec<_> = rest.lines().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
            page.block(&lines.join("\n"));
        } else {
            // A line that ends in a full stop ends a paragraph; others are wrapped for terminals.
            for line in paragraph.replace(".\n", ".\n\n").split("\n\n") {
                page.paragraph(line);
            }
        }
    }
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn full_stop(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// Returns one argument with its help, values and default.
fn entry(arg: &Arg) -> String {
    let values: Vec<_> =
        arg.get_value_names().into_iter().flatten().map(|name| format!("<{name}>")).collect();
    let takes_value = arg.get_action().takes_values();
    let mut name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => arg.to_string(),
    };
    if takes_value && !arg.is_positional() {
        name = format!("{name} {}", values.join(" "));
    }
    let mut text =
        format!("{}: {}", code(name.trim_end()), arg.get_help().map(ToString::to_string).unwrap_or_default());
    text = full_stop(&text);
    let possible: Vec<_> = arg.get_possible_values();
    if takes_value && possible.len() > 1 {
        let described = possible.iter().filter(|value| !value.is_hide_set()).map(|value| {
            let help = value.get_help().map(|help| format!(" ({})", help.to_string().trim_end_matches('.')));
            format!("{}{}", code(value.get_name()), help.unwrap_or_default())
        });
        text = format!("{text} Values: {}.", described.collect::<Vec<_>>().join(", "));
    }
    let default: Vec<_> =
        arg.get_default_values().iter().map(|value| code(&value.to_string_lossy())).collect();
    if takes_value && !default.is_empty() {
        text = format!("{text} Default: {}.", default.join(" "));
    }
    text
}
