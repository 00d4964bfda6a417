//! `shell --jupyter`, `--ssh` and `--vscode` with the clients people use.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{OFlags, fcntl_setfl};

use crate::distant::distant_engine;
use crate::engine::docker;
use crate::program::Run;
use crate::scene::{SPEC, TAG, assert_message, interrupt_when, send_interrupt, wait_until};
use crate::shell::Shells;

/// The status line and body of a page of this machine.
pub(crate) fn page(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
#[ignore = "needs docker"]
fn jupyter_requires_its_token() {
    let shells = Shells::new();
    // The usual port is taken: by this, or by somebody else.
    let _taken = TcpListener::bind(("127.0.0.1", 8888));
    let refused = shells.run(&["shell", TAG, "--jupyter", "--bind", "0.0.0.0"]);
    assert_eq!(refused.code, 125);
    assert_message(&refused.stderr, &["0.0.0.0", "ssh -L", "--insecure"]);
    let refused = shells.run(&["shell", TAG, "--jupyter", "--network", "host"]);
    assert_eq!(refused.code, 125);
    assert_message(&refused.stderr, &["--network host", "--insecure"]);

    let args = ["shell", TAG, "--jupyter", "--vscode", "--detach", "--name", "lab", "--json"];
    let told: serde_json::Value = serde_json::from_str(&shells.succeed(&args)).expect("JSON");
    let url = told["jupyter"].as_str().expect("an address").to_owned();
    let (address, token) = url.split_once("/lab?token=").expect("a token");
    let port: u16 = address.strip_prefix("http://127.0.0.1:").expect("the loopback").parse().expect("a port");
    assert!(port != 8888 && token.len() == 64, "{url}");
    assert!(page(port, &format!("/api/status?token={token}")).starts_with("HTTP/1.1 200"));
    for wrong in ["/api/status".to_owned(), format!("/api/status?token={}", "0".repeat(64))] {
        assert!(page(port, &wrong).starts_with("HTTP/1.1 403"), "{wrong}");
    }
    let notebook = page(port, &format!("/api/contents/environment.ipynb?token={token}"));
    assert!(notebook.starts_with("HTTP/1.1 200") && notebook.contains("nvidia-smi"), "{notebook}");
    assert!(!shells.project().join("environment.ipynb").exists(), "the project stays as it is");
    assert_eq!(shells.succeed(&["shell", TAG, "--jupyter"]), url, "a second call finds the same");
    let ports = shells.listed()[0]["ports"].clone();
    assert!(ports.as_array().expect("a list").iter().all(|port| port["address"] == "127.0.0.1"), "{ports}");

    let script = "echo 'import torch, sys; print(torch.__version__, sys.executable)' >/tmp/cell.py; \
                  JUPYTER_PATH=/tmp/.envforge/jupyter jupyter run /tmp/cell.py; env";
    let inside = shells.succeed(&["shell", TAG, "--", "sh", "-c", script]);
    assert!(inside.starts_with("2.7.1+cu118 /"), "{inside}");
    let logs = shells.run(&["logs", "lab"]);
    let known = [inside, docker(&["inspect", "envforge-lab", TAG]), logs.stdout, logs.stderr];
    assert!(known.iter().all(|text| !text.contains(token)), "the token is told somewhere");

    let uri = told["vscode"].as_str().expect("a command").rsplit_once('+').expect("a place").1.to_owned();
    let (hex, folder) = uri.split_once('/').expect("a folder");
    let name: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
    assert_eq!((name.as_slice(), folder), (&br#"{"containerName":"/envforge-lab"}"#[..], "workspace"));
    shells.succeed(&["stop", "lab", "--time", "2"]);
}

#[test]
#[ignore = "needs docker"]
fn jupyter_in_the_foreground_ends_with_ctrl_c() {
    let shells = Shells::new();
    let child = shells.command(&["shell", TAG, "--jupyter"]).spawn().expect("it starts");
    let run = interrupt_when(child, "press Ctrl-C to stop");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("http://127.0.0.1:"), "{}", run.stdout);
    assert_eq!(shells.listed().len(), 0);
}

/// A caller that does not read yet holds the program where it tells the address: Ctrl-C counts there, too.
#[test]
#[ignore = "needs docker"]
fn ctrl_c_while_the_address_is_told_is_not_lost() {
    let shells = Shells::new();
    let (mut reader, writer) = full_pipe();
    let mut command = shells.command(&["shell", TAG, "--jupyter"]);
    let mut child = command.stdout(writer).spawn().expect("it starts");
    drop(command);
    wait_until("the program waits for its reader", || {
        let task = format!("/proc/{0}/task/{0}/wchan", child.id());
        std::fs::read_to_string(task).is_ok_and(|place| place.contains("pipe_write"))
    });
    send_interrupt(&child);
    let mut told = Vec::new();
    reader.read_to_end(&mut told).expect("a pipe");
    assert!(String::from_utf8_lossy(&told).contains("http://127.0.0.1:"), "it was not told");
    assert_eq!(child.wait().expect("a child of ours").code(), Some(0));
    assert_eq!(shells.listed().len(), 0);
}

/// A pipe that takes nothing until it is read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    fcntl_setfl(&writer, OFlags::NONBLOCK).expect("ours");
    while writer.write(b"\n").is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).expect("ours");
    (reader, writer)
}

