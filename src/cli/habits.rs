//! The words of other programs (docker, uv, conda, pixi, npm) for what envforge calls otherwise.

/// Words that people type in a verb's place, what envforge has instead, and a call of it.
pub(super) struct Habit {
    pub(super) words: &'static [&'static str],
    /// What does it here.
    pub(super) answer: &'static str,
    pub(super) example: &'static str,
}

const fn habit(words: &'static [&'static str], answer: &'static str, example: &'static str) -> Habit {
    Habit { words, answer, example }
}

/// Verbs. A word of two meanings has the one that a project needs first.
pub(super) const HABITS: &[Habit] = &[
    habit(
        &["install", "i", "pip", "conda"],
        "`add` puts packages into envforge.toml and locks them",
        "envforge add einops",
    ),
    habit(
        &["uninstall", "rm", "delete", "del"],
        "`remove` takes packages out of envforge.toml",
        "envforge remove einops",
    ),
    habit(
        &["upgrade", "update"],
        "`lock --upgrade` locks the newest versions, `lock -P` those of one package",
        "envforge lock --upgrade",
    ),
    habit(&["create", "new"], "`init` creates a project", "envforge init pytorch-cuda"),
    habit(&["env", "venv", "virtualenv"], "`init` creates a project from what is here", "envforge init"),
    habit(
        &["activate", "deactivate", "enter", "open", "bash", "sh"],
        "`shell` opens an environment, `exit` leaves it",
        "envforge shell",
    ),
    habit(&["ssh"], "`shell --ssh` opens an environment to SSH and VS Code", "envforge shell --ssh"),
    habit(
        &["explain", "diagnose", "why-not"],
        "`doctor --explain` explains an error message",
        "envforge doctor --explain train.log",
    ),
    habit(
        &["exec"],
        "`shell NAME` runs a command in a running container",
        "envforge shell run1 -- nvidia-smi",
    ),
    habit(
        &["attach"],
        "`shell --attach` opens the session of a running container",
        "envforge shell --attach run1",
    ),
    habit(&["up", "start", "restart"], "`shell --detach` starts a container", "envforge shell --detach"),
    habit(&["down", "kill"], "`stop` ends containers", "envforge stop run1"),
    habit(
        &["top", "stats", "container", "containers"],
        "`ps` shows containers and their GPUs",
        "envforge ps --watch",
    ),
    habit(&["ls", "image"], "`images` lists images, `ps` containers", "envforge images"),
    habit(
        &["rmi", "clean", "cache", "system"],
        "`prune` removes unused images and downloads",
        "envforge prune --cache",
    ),
    habit(&["compose"], "`export compose` writes a compose.yaml", "envforge export compose ./compose"),
    habit(
        &["completion", "completions"],
        "`generate completions` prints the script for a shell",
        "envforge generate completions bash",
    ),
    habit(&["sync", "make"], "`build` makes the image of the lock file", "envforge build"),
    habit(&["compile", "freeze", "resolve"], "`lock` pins every package", "envforge lock"),
    habit(&["search", "versions"], "`list` shows what can be built", "envforge list pytorch-cuda"),
    habit(
        &["show", "tree", "sbom"],
        "`inspect` shows the contents of an image or lock file",
        "envforge inspect",
    ),
    habit(&["info", "config", "check", "status"], "`doctor` examines this machine", "envforge doctor"),
    habit(&["test", "validate"], "`verify` checks an image", "envforge verify pytorch-cuda:2.8-cu128"),
    habit(&["history"], "`size` shows the parts of an image", "envforge size pytorch-cuda:2.8-cu128"),
    habit(
        &["login", "logout"],
        "envforge uses the logins of docker (`docker login HOST`) for registries",
        "envforge push registry.example.com/team/torch:2.8",
    ),
    habit(
        &["pull"],
        "`shell` and `verify` pull an image themselves",
        "envforge shell registry.example.com/team/torch:2.8",
    ),
    habit(&["load"], "`import` loads an image into the engine", "envforge import torch.tar torch:2.8"),
    habit(
        &["save"],
        "`export oci` writes an image into a file",
        "envforge export oci pytorch-cuda:2.8-cu128 torch.tar",
    ),
    habit(
        &["tag"],
        "`build --tag` names an image",
        "envforge build --tag registry.example.com/team/torch:2.8",
    ),
    habit(
        &["publish", "upload"],
        "`push` puts an image into a registry",
        "envforge push registry.example.com/team/torch:2.8",
    ),
    habit(&["download", "fetch"], "`vendor` downloads the locked files", "envforge vendor ./vendor"),
    habit(&["python"], "`run` runs a command in the project's image", "envforge run python train.py"),
    habit(&["notebook", "jupyter", "lab"], "`shell --jupyter` starts JupyterLab", "envforge shell --jupyter"),
];

