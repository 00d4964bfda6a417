//! A socket in front of the machine's engine that can die and come back: for what happens when the engine does.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::engine_socket;

#[derive(Default)]
struct State {
    dead: bool,
    open: Vec<UnixStream>,
    trigger: Option<Trigger>,
    /// How often it was away.
    deaths: usize,
}

/// The request at which the engine goes away.
struct Trigger {
    /// Text of its path.
    path: String,
    /// Requests of that path that are let through before.
    before: usize,
    /// How long it is away.
    away: Duration,
}

type Shared = Arc<Mutex<State>>;

/// Forwards connections; its threads end with the test program.
pub(crate) struct Cut {
    folder: tempfile::TempDir,
    state: Shared,
}

impl Cut {
    /// A socket that leads to the engine of `DOCKER_HOST`, or the default one.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("docker.sock")).expect("a socket of ours");
        let state = Shared::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || forward(client, &shared));
            }
        });
        Self { folder, state }
    }

    /// What to set as `DOCKER_HOST`.
    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.folder.path().join("docker.sock").display())
    }

    /// The engine is back.
    pub(crate) fn heal(&self) {
        lock(&self.state).dead = false;
    }

    /// The engine goes away when it is asked for a path with that text once more than `before` times, before it hears of it,
    /// and comes back after a while: a restart. Once only.
    pub(crate) fn restart_at(&self, path: &str, before: usize, away: Duration) {
        lock(&self.state).trigger = Some(Trigger { path: path.to_owned(), before, away });
    }

    /// How often the engine went away.
    pub(crate) fn deaths(&self) -> usize {
        lock(&self.state).deaths
    }
}

fn lock(state: &Shared) -> std::sync::MutexGuard<'_, State> {
    state.lock().expect("nobody panics while it holds the state")
}

/// Cuts every connection; new ones are closed at once.
fn die(state: &Shared) {
    let mut state = lock(state);
    state.dead = true;
    state.deaths += 1;
    for stream in state.open.drain(..) {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

fn forward(mut client: UnixStream, state: &Shared) {
    let mut engine = {
        let mut state = lock(state);
        if state.dead {
            return;
        }
        let engine = UnixStream::connect(engine_socket()).expect("the engine runs");
        for stream in [&client, &engine] {
            state.open.push(stream.try_clone().expect("a socket of ours"));
        }
        engine
    };
    let (mut back_from, mut back_to) =
        (engine.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(std::net::Shutdown::Write);
    });
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        if triggered(&chunk[..length], state) {
            return;
        }
        if engine.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    let _ = engine.shutdown(std::net::Shutdown::Write);
    let _ = back.join();
}

/// Goes away if the request is the one that was waited for.
fn triggered(request: &[u8], state: &Shared) -> bool {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    if !line.ends_with(" HTTP/1.1") {
        return false;
    }
    let away = {
        let mut state = lock(state);
        let Some(trigger) = state.trigger.as_mut().filter(|trigger| line.contains(&trigger.path)) else {
            return false;
        };
        if trigger.before > 0 {
            trigger.before -= 1;
            return false;
        }
        let away = trigger.away;
        state.trigger = None;
        away
    };
    die(state);
    let shared = Arc::clone(state);
    std::thread::spawn(move || {
        std::thread::sleep(away);
        lock(&shared).dead = false;
    });
    true
}