#[test]
#[ignore = "needs docker"]
fn ports_of_a_remote_engine_are_forwarded() {
    let shells = Shells::new();
    let mut command = shells.command(&["shell", TAG, "--jupyter", "--port", "6006"]);
    let mut child = command.env("DOCKER_HOST", distant_engine()).spawn().expect("it starts");
    let mut url = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("standard output is caught"));
    stdout.read_line(&mut url).expect("text");
    let (address, token) = url.trim().split_once("/lab?token=").unwrap_or_else(|| panic!("`{url}`"));
    let port: u16 = address.strip_prefix("http://127.0.0.1:").expect("the loopback").parse().expect("a port");
    assert!(page(port, &format!("/api/status?token={token}")).starts_with("HTTP/1.1 200"));
    assert!(page(port, "/api/status").starts_with("HTTP/1.1 403"));
    // A page of a megabyte, and several connections at once.
    std::thread::scope(|scope| {
        let get = || page(port, &format!("/lab?token={token}"));
        let all: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
        assert!(all.into_iter().all(|one| one.join().expect("no panic").trim_end().ends_with("</html>")));
    });
    assert_eq!(TcpStream::connect(("127.0.0.1", 6006)).map(drop).map_err(|error| error.kind()), Ok(()));
    let id = docker(&["ps", "-q", "--filter", "label=io.envforge.shell"]);
    assert_eq!(
        docker(&["inspect", "-f", "{{.HostConfig.PortBindings}}", &id]),
        "map[]",
        "nothing is open there"
    );

    let run = interrupt_when(child, "press Ctrl-C to stop");
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the port is given back");
}