/// An option that people type, the verbs it is typed for (none: all others), and what to do.
pub(super) struct OptionHabit {
    pub(super) options: &'static [&'static str],
    pub(super) verbs: &'static [&'static str],
    pub(super) answer: &'static str,
}

pub(super) const OPTION_HABITS: &[OptionHabit] = &[
    OptionHabit {
        options: &["--arch", "--machine", "--cpu"],
        verbs: &["plan", "lock", "build", "list"],
        answer: "the processor is part of a platform, as in `envforge plan pytorch-cuda --platform linux/arm64`",
    },
    OptionHabit {
        options: &["--devel", "--dev", "--flavor", "--flavour"],
        verbs: &["plan", "lock", "build"],
        answer: "the flavour is the end of the spec, as in `envforge plan pytorch-cuda:2.8-cu128-devel`",
    },
    OptionHabit {
        options: &["-i", "-t"],
        verbs: &["shell", "run"],
        answer: "a terminal is attached where there is one: omit `-it`, as in `envforge run python`",
    },
    OptionHabit {
        options: &["--rm"],
        verbs: &["shell", "run"],
        answer: "the container is removed when its command ends: omit `--rm`, as in `envforge run python`",
    },
    OptionHabit {
        options: &["-w", "--workdir", "--cwd"],
        verbs: &["shell", "run"],
        answer: "a command starts in your current directory, as in `cd src && envforge run pwd`",
    },
    OptionHabit {
        options: &["-n"],
        verbs: &["shell", "run"],
        answer: "an environment of the project is `-E NAME`, as in `envforge shell -E train`",
    },
    OptionHabit {
        options: &["-a", "--all"],
        verbs: &["ps"],
        answer: "all of them are listed already: omit it, as in `envforge ps`",
    },
    OptionHabit {
        options: &["-a", "--all"],
        verbs: &["images"],
        answer: "all of them are listed already: omit it, as in `envforge images`",
    },
    OptionHabit {
        options: &["--frozen"],
        verbs: &["build", "lock", "vendor"],
        answer: "`--locked` takes the lock file as it is, as in `envforge build --locked`",
    },
    OptionHabit {
        options: &["--dev", "-D", "--group"],
        verbs: &["add", "remove"],
        answer: "packages of one environment are added with -E, as in `envforge add -E train einops`",
    },
    OptionHabit {
        options: &["--gpus"],
        verbs: &["build"],
        answer: "`--gpu` names the GPU that the image is for, as in `envforge build --gpu sm_90`",
    },
    OptionHabit {
        options: &["-r", "--requirements"],
        verbs: &["add", "init"],
        answer: "requirement files are read by `init`, as in `envforge init --from requirements.txt`",
    },
    OptionHabit {
        options: &["-e"],
        verbs: &[],
        answer: "`-e` is a variable of `shell` and `run`; for an environment write -E, as in `envforge build -E train`",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_word_has_one_answer_and_is_not_a_command() {
        let command = Cli::command();
        let mut seen = BTreeSet::new();
        for word in HABITS.iter().flat_map(|habit| habit.words) {
            assert!(seen.insert(word), "`{word}` has two answers");
            assert!(command.find_subcommand(word).is_none(), "`{word}` is a command");
        }
        for verb in OPTION_HABITS.iter().flat_map(|habit| habit.verbs) {
            assert!(command.find_subcommand(verb).is_some(), "`{verb}` is not a command");
        }
    }

    #[test]
    fn each_example_is_a_call() {
        for habit in HABITS {
            let words = habit.example.split(' ');
            assert!(Cli::try_parse_from(words).is_ok(), "{}", habit.example);
            let verb = habit.example.split(' ').nth(1).unwrap_or_default();
            assert!(Cli::command().find_subcommand(verb).is_some(), "{verb}");
        }
        for habit in OPTION_HABITS {
            let example = habit.answer.rsplit('`').nth(1).expect("an example");
            let words = example.rsplit(" && ").next().unwrap_or_default().split(' ');
            assert!(Cli::try_parse_from(words).is_ok(), "{example}");
        }
    }
}
