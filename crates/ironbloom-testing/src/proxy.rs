//! An address that leads to one server, and later to another, as a proxy in front of a pair of servers does.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to a port of this machine.
pub struct Proxy {
    /// The port it listens on.
    pub port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    ended: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts one that leads to this port.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State {
            target: AtomicU16::new(target),
            ended: AtomicBool::new(false),
            open: Mutex::default(),
        };
        let state = Arc::new(state);
        let its = state.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if its.ended.load(Ordering::Acquire) {
                    return;
                }
                let target = its.target.load(Ordering::Acquire);
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
                    its.join(client, server);
                }
            }
        });
        Self { port, state }
    }

    /// New connections lead to this port.
    pub fn point_at(&self, target: u16) {
        self.state.target.store(target, Ordering::Release);
    }

    /// Ends all connections that there are.
    pub fn cut(&self) {
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // wakes it
        self.cut();
    }
}

impl State {
    fn join(&self, client: TcpStream, server: TcpStream) {
        let ways = [(&client, &server), (&server, &client)];
        for (from, to) in
            ways.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
        {
            thread::spawn(move || forward(from, to));
        }
        self.open.lock().unwrap().extend([client, server]);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