#[test]
#[ignore = "needs docker"]
fn open_passes_the_url_to_the_browser_only() {
    let shells = Shells::new();
    let folder = shells.scene.program.path("bin");
    std::fs::create_dir(&folder).expect("a folder of ours");
    for name in ["xdg-open", "code"] {
        let opener = folder.join(name);
        let script = format!(
            "#!/bin/sh\necho \"$@\" >{0}/{name}.args\n[ ! -f \"$1\" ] || cat \"$1\" >{0}/{name}.page\n",
            folder.display()
        );
        std::fs::write(&opener, script).expect("a file of ours");
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("a file of ours");
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a search path"));
    let args = ["shell", TAG, "--jupyter", "--vscode", "--open", "--detach", "--name", "opened"];
    let run = Run::of(&shells.command(&args).env("PATH", path).output().expect("it starts"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let url = run.stdout.lines().next().expect("an address");
    assert!(read("xdg-open.page").contains(&format!("url={url}\"")), "{url}");
    assert!(!read("xdg-open.args").contains("token"), "arguments can be read by all");
    assert!(read("code.args").starts_with("--folder-uri vscode-remote://attached-container+"));
    shells.succeed(&["stop", "opened", "--time", "2"]);
}

/// Runs a client of OpenSSH with that configuration.
fn client(program: &str, config: &str, args: &[&str]) -> Run {
    let output = Command::new(program).args(["-F", config, "-o", "BatchMode=yes"]).args(args).output();
    Run::of(&output.expect("OpenSSH is there"))
}

/// Makes a key pair and gives the public key's file.
pub(crate) fn keys(folder: &Path) -> String {
    let key = folder.join("key");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.expect("ssh-keygen starts").success());
    format!("{}.pub", key.display())
}

#[test]
#[ignore = "needs docker"]
fn ssh_accepts_the_key_and_rejects_others() {
    let shells = Shells::new();
    let key = keys(&shells.scene.program.path("home"));
    let start = || {
        let kept = ["--env", "KEPT=yes"];
        let args = ["shell", TAG, "--ssh", "--detach", "--name", "work", "--authorized-keys", &key];
        let run = shells.run_as(50000, &[&args[..], &kept].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let words: Vec<_> = run.stdout.split_whitespace().map(str::to_owned).collect();
        assert_eq!((words[0].as_str(), words[1].as_str(), words[3].as_str()), ("ssh", "-F", "envforge-work"));
        words[2].clone()
    };
    let config = start();
    // That user did not build the image: no volume of models.
    let script = "whoami; pwd; echo $HOME $KEPT $HF_HOME; python -c 'import torch; print(torch.__version__)'";
    let run = client("ssh", &config, &["envforge-work", script]);
    let expected = "dev\n/workspace\n/home/dev yes\n2.7.1+cu118\n";
    assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{}", run.stderr);
    assert_eq!(client("ssh", &config, &["envforge-work", "exit 7"]).code, 7);

    let batch = shells.scene.program.path("batch");
    let (there, back) = (shells.scene.program.path("there"), shells.scene.program.path("back"));
    std::fs::write(&there, "carried").expect("a file of ours");
    std::fs::write(&batch, format!("put {} /tmp/a\nget /tmp/a {}\n", there.display(), back.display()))
        .expect("ours");
    let run = client("sftp", &config, &["-b", batch.to_str().expect("UTF-8"), "envforge-work"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(std::fs::read_to_string(&back).expect("it came back"), "carried");
    // Through the server to its own port, as a forwarded port goes.
    let port = shells.listed()[0]["ports"][0]["container"].to_string();
    let run = client("ssh", &config, &["-W", &format!("127.0.0.1:{port}"), "envforge-work"]);
    assert!(run.stdout.starts_with("SSH-2.0"), "{}{}", run.stdout, run.stderr);

    let denied = |args: &[&str]| {
        let run = client("ssh", &config, args);
        assert!(
            run.code == 255 && run.stderr.contains("Permission denied (publickey)"),
            "{args:?}: {}",
            run.stderr
        );
    };
    denied(&["-l", "root", "envforge-work", "true"]);
    denied(&["-o", "PreferredAuthentications=password,keyboard-interactive", "envforge-work", "true"]);

    // One line in the client's own configuration, after a question; the second time it is there.
    let args = ["shell", TAG, "--ssh", "--ssh-config", "--authorized-keys", &key];
    let mut terminal = shells.terminal_as(50000, &args);
    terminal.wait_for("? [y/N]");
    terminal.type_in("y\n");
    terminal.wait_for("ssh envforge-work");
    assert_eq!(terminal.code(), 0);
    let own = shells.scene.program.path("home").join(".ssh/config");
    let lines = std::fs::read_to_string(&own).expect("it was written");
    assert_eq!((lines.lines().count(), lines.starts_with("Include \"")), (1, true), "{lines}");
    assert_eq!(shells.run_as(50000, &args).stdout, "ssh envforge-work\n");
    // The client takes no other user's configuration, and this user has none of the machine's accounts.
    for file in std::fs::read_dir(Path::new(&config).parent().expect("a folder")).expect("a folder of ours") {
        std::os::unix::fs::chown(file.expect("a file").path(), Some(0), Some(0)).expect("we are root");
    }
    let run = client("ssh", own.to_str().expect("UTF-8"), &["envforge-work", "true"]);
    assert_eq!(run.code, 0, "{}", run.stderr);

    let known = config.replace(".conf", ".known_hosts");
    let first = std::fs::read_to_string(&known).expect("a host key");
    assert_eq!(shells.run_as(50000, &["stop", "work", "--time", "2"]).code, 0);
    assert!(!Path::new(&config).exists() && !Path::new(&known).exists(), "its configuration goes with it");
    assert_eq!(start(), config);
    assert_eq!(std::fs::read_to_string(&known).expect("a host key"), first, "a restart keeps the host key");
    let stranger = std::fs::read_to_string(keys(&shells.scene.program.path("tmp"))).expect("a key");
    std::fs::write(&known, format!("envforge-work {stranger}")).expect("a file of ours");
    let run = client("ssh", &config, &["envforge-work", "true"]);
    assert!(run.code == 255 && run.stderr.contains("IDENTIFICATION HAS CHANGED"), "{}", run.stderr);
    shells.succeed(&["stop", "work", "--time", "2"]);
}

/// Rented machines and WSL have no user but root.
#[test]
#[ignore = "needs docker"]
fn ssh_of_root_is_for_this_machine_only() {
    let shells = Shells::new();
    let key = keys(&shells.scene.program.path("home"));
    let args = ["shell", TAG, "--ssh", "--authorized-keys", &key];
    let open = shells.run(&[&args[..], &["--bind", "0.0.0.0", "--insecure"]].concat());
    assert_eq!(open.code, 125, "{}", open.stderr);
    assert_message(&open.stderr, &["SSH for root on `0.0.0.0`", "omit --bind"]);
    let told = shells.succeed(&[&args[..], &["--detach", "--name", "rooted"]].concat());
    let config = told.split_whitespace().nth(2).expect("a file");
    let script = "whoami; pwd; echo $HOME; grep CapEff /proc/self/status";
    let run = client("ssh", config, &["envforge-rooted", script]);
    // CAP_SETGID, CAP_SETUID, CAP_SYS_CHROOT, CAP_AUDIT_WRITE.
    let expected = "root\n/workspace\n/home/dev\nCapEff:\t00000000200400c0\n";
    assert_eq!((run.code, run.stdout.as_str()), (0, expected), "{}", run.stderr);
    let terminal = client("ssh", config, &["-tt", "envforge-rooted", "tty; pwd"]);
    assert!(terminal.code == 0 && terminal.stdout.starts_with("/dev/pts/"), "{terminal:?}");
    let batch = shells.scene.program.path("batch");
    std::fs::write(&batch, "pwd\n").expect("ours");
    let run = client("sftp", config, &["-b", batch.to_str().expect("UTF-8"), "envforge-rooted"]);
    assert!(run.stdout.contains("/workspace"), "{run:?}");
    let denied =
        client("ssh", config, &["-o", "PreferredAuthentications=password", "envforge-rooted", "true"]);
    assert_eq!(denied.code, 255, "{denied:?}");
    shells.succeed(&["stop", "rooted", "--time", "2"]);
}

#[test]
#[ignore = "nightly: needs docker and builds a Dockerfile, two minutes; `project` compares its content"]
fn devcontainer_builds_and_runs_the_same_image() {
    let shells = Shells::new();
    let file = shells.succeed(&["export", "devcontainer", SPEC, ".devcontainer"]);
    let text = std::fs::read_to_string(&file).expect("a file of ours");
    let written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(written["hostRequirements"]["gpu"], "optional");
    let again = shells.run(&["export", "devcontainer", SPEC, ".devcontainer"]);
    assert_eq!(again.code, 2, "{}", again.stderr);

    let folder = Path::new(&file)
        .parent()
        .expect("a folder")
        .join(written["build"]["context"].as_str().expect("a path"));
    let tag = "pytorch-cuda:devcontainer-test-unverified";
    let index = shells.scene.program.path("index-secret");
    let export = format!("export ENVFORGE_FRAMEWORK_INDEX='{}/cu118'\n", shells.scene.index.url());
    std::fs::write(&index, export).expect("a file of ours");
    // Debian's client builds with BuildKit by itself.
    let mut build = Command::new("/usr/bin/docker");
    build.env("DOCKER_BUILDKIT", "1").args(["build", "-q", "-t", tag]);
    build.arg("--secret").arg(format!("id=index,src={}", index.display()));
    build.arg("--secret").arg("id=ca,src=/etc/ssl/certs/ca-certificates.crt");
    let built = build.arg(&folder).output().expect("the docker client starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let words = |list: &serde_json::Value| -> Vec<String> {
        list.as_array().expect("a list").iter().map(|word| word.as_str().expect("text").to_owned()).collect()
    };
    let mut run = vec![
        "run".to_owned(),
        "--rm".to_owned(),
        "--user".to_owned(),
        written["remoteUser"].as_str().expect("a name").to_owned(),
    ];
    run.extend(words(&written["runArgs"]));
    for option in words(&written["securityOpt"]) {
        run.extend(["--security-opt".to_owned(), option]);
    }
    run.extend([tag, "python", "-c", "import torch; print(torch.__version__)"].map(str::to_owned));
    let run: Vec<&str> = run.iter().map(String::as_str).collect();
    let said = docker(&run);
    docker(&["rmi", tag]);
    assert_eq!(said, "2.7.1+cu118");
}
