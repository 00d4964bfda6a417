//! The words of docker, uv, conda, pixi and npm: each mistaken verb is answered with the right one.

use crate::{assert_message, envforge, program};

/// What is typed, and the example that answers it.
const WORDS: &[(&str, &str)] = &[
    ("install einops", "envforge add einops"),
    ("pip install einops", "envforge add einops"),
    ("uninstall einops", "envforge remove einops"),
    ("rm einops", "envforge remove einops"),
    ("upgrade", "envforge lock --upgrade"),
    ("update --all", "envforge lock --upgrade"),
    ("create -n train", "envforge init pytorch-cuda"),
    ("new", "envforge init pytorch-cuda"),
    ("env list", "envforge init"),
    ("venv", "envforge init"),
    ("activate train", "envforge shell"),
    ("deactivate", "envforge shell"),
    ("exec run1 nvidia-smi", "envforge shell run1 -- nvidia-smi"),
    ("attach run1", "envforge shell --attach run1"),
    ("up -d", "envforge shell --detach"),
    ("start", "envforge shell --detach"),
    ("down", "envforge stop run1"),
    ("kill run1", "envforge stop run1"),
    ("top", "envforge ps --watch"),
    ("ls", "envforge images"),
    ("rmi torch", "envforge prune --cache"),
    ("cache clean", "envforge prune --cache"),
    ("sync", "envforge build"),
    ("compile", "envforge lock"),
    ("search torch", "envforge list pytorch-cuda"),
    ("show einops", "envforge inspect"),
    ("info", "envforge doctor"),
    ("login box.test", "`docker login HOST`"),
    ("pull torch:2.8", "envforge shell registry.example.com/team/torch:2.8"),
    ("save torch:2.8", "envforge export oci"),
    ("load -i torch.tar", "envforge import torch.tar torch:2.8"),
    ("tag a b", "envforge build --tag"),
    ("python train.py", "envforge run python train.py"),
    ("notebook", "envforge shell --jupyter"),
    // Options.
    ("ps -a", "as in `envforge ps`"),
    ("images --all", "as in `envforge images`"),
    ("run -it python", "omit `-it`"),
    ("shell -it pytorch-cuda:2.8", "omit `-it`"),
    ("run --rm python", "omit `--rm`"),
    ("shell -w /x", "starts in your current directory"),
    ("shell -n train", "envforge shell -E train"),
    ("add -r requirements.txt", "envforge init --from requirements.txt"),
    ("build -e train", "for an environment write -E"),
    ("plan -e train", "for an environment write -E"),
    ("push -e train box.test/x:1", "for an environment write -E"),
    ("run --nope -v /d:/data", "--mount /d:/data"),
    ("shell pytorch-cuda:2.8 python x.py", "`envforge shell pytorch-cuda:2.8 -- python x.py`"),
];

#[test]
fn word_of_another_program_is_answered_with_ours() {
    for (typed, answer) in WORDS {
        let words: Vec<_> = typed.split(' ').collect();
        let run = envforge(&words);
        assert_eq!(run.code, 2, "{typed}: {}", run.stderr);
        assert!(run.stdout.is_empty() && run.stderr.contains("tip: "), "{typed}: {}", run.stderr);
        assert!(run.stderr.contains(answer), "{typed}: {}", run.stderr);
        assert!(
            !run.stderr.contains("similar") && run.stderr.matches("tip: ").count() == 1,
            "{}",
            run.stderr
        );
    }
}

#[test]
fn word_of_ours_that_is_misspelt_keeps_its_guess() {
    let run = envforge(&["biuld"]);
    assert!(run.code == 2 && run.stderr.contains("similar subcommand exists: 'build'"), "{}", run.stderr);
    let run = envforge(&["frobnicate"]);
    assert!(run.code == 2 && !run.stderr.contains("tip: "), "{}", run.stderr);
}

#[test]
fn image_in_place_of_the_projects_command_is_refused() {
    let program = program();
    let file = "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n";
    std::fs::write(program.path("envforge.toml"), file).expect("ours");
    for args in [&["run", "torch:2.8", "python", "x.py"][..], &["shell", "--", "torch:2.8", "python", "x.py"]]
    {
        let says = ["`torch:2.8` is an image, not a command", "`envforge shell torch:2.8 -- python x.py`"];
        assert_message(&program.run(args), 125, &says);
    }
    let mount = program.run(&["run", "-v", "/d:/data", "python"]);
    assert_message(&mount, 125, &["`/d:/data` is not an image", "--mount /d:/data"]);
    // A command goes on to the engine.
    let program = program.with("DOCKER_HOST", "unix:///nonexistent.sock");
    assert_message(&program.run(&["run", "python", "-c", "x"]), 125, &["nonexistent.sock"]);
}
