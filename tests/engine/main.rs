//! The engine with the machine's own daemon (`cargo test --test engine -- --include-ignored`) and an image created here, without a registry.
//! `faults` simulates a failing daemon and always runs.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files")]

#[path = "../support/daemon.rs"]
mod daemon;
mod faults;
#[path = "../support/http.rs"]
mod http;
mod remote;

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use envforge::engine::{
    Builder as _, ContainerFile, Docker, Engine as _, EngineError, EngineSettings, ImageBuildRequest,
    Images as _, Network, ReachedLimit, RunLimits, RunRequest, Runner as _, Secret,
};
use envforge::model::image::context::{ContextContent, ContextEntry};
use envforge::model::sha256::sha256_hex;
use envforge::report::{Event, NullReporter, Reporter};

/// One static program that does what the tests need of a system.
const TOOL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
static int cat(const char *from, const char *to) {
  FILE *in = fopen(from, "r"), *out = to ? fopen(to, "w") : stdout;
  int c;
  if (!in || !out) { perror(from); return 1; }
  while ((c = fgetc(in)) != EOF) fputc(c, out);
  return fclose(in) | (to ? fclose(out) : fflush(out));
}
int main(int n, char **a) {
  const char *what = n > 1 ? a[1] : "";
  if (!strcmp(what, "-c")) { /* the shell of RUN: words only */
    static char *words[16]; int i = 1; words[0] = "sh";
    for (char *w = strtok(a[2], " "); w && i < 15; w = strtok(NULL, " ")) words[i++] = w;
    return main(i, words);
  }
  if (!strcmp(what, "talk")) { puts("to stdout"); fflush(stdout); fputs("to stderr\nno newline", stderr); return n > 2 ? atoi(a[2]) : 0; }
  if (!strcmp(what, "cat")) return cat(a[2], NULL);
  if (!strcmp(what, "copy")) return cat(a[2], a[3]);
  if (!strcmp(what, "env")) { const char *v = getenv(a[2]); puts(v ? v : "(unset)"); return 0; }
  if (!strcmp(what, "id")) { printf("%d:%d\n", getuid(), getgid()); return 0; }
  if (!strcmp(what, "flood")) for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
  if (!strcmp(what, "forks")) { /* as many as it can */
    int count = 0, child;
    while ((child = fork()) > 0) count++;
    if (!child) { pause(); return 0; }
    printf("%d\n", count); fflush(stdout);
    return 0;
  }
  if (!strcmp(what, "eat")) for (;;) { char *more = malloc(1 << 20); if (more) memset(more, 1, 1 << 20); }
  if (!strcmp(what, "fill")) { /* until the file can grow no more */
    static char mib[1 << 20]; int count = 0;
    FILE *out = fopen(a[2], "w");
    if (!out) { perror(a[2]); return 1; }
    while (fwrite(mib, sizeof mib, 1, out) == 1 && !fflush(out)) count++;
    printf("%d\n", count); fflush(stdout);
    return 0;
  }
  if (!strcmp(what, "sleep")) { puts("sleeping"); fflush(stdout); sleep(atoi(a[2])); return 0; }
  fprintf(stderr, "unknown: %s\n", what);
  return 64;
}
"#;

/// A tag that is removed on drop.
struct Image {
    tag: String,
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", &self.tag]).output();
    }
}

#[derive(Default)]
struct Seen(Mutex<Vec<Event>>);

