//! The machine's engine as one of another machine: behind a port, so that only what goes through the engine reaches it.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use crate::engine::engine_socket;

/// Listens as long as the test program runs; gives what to set as `DOCKER_HOST`.
pub(crate) fn distant_engine() -> String {
    let socket = engine_socket();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let engine = UnixStream::connect(&socket).expect("the engine runs");
            forward(&client, &engine);
        }
    });
    format!("tcp://127.0.0.1:{port}")
}

fn forward(client: &TcpStream, engine: &UnixStream) {
    let (mut from, mut to) = (client.try_clone().expect("a socket"), engine.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to) = (engine.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}
