//! Completion scripts: what the argument parser knows, and before it the values that only the program knows (specs, GPUs,
//! images, containers, packages), which each shell asks `envforge generate candidates` for.

use clap::Command;
use clap_complete::Shell;

use super::candidates::option_has_values;

/// A colon is part of a spec, not its end.
const BASH: &str = r#"
_envforge_values() {
    local values
    mapfile -t values < <(envforge generate candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [ "${#values[@]}" -gt 0 ]; then
        COMPREPLY=("${values[@]// /\\ }")
    else
        _envforge "$@"
    fi
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}
complete -F _envforge_values -o bashdefault -o default envforge
"#;

/// Stands before the parser's function, which is called `_envforge_arguments` then.
const ZSH: &str = r#"
_envforge() {
    local -a values
    values=(${(f)"$(envforge generate candidates -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#values )); then
        compadd -- $values
    else
        _envforge_arguments "$@"
    fi
}
"#;

const FISH: &str = r"
function __fish_envforge_values
    set -l words (commandline -opc) (commandline -ct)
    envforge generate candidates -- $words[2..-1] 2>/dev/null
end
complete -c envforge -a '(__fish_envforge_values)'
";

/// Returns the completion script of a shell.
pub(super) fn script(shell: Shell, cli: &mut Command) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, cli, "envforge", &mut script);
    match shell {
        Shell::Bash => [&script, BASH.as_bytes()].concat(),
        Shell::Zsh => zsh(&String::from_utf8_lossy(&script)).into_bytes(),
        Shell::Fish => [script, FISH.into(), options_of_fish(cli).into_bytes()].concat(),
        _ => script,
    }
}

fn zsh(script: &str) -> String {
    let script = script.replacen("\n_envforge() {\n", "\n_envforge_arguments() {\n", 1);
    // The last part registers `_envforge`, or calls it when the file was loaded as that function.
    let (functions, last) = script.rsplit_once("\nif [ \"$funcstack[1]\"").unwrap_or((&script, ""));
    format!("{functions}{ZSH}\nif [ \"$funcstack[1]\"{last}")
}

/// The options whose values the program knows: fish completes the value of an option by the option's own rule alone.
fn options_of_fish(cli: &Command) -> String {
    let mut names = Vec::new();
    let mut open = vec![cli];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        let known = command.get_arguments().filter(|arg| option_has_values(command, arg));
        names.extend(known.filter_map(clap::Arg::get_long));
    }
    names.sort_unstable();
    names.dedup();
    let line = |name: &str| format!("complete -c envforge -l {name} -x -a '(__fish_envforge_values)'\n");
    names.into_iter().map(line).collect()
}