impl Reporter for Seen {
    fn report(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}

impl Seen {
    fn lines(&self) -> Vec<String> {
        let events = self.0.lock().unwrap();
        let line = |event: &Event| match event {
            Event::StepOutput { line, .. } => Some(line.clone()),
            _ => None,
        };
        events.iter().filter_map(line).collect()
    }
}

async fn docker() -> Docker {
    let docker_host = std::env::var("DOCKER_HOST").ok();
    let settings = EngineSettings { docker_host, ..EngineSettings::default() };
    Docker::connect(&settings).await.expect("a running docker daemon")
}

fn utf8(path: &std::path::Path) -> &Utf8Path {
    Utf8Path::from_path(path).expect("a UTF-8 path")
}

/// A tar that holds `/bin/sh` (the tool) and an empty /tmp.
fn system_tar(folder: &Utf8Path) -> Utf8PathBuf {
    let (source, tool) = (folder.join("tool.c"), folder.join("tool"));
    fs_err::write(&source, TOOL).unwrap();
    let compiled = Command::new("cc").args(["-static", "-O1", "-o", tool.as_str(), source.as_str()]).status();
    assert!(compiled.expect("a C compiler").success());
    let archive = folder.join("system.tar");
    let mut tar = tar::Builder::new(fs_err::File::create(&archive).unwrap());
    tar.append_dir("tmp", folder).unwrap();
    tar.append_path_with_name(&tool, "bin/sh").unwrap();
    tar.into_inner().unwrap();
    archive
}

async fn base(docker: &Docker, name: &str) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let archive = system_tar(utf8(folder.path()));
    let image = Image { tag: format!("envforge-enginetest-{name}:{}", std::process::id()) };
    let sha256 = sha256_hex(&fs_err::read(&archive).unwrap());
    docker.import(archive, &sha256, &image.tag, Arc::new(NullReporter)).await.unwrap();
    image
}

fn run(image: &Image, words: &[&str]) -> RunRequest {
    let command = std::iter::once(&"/bin/sh").chain(words).map(|word| (*word).to_owned()).collect();
    RunRequest { image: image.tag.clone(), command, network: Network::None, ..RunRequest::default() }
}

