//! Packages beside the framework, and dates: what the matrix and the settings alone decide, before any index or engine is asked.

use crate::index::Index;
use crate::program::{Program, Run};
use crate::wheels::WheelSpec;
use crate::{AMBIENT, maintain};

/// A program whose package index counts requests and whose engine does not exist.
fn beside(index: &Index) -> Program {
    Program::new(&AMBIENT)
        .with("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .with("ENVFORGE_INDEX", format!("{}/simple", index.url()))
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The output must name the rule and the reason.
fn assert_refused(run: &Run, words: &[&str]) {
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let text = flat(&run.stderr);
    for word in [&["companion-mismatch"], words].concat() {
        assert!(text.contains(word), "`{word}` is not in: {}", run.stderr);
    }
}

#[test]
fn lock_rejects_a_known_mismatch_before_any_request() {
    let index = Index::local(vec![WheelSpec::new("xformers", "0.0.35").build()]);
    let program = beside(&index);
    for (spec, with, words) in [
        ("pytorch-cuda:2.15", "xformers==0.0.35", "xformers 0.0.35 links CUDA 12"),
        ("pytorch-cuda:2.7.0-cu128", "torchaudio==2.11.0", "the stack pins torchaudio 2.7.0"),
        ("pytorch-cuda:2.9.0-cu128", "torchcodec==0.7.0", "loads with torch 2.8.0, the stack has 2.9.0"),
        ("pytorch-cuda:2.13-cu130", "nvidia-cublas>=13.2", "the torch of the stack accepts nvidia-cublas"),
        ("pytorch-cuda:2.8-cu128", "triton==3.6.0", "accepts triton 3.4.0 only"),
        ("pytorch-cuda:2.10-cu128", "sgl-kernel", "no release of sgl-kernel fits this stack"),
        (
            "vllm-cuda:0.33.0",
            "flashinfer-python==0.6.12",
            "vllm 0.33.0 requires flashinfer-python==0.7.2.post1",
        ),
        ("sglang-cuda:0.5.23", "sglang-kernel==0.4.9", "sglang 0.5.23 requires sglang-kernel==0.4.10"),
        ("sglang-cuda:0.5.23", "flashinfer-python==0.6.0", "sglang 0.5.23 requires flashinfer-python==0.7.2"),
    ] {
        for verb in ["lock", "plan"] {
            let run = program.run(&[verb, spec, "--with", with, "--target", "any"]);
            assert_refused(&run, &[words]);
        }
    }
    assert_eq!(index.seen().len(), 0, "{:?}", index.seen());
    assert!(!program.path("state").join("locks").exists(), "nothing is left of a refused lock");
    // What fits goes on to the engine, and the same address does reach the index.
    let fits = program.run(&["lock", "pytorch-cuda:2.10-cu128", "--with", "xformers", "--target", "any"]);
    assert_eq!(fits.code, 3, "{}", fits.stderr);
    assert!(!fits.stderr.contains("companion-mismatch"), "{}", fits.stderr);
    maintain(&program, &["refresh", "onnxruntime"]);
    assert!(!index.seen().is_empty(), "the index counts requests");
}

#[test]
fn project_with_a_known_mismatch_is_refused_before_any_request() {
    let index = Index::local(Vec::new());
    let program = beside(&index);
    let project = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.11-cu126'\n\
                   [packages]\npython = ['torchao==0.17.0', 'requests']\n";
    std::fs::write(program.path("envforge.toml"), project).expect("ours");
    assert_refused(&program.run(&["lock", "--target", "any"]), &["torchao 0.17.0 links CUDA 13"]);
    assert!(!program.path("envforge.lock").exists());
    assert_eq!(index.seen().len(), 0, "{:?}", index.seen());
}

#[test]
fn plan_names_each_source_once() {
    let program = beside(&Index::local(Vec::new()));
    let with = ["xformers", "torchao", "torchcodec", "torch-scatter"];
    let mut args = vec!["plan", "pytorch-cuda:2.8-cu128", "--target", "any"];
    args.extend(with.iter().flat_map(|name| ["--with", *name]));
    let run = program.run(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (_, sources) = run.stdout.split_once("\nSources of the companions\n").expect("a section");
    let (sources, _) = sources.split_once("\n\n").unwrap_or((sources, ""));
    let text = flat(sources);
    assert_eq!(text.matches("on the default package index").count(), 1, "{text}");
    assert!(text.contains("torchao, torchcodec, xformers: ") && text.contains("torch-scatter: "), "{text}");
    assert!(!run.stdout.contains("    source: "), "{}", run.stdout);
}

#[test]
fn plan_names_the_release_that_fits_or_warns_about_the_name() {
    let program = beside(&Index::local(Vec::new()));
    let run = program.run(&[
        "plan",
        "pytorch-cuda:2.8-cu128",
        "--target",
        "any",
        "--with",
        "flash-attn",
        "--with",
        "mamba",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = flat(&run.stdout);
    assert!(text.contains("flash_attn-2.8.3.post1+cu12torch2.8cxx11abiTRUE-cp311"), "{text}");
    assert!(text.contains("warning: mamba: the package index has an unrelated test runner"), "{text}");
    let lock = program.run(&["lock", "pytorch-cuda:2.8-cu128", "--target", "any", "--with", "mamba"]);
    assert!(flat(&lock.stderr).contains("warning: mamba: the package index"), "{}", lock.stderr);
    let right = program.run(&["lock", "pytorch-cuda:2.8-cu128", "--target", "any", "--with", "mamba-ssm"]);
    assert!(!right.stderr.contains("warning: mamba"), "{}", right.stderr);
}

#[test]
fn date_leaves_later_releases_out() {
    let program = beside(&Index::local(Vec::new()));
    let plan = |args: &[&str]| program.run(&[&["plan", "--target", "any"], args].concat());
    let then = plan(&["pytorch-cuda", "--as-of", "2026-03-01"]);
    assert!(then.stdout.starts_with("pytorch-cuda:2.10.0"), "{}{}", then.stdout, then.stderr);
    let now = plan(&["pytorch-cuda"]);
    assert!(now.stdout.starts_with("pytorch-cuda:2.15"), "{}", now.stdout);
    let later = plan(&["pytorch-cuda:2.12", "--as-of", "2026-03-01"]);
    assert_eq!(later.code, 1);
    assert!(
        flat(&later.stderr).contains("published on 2026-06-17, after the requested date"),
        "{}",
        later.stderr
    );
    // A release of a companion counts, too.
    let xformers = |more: &[&str]| plan(&[&["pytorch-cuda:2.10-cu128", "--with"], more].concat());
    let new = xformers(&["xformers==0.0.35"]);
    assert!(flat(&new.stdout).contains("xformers 0.0.35: wheel"), "{}", new.stdout);
    let later = xformers(&["xformers==0.0.35", "--as-of", "2026-02-01"]);
    assert_refused(&later, &["xformers 0.0.35: published on 2026-02-20, after the requested date"]);
    let old = xformers(&["xformers", "--as-of", "2026-02-01"]);
    assert!(flat(&old.stdout).contains("xformers 0.0.34: wheel"), "{}{}", old.stdout, old.stderr);
    let bad = plan(&["pytorch-cuda", "--as-of", "yesterday"]);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("invalid value for --as-of: `yesterday`"), "{}", bad.stderr);
}

/// A page of links has no upload times: a dated request is refused by the page's name before the engine is asked. The date of the lock
/// counts, `--upgrade` drops it.
#[test]
fn dated_lock_rejects_an_index_without_upload_times_and_upgrade_drops_the_date() {
    let index = Index::local(Vec::new());
    let program = beside(&index);
    let project = format!(
        "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n[packages]\npython = ['own-package']\n\
         indexes = [{{ name = 'pages', url = '{}/files.html', format = 'flat' }}]\n",
        index.url()
    );
    std::fs::write(program.path("envforge.toml"), project).expect("ours");
    let words = "index `pages` is a page of links without upload times, which `--as-of` requires";
    let undated = program.run(&["lock", "--target", "any"]);
    assert!(!undated.stderr.contains(words), "{}", undated.stderr);
    let dated = program.run(&["lock", "--target", "any", "--as-of", "2026-03-01"]);
    assert_eq!(dated.code, 3, "{}", dated.stderr);
    assert!(flat(&dated.stderr).contains(words), "{}", dated.stderr);

    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lock/vector.lock");
    let lock = std::fs::read_to_string(lock).expect("the vector");
    assert!(lock.contains("as-of = \"2026-11-20T00:00:00Z\""), "the vector is of a date");
    std::fs::write(program.path("envforge.lock"), lock).expect("ours");
    let kept = program.run(&["lock", "--target", "any"]);
    assert!(flat(&kept.stderr).contains(words), "{}", kept.stderr);
    let dropped = program.run(&["lock", "--target", "any", "--upgrade"]);
    assert_eq!(dropped.code, 3, "{}", dropped.stderr);
    assert!(!dropped.stderr.contains("upload times"), "{}", dropped.stderr);
    let again = program.run(&["lock", "--target", "any", "--upgrade", "--as-of", "2026-03-01"]);
    assert!(flat(&again.stderr).contains(words), "{}", again.stderr);
    // The two undated runs looked for the package's name; a dated one asks nothing.
    assert_eq!(index.seen().len(), 2, "{:?}", index.seen());
}

#[test]
fn packages_that_only_the_index_knows_are_named() {
    let plan = |with: &str| {
        let run = Program::new(&AMBIENT).run(&["plan", "pytorch-cuda:2.8-cu128", "--with", with]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    };
    let last = "Not checked offline: some-thing: the package index decides at `envforge lock`";
    assert!(plan("some-thing").contains(last), "{}", plan("some-thing"));
    for known in ["flash-attn", "torchvision", "torch==2.8.0+cu128"] {
        assert!(!plan(known).contains("Not checked offline"), "{known}");
    }
}
