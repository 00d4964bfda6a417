//! The commands by what they are for, as `envforge -h` lists them.

use std::fmt::Write as _;

use clap::Command;

/// The groups in their order: title and commands.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Choose what goes in", &["init", "add", "remove", "lock", "outdated", "why", "plan", "list"]),
    ("Make images", &["build", "verify", "evidence", "push", "import", "vendor", "export"]),
    ("Work in them", &["shell", "run", "ps", "stop", "logs"]),
    ("Look at them", &["images", "inspect", "diff", "size", "prune"]),
    ("Get help", &["doctor", "compat", "generate"]),
];

/// Lists the commands in their groups in the help of the program.
pub(super) fn grouped(program: Command) -> Command {
    let mut list = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(list, "\n{title}:");
        for command in names.iter().filter_map(|name| program.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(list, "  {:<9} {about}", command.get_name());
        }
    }
    program.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let program = Cli::command();
        let mut listed: Vec<_> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut all: Vec<_> = visible.map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn short_help_fits_a_terminal() {
        let text = grouped(Cli::command()).render_help().to_string();
        assert!(text.lines().count() <= 50, "{} lines:\n{text}", text.lines().count());
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        assert!(text.contains("\nMake images:\n  build  ") && text.contains("`envforge --help`"), "{text}");
    }
}