fn containers() -> String {
    let output = Command::new("docker")
        .args([
            "ps",
            "-a",
            "--filter",
            "label=io.envforge.run",
            "--format",
            "{{.Names}} {{.Label \"io.envforge.run\"}} {{.Image}}",
        ])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
#[ignore = "needs docker"]
async fn connect_reads_the_daemons_features() {
    let docker = docker().await;
    let info = docker.info();
    assert!(info.api.starts_with("1."), "{info:?}");
    assert!(info.runtimes.iter().any(|runtime| runtime == "runc"), "{info:?}");
    assert!(!info.version.is_empty() && info.data_root.is_some(), "{info:?}");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn imported_image_is_found_tagged_and_removed() {
    let docker = docker().await;
    let image = base(&docker, "import").await;
    let info = docker.image(&image.tag).await.unwrap().expect("the imported image");
    assert_eq!(info.layers.len(), 1);
    assert!(info.size > 0 && info.tags.contains(&image.tag), "{info:?}");

    let second = Image { tag: format!("{}-b", image.tag) };
    docker.tag(&info.id, &second.tag).await.unwrap();
    docker.remove_image(&image.tag).await.unwrap();
    assert_eq!(docker.image(&image.tag).await.unwrap(), None);
    assert_eq!(docker.image(&info.id).await.unwrap().unwrap().tags, [second.tag.as_str()]);
    docker.remove_image(&second.tag).await.unwrap();
    docker.remove_image(&second.tag).await.unwrap();
    assert_eq!(docker.image(&info.id).await.unwrap(), None);
    let error = docker.tag(&info.id, "envforge-enginetest-none:1").await.unwrap_err();
    assert!(matches!(error, EngineError::NoSuchImage { .. }), "{error}");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn run_returns_streams_and_code_and_removes_the_container() {
    let docker = docker().await;
    let image = base(&docker, "run").await;
    let seen = Arc::new(Seen::default());
    let request = RunRequest { report_as: Some("step".to_owned()), ..run(&image, &["talk", "7"]) };
    let outcome = docker.run(request, seen.clone()).await.unwrap();
    assert_eq!(outcome.code, 7);
    assert_eq!(outcome.stdout, b"to stdout\n");
    assert_eq!(outcome.stderr, b"to stderr\nno newline");
    assert_eq!(seen.lines(), ["to stderr", "no newline"]);
    assert!(!containers().contains(&image.tag), "{}", containers());
}

fn only_file(tar: &[u8]) -> String {
    use std::io::Read;
    let mut archive = tar::Archive::new(tar);
    let mut text = String::new();
    archive.entries().unwrap().next().unwrap().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
#[ignore = "needs docker"]
async fn run_copies_and_collects_files_in_a_sandbox_too() {
    let docker = docker().await;
    let image = base(&docker, "files").await;
    let file = ContainerFile { path: "/in/a".to_owned(), mode: 0o600, bytes: Bytes::from_static(b"hello") };
    for (sandbox, user) in [(false, "0:0"), (true, "1000:1000")] {
        let request = RunRequest {
            files: vec![file.clone(), ContainerFile { path: "/out/seed".to_owned(), ..file.clone() }],
            user: Some(user.to_owned()),
            env: vec!["A=b".to_owned()],
            collect: vec!["/out/b".to_owned(), "/out/absent".to_owned()],
            sandbox,
            ..run(&image, &["copy", "/in/a", "/out/b"])
        };
        let outcome = docker.run(request, Arc::new(NullReporter)).await.unwrap();
        assert_eq!(outcome.code, 0, "{}", String::from_utf8_lossy(&outcome.stderr));
        assert_eq!(outcome.collected.len(), 1);
        assert_eq!(only_file(&outcome.collected["/out/b"]), "hello");
    }
    let closed = RunRequest { sandbox: true, ..run(&image, &["copy", "/bin/sh", "/etc-x"]) };
    let outcome = docker.run(closed, Arc::new(NullReporter)).await.unwrap();
    assert_eq!(outcome.code, 1, "a sandbox's root must be read-only");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn untrusted_program_is_ended_at_each_limit() {
    /// A time that nothing reaches but what does not end.
    const LIMITS: RunLimits = RunLimits {
        processes: 20,
        memory: Some(64 << 20),
        tmp: 4 << 20,
        time: Duration::from_mins(10),
        output: 1 << 20,
    };
    let docker = docker().await;
    let image = base(&docker, "limits").await;
    let run = async |words: &[&str], limits| {
        let request = RunRequest { sandbox: true, limits: Some(limits), ..run(&image, words) };
        let outcome = docker.run(request, Arc::new(NullReporter)).await.unwrap();
        assert!(!containers().contains(&image.tag), "{words:?}: {}", containers());
        outcome
    };
    let calm = run(&["talk", "7"], LIMITS).await;
    assert_eq!((calm.code, calm.reached), (7, None));

    let flood = run(&["flood"], LIMITS).await;
    assert_eq!((flood.code, flood.reached), (137, Some(ReachedLimit::Output(1 << 20))));
    assert!(flood.stdout.len() <= 1 << 20, "{} bytes were kept", flood.stdout.len());

    let short = RunLimits { time: Duration::from_secs(3), ..LIMITS };
    let asleep = run(&["sleep", "600"], short).await;
    assert_eq!((asleep.code, asleep.reached), (137, Some(ReachedLimit::Time(short.time))));

    let count = |stdout: &[u8]| -> i64 { String::from_utf8_lossy(stdout).trim().parse().expect("a number") };
    let forks = run(&["forks"], LIMITS).await;
    assert!((1..20).contains(&count(&forks.stdout)), "{forks:?}");
    let full = run(&["fill", "/tmp/file"], LIMITS).await;
    assert!((1..=4).contains(&count(&full.stdout)), "{full:?}");
    if docker.info().unkept_limits.is_empty() {
        let hungry = run(&["eat"], LIMITS).await;
        assert_eq!((hungry.code, hungry.reached), (137, Some(ReachedLimit::Memory(64 << 20))));
    }
}

#[tokio::test]
#[ignore = "needs docker"]
async fn sandbox_without_results_can_write_to_tmp_only() {
    let docker = docker().await;
    let image = base(&docker, "closed").await;
    let file = ContainerFile { path: "/in/a".to_owned(), mode: 0o600, bytes: Bytes::from_static(b"hello") };
    for (target, code) in [("/in/b", 1), ("/b", 1), ("/tmp/b", 0)] {
        let request = RunRequest {
            files: vec![file.clone()],
            sandbox: true,
            ..run(&image, &["copy", "/in/a", target])
        };
        let outcome = docker.run(request, Arc::new(NullReporter)).await.unwrap();
        assert_eq!(outcome.code, code, "{target}: {}", String::from_utf8_lossy(&outcome.stderr));
    }
}

#[tokio::test]
#[ignore = "needs docker"]
async fn run_sets_user_and_environment() {
    let docker = docker().await;
    let image = base(&docker, "user").await;
    let request = RunRequest { user: Some("12:34".to_owned()), ..run(&image, &["id"]) };
    assert_eq!(docker.run(request, Arc::new(NullReporter)).await.unwrap().stdout, b"12:34\n");
    let request = RunRequest { env: vec!["A=b c".to_owned()], ..run(&image, &["env", "A"]) };
    assert_eq!(docker.run(request, Arc::new(NullReporter)).await.unwrap().stdout, b"b c\n");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn dropped_run_removes_its_container() {
    let docker = docker().await;
    let image = base(&docker, "drop").await;
    for wait in [1, 100, 1500] {
        let work = docker.run(run(&image, &["sleep", "600"]), Arc::new(NullReporter));
        let ended = tokio::time::timeout(Duration::from_millis(wait), work).await;
        assert!(ended.is_err(), "the container must still have been running");
        assert!(!containers().contains(&image.tag), "after {wait} ms: {}", containers());
    }
}

#[tokio::test]
#[ignore = "needs docker"]
async fn failed_start_is_reported_and_removes_the_container() {
    let docker = docker().await;
    let image = base(&docker, "cannot").await;
    let request = RunRequest { command: vec!["/no/such".to_owned()], ..run(&image, &[]) };
    let error = docker.run(request, Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(&error, EngineError::Refused { text, .. } if text.contains("/no/such")), "{error}");
    assert!(!containers().contains(&image.tag), "{}", containers());
    let request = RunRequest { image: "envforge-enginetest-none:1".to_owned(), ..run(&image, &["id"]) };
    let error = docker.run(request, Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(error, EngineError::NoSuchImage { .. }), "{error}");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn export_contains_written_files_only_on_success() {
    let docker = docker().await;
    let image = base(&docker, "export").await;
    let folder = tempfile::tempdir().unwrap();
    let archive = utf8(folder.path()).join("out.tar");
    let outcome = docker
        .run_and_export(run(&image, &["talk", "3"]), archive.clone(), Arc::new(NullReporter))
        .await
        .unwrap();
    assert_eq!(outcome.code, 3);
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
    let request = run(&image, &["copy", "/bin/sh", "/made"]);
    assert_eq!(
        docker.run_and_export(request, archive.clone(), Arc::new(NullReporter)).await.unwrap().code,
        0
    );
    let mut tar = tar::Archive::new(fs_err::File::open(&archive).unwrap());
    let names: Vec<_> =
        tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
    assert!(names.contains(&"made".to_owned()), "{names:?}");
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    assert!(!containers().contains(&image.tag), "{}", containers());
}

fn build_request(image: &Image, name: &str, lines: &str) -> (ImageBuildRequest, Image) {
    let result = Image { tag: format!("{}-{name}", image.tag) };
    let entry = |path: &str, text: String| ContextEntry {
        path: path.to_owned(),
        mode: 0o644,
        content: ContextContent::Bytes(Bytes::from(text)),
    };
    let request = ImageBuildRequest {
        context: vec![
            entry("Dockerfile", format!("FROM {}\n{lines}", image.tag)),
            entry("data/deep/a", "from the context".to_owned()),
            entry("data/empty", String::new()),
        ],
        context_secret: Vec::new(),
        secrets: Vec::new(),
        build_args: std::collections::BTreeMap::new(),
        labels: [("io.envforge.test".to_owned(), "yes".to_owned())].into(),
        network: Network::Bridge,
        no_cache: false,
        scratch_tag: result.tag.clone(),
    };
    (request, result)
}

#[tokio::test]
#[ignore = "needs docker"]
async fn build_sends_its_context_and_reports_its_steps() {
    let docker = docker().await;
    assert!(docker.info().supports_mounts() && docker.info().supports_secrets(), "{:?}", docker.info());
    let image = base(&docker, "build").await;
    let folder = tempfile::tempdir().unwrap();
    let file = utf8(folder.path()).join("big");
    let bytes = vec![b'x'; 300_000];
    fs_err::write(&file, &bytes).unwrap();
    let lines =
        "COPY data /data\nCOPY big /big\nRUN copy /data/deep/a /made\nRUN talk 0\nENV A=b\nUSER 1000\n";
    let (mut request, result) = build_request(&image, "result", lines);
    request.context.push(ContextEntry {
        path: "big".to_owned(),
        mode: 0o644,
        content: ContextContent::File { path: file, size: bytes.len() as u64, sha256: sha256_hex(&bytes) },
    });
    let seen = Arc::new(Seen::default());
    let info = docker.build(request.clone(), seen.clone()).await.unwrap();
    assert_eq!((info.user.as_str(), info.labels["io.envforge.test"].as_str()), ("1000", "yes"));
    assert!(info.env.contains(&"A=b".to_owned()) && info.tags == [result.tag.clone()], "{info:?}");
    assert!(info.history.iter().any(|line| line.contains("USER 1000")), "{:?}", info.history);
    assert!(seen.lines().contains(&"to stdout".to_owned()), "{:?}", seen.lines());
    assert!(seen.lines().contains(&"no newline".to_owned()), "{:?}", seen.lines());
    let outcome = docker.run(run(&result, &["cat", "/made"]), Arc::new(NullReporter)).await.unwrap();
    assert_eq!(outcome.stdout, b"from the context");
    let outcome = docker.run(run(&result, &["cat", "/big"]), Arc::new(NullReporter)).await.unwrap();
    assert_eq!(outcome.stdout, bytes);

    let seen = Arc::new(Seen::default());
    // Another tag: one that moves leaves an untagged image behind.
    let second = Image { tag: format!("{}-again", result.tag) };
    request.scratch_tag.clone_from(&second.tag);
    let again = docker.build(request, seen.clone()).await.unwrap();
    assert_eq!(again.layers, info.layers);
    let events = seen.0.lock().unwrap();
    let cached =
        events.iter().filter(|event| matches!(event, Event::StepFinished { cached: true, .. })).count();
    assert!(cached >= 4, "{events:?}");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn changed_content_of_equal_size_is_rebuilt() {
    let docker = docker().await;
    let image = base(&docker, "samesize").await;
    for text in ["one", "two"] {
        let (mut request, result) = build_request(&image, "result", "COPY file /file\n");
        let content = ContextContent::Bytes(Bytes::from(text));
        request.context.push(ContextEntry { path: "file".to_owned(), mode: 0o644, content });
        docker.build(request, Arc::new(NullReporter)).await.unwrap();
        let outcome = docker.run(run(&result, &["cat", "/file"]), Arc::new(NullReporter)).await.unwrap();
        assert_eq!(outcome.stdout, text.as_bytes());
    }
}

#[tokio::test]
#[ignore = "needs docker"]
async fn secret_is_read_by_the_step_and_not_stored() {
    let docker = docker().await;
    let image = base(&docker, "secret").await;
    let lines = "RUN --mount=type=secret,id=token,required=true cat /run/secrets/token\n";
    let (mut request, result) = build_request(&image, "result", lines);
    let missing = docker.build(request.clone(), Arc::new(NullReporter)).await.unwrap_err();
    assert!(missing.to_string().contains("token"), "{missing}");
    let value = format!("very-secret-{:016x}", std::process::id());
    request.secrets = vec![Secret { id: "token".to_owned(), bytes: Bytes::from(value.clone()) }];
    request.no_cache = true;
    let seen = Arc::new(Seen::default());
    let info = docker.build(request.clone(), seen.clone()).await.unwrap();
    assert!(seen.lines().contains(&value), "the step must have read the secret: {:?}", seen.lines());
    assert!(!info.history.join("\n").contains(&value));
    let folder = tempfile::tempdir().unwrap();
    let archive = utf8(folder.path()).join("image.tar");
    let save = Command::new("docker").args(["save", "-o", archive.as_str(), &result.tag]).status().unwrap();
    assert!(save.success());
    let bytes = fs_err::read(&archive).unwrap();
    assert!(
        !bytes.windows(value.len()).any(|window| window == value.as_bytes()),
        "the secret is in the image"
    );

    // Another secret leaves the layer cached.
    request.no_cache = false;
    request.secrets = vec![Secret { id: "token".to_owned(), bytes: Bytes::from_static(b"another") }];
    let second = Image { tag: format!("{}-again", result.tag) };
    request.scratch_tag.clone_from(&second.tag);
    let seen = Arc::new(Seen::default());
    assert_eq!(docker.build(request, seen.clone()).await.unwrap().layers, info.layers);
    assert!(seen.lines().is_empty(), "{:?}", seen.lines());
}

#[tokio::test]
#[ignore = "needs docker"]
async fn failing_step_reports_code_and_output_without_a_tag() {
    let docker = docker().await;
    let image = base(&docker, "fail").await;
    let (request, result) = build_request(&image, "result", "RUN talk 7\n");
    let error = docker.build(request, Arc::new(NullReporter)).await.unwrap_err();
    let EngineError::BuildFailed { text, output } = &error else { panic!("{error}") };
    // Docker's words, or Podman's.
    assert!(text.contains("exit code: 7") || text.contains("exit status 7"), "{text}");
    assert!(output.iter().any(|line| line.contains("no newline")), "{output:?}");
    assert_eq!(docker.image(&result.tag).await.unwrap(), None);
    let (request, _) = build_request(&image, "result", "NONSENSE\n");
    let error = docker.build(request, Arc::new(NullReporter)).await.unwrap_err();
    assert!(error.to_string().contains("NONSENSE"), "{error}");
}

fn running(words: &str) -> bool {
    fs_err::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
        let line = fs_err::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not within five minutes: {what}");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn dropped_build_ends_in_the_daemon_without_a_tag() {
    let docker = docker().await;
    let image = base(&docker, "cancel").await;
    // A time no other process sleeps, so that the step is found among this machine's processes.
    let words = format!("sleep {}", 100_000 + std::process::id());
    let (request, result) = build_request(&image, "result", &format!("RUN {words}\n"));
    {
        let mut build = std::pin::pin!(docker.build(request, Arc::new(NullReporter)));
        let started = until("the step runs", || running(&words));
        tokio::select! {
            ended = &mut build => panic!("the build ended: {ended:?}"),
            () = started => {}
        }
    }
    // Podman has no way to end a step that runs; the build ends with it.
    if docker.info().supports_buildkit() {
        until("no process of the build is left", || !running(&words)).await;
    }
    assert_eq!(docker.image(&result.tag).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs docker"]
async fn parallel_builds_are_independent() {
    let docker = docker().await;
    let image = base(&docker, "both").await;
    let (first, _first) = build_request(&image, "one", "COPY data /data\nRUN copy /data/deep/a /one\n");
    let (second, _second) = build_request(&image, "two", "COPY data /data\nRUN copy /data/deep/a /two\n");
    let (one, two) = tokio::join!(
        docker.build(first, Arc::new(NullReporter)),
        docker.build(second, Arc::new(NullReporter))
    );
    assert_ne!(one.unwrap().id, two.unwrap().id);
}

#[tokio::test]
#[ignore = "needs docker"]
async fn a_build_may_use_the_hosts_network() {
    let docker = docker().await;
    let image = base(&docker, "host").await;
    let (mut request, result) = build_request(&image, "result", "RUN cat /proc/net/dev\n");
    request.no_cache = true;
    request.network = Network::Host;
    let seen = Arc::new(Seen::default());
    docker.build(request.clone(), seen.clone()).await.unwrap();
    let host = seen.lines().len();
    let second = Image { tag: format!("{}-none", result.tag) };
    request.scratch_tag.clone_from(&second.tag);
    request.network = Network::None;
    let seen = Arc::new(Seen::default());
    docker.build(request, seen.clone()).await.unwrap();
    assert!(host > seen.lines().len(), "host: {host}, none: {:?}", seen.lines());
}
