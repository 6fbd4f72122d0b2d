//! An S3 server (moto, from Python), and a proxy in front of it that counts, delays and breaks requests.
//!
//! ```text
//!  program ──► Proxy (latency, faults, a log) ──► moto
//! ```

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::free_port;
use crate::process::{Process, eventually};

/// The bucket that every server has.
pub const BUCKET: &str = "bucket";

/// An S3 server behind a proxy.
pub struct S3Server {
    /// The proxy its clients connect to.
    pub proxy: Proxy,
    port: u16,
    _process: Process,
}

impl S3Server {
    /// Starts a server; `None` without a Python with moto: `IRONBLOOM_PYTHON` names an interpreter that has it, as
    /// `make test` does.
    pub fn start(directory: &Path) -> Option<Self> {
        let mut command = crate::python::interpreter("a server of S3")?;
        let port = free_port();
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
        // The server must not contact anything outside.
        command.env("AWS_EC2_METADATA_DISABLED", "true").current_dir(directory);
        let process = Process::new(&mut command, &directory.join("moto.log"));
        eventually(|| TcpStream::connect(("127.0.0.1", port)));
        let server = Self { proxy: Proxy::start(port), port, _process: process };
        server.put_request(&format!("/{BUCKET}"), b"");
        Some(server)
    }

    /// The environment of a program that uses this server.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.proxy.url()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "AKIATESTKEY".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "hunter2hunter2".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// The URL for clients that need more than our proxy understands, such as multipart uploads.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Puts an object into the bucket, bypassing the proxy.
    pub fn put(&self, key: &str, content: &[u8]) {
        self.put_request(&format!("/{BUCKET}/{key}"), content);
    }

    fn put_request(&self, path: &str, content: &[u8]) {
        let answer = ask(self.port, "PUT", path, content);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }

    /// Puts an object into the bucket when this many further requests have passed, just before the server sees the
    /// next.
    pub fn put_at(&self, number: usize, key: &str, content: &[u8]) {
        let path = format!("/{BUCKET}/{key}");
        self.proxy.state().put = Some((number, path, content.to_vec()));
    }

    /// Returns an object of the bucket, bypassing the proxy.
    pub fn get(&self, key: &str) -> Vec<u8> {
        let answer = ask(self.port, "GET", &format!("/{BUCKET}/{key}"), b"");
        let head = find(&answer, b"\r\n\r\n").unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..head])
        );
        answer[head + 4..].to_vec()
    }

    /// Returns the keys of all objects in the bucket, bypassing the proxy.
    pub fn keys(&self) -> Vec<String> {
        let answer = ask(self.port, "GET", &format!("/{BUCKET}?list-type=2"), b"");
        let text = String::from_utf8_lossy(&answer);
        let ends = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        ends.map(|(key, _)| key.to_owned()).collect()
    }

    /// Removes an object from the bucket, bypassing the proxy.
    pub fn delete(&self, key: &str) {
        ask(self.port, "DELETE", &format!("/{BUCKET}/{key}"), b"");
    }
}

fn ask(port: u16, method: &str, path: &str, content: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=AKIATESTKEY/20260101/us-east-1/s3/aws4_request\r\n\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(content).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// A fault injected instead of passing a request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status, as S3 does when it is asked too often.
    Status(u16),
    /// Closes the connection without an answer; the server never sees the request.
    Reset,
    /// Passes the request on, but closes the connection without an answer.
    LostAnswer,
    /// Passes the request on, but answers with this status.
    DoneBut(u16),
    /// Closes the connection in the middle of the answer.
    HalfAnswer,
}

/// Passes requests on to a server one by one, with delays and faults.
pub struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    latency: Duration,
    /// Faults of the next requests; after them, all requests pass or all fail.
    faults: VecDeque<Option<Fault>>,
    always: Option<Fault>,
    /// Method, path and range of every request.
    log: Vec<String>,
    /// Requests in flight, and the maximum at any time.
    open: usize,
    most_open: usize,
    ignores_conditions: bool,
    /// Path and content of an object to put after this number of further requests.
    put: Option<(usize, String, Vec<u8>)>,
}

impl State {
    /// Takes the object that is to be put now.
    fn due(&mut self) -> Option<(String, Vec<u8>)> {
        match &mut self.put {
            Some((left @ 1.., ..)) => {
                *left -= 1;
                None
            }
            _ => self.put.take().map(|(_, path, content)| (path, content)),
        }
    }
}

impl Proxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        // Never joined: the thread waits for connections until the test process ends.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let _ = serve(client, server, &shared);
                });
            }
        });
        Self { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Delays every request by this long.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Makes the next requests fail.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.extend(faults.into_iter().map(Some));
    }

    /// Makes the request after this many others fail.
    pub fn fail_at(&self, number: usize, fault: Fault) {
        let mut state = self.state();
        state.faults.extend(std::iter::repeat_n(None, number));
        state.faults.push_back(Some(fault));
    }

    /// Cancels all pending faults.
    pub fn clear(&self) {
        self.state().faults.clear();
    }

    /// Makes all requests fail from now on, or none.
    pub fn fail_always(&self, fault: Option<Fault>) {
        self.state().always = fault;
    }

    /// Strips conditions (`If-Match`, `If-None-Match`) from requests, as if the server did not support them.
    pub fn ignore_conditions(&self, ignore: bool) {
        self.state().ignores_conditions = ignore;
    }

    /// Returns the maximum number of requests in flight at the same time, since the last call.
    pub fn take_most_open(&self) -> usize {
        std::mem::take(&mut self.state().most_open)
    }

    /// Returns the requests since the last call: method, path and range of each.
    pub fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.state().log)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A request or an answer.
struct Message {
    head: Vec<String>,
    body: Vec<u8>,
}

impl Message {
    fn field(&self, name: &str) -> Option<&str> {
        self.head.iter().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Reads the head of a message; `None` at the end of the connection.
    fn read_head(input: &mut impl io::BufRead) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end() {
                "" if !head.is_empty() => return Ok(Some(Self { head, body: Vec::new() })),
                "" => {}
                line => head.push(line.to_owned()),
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.join("\r\n").into_bytes();
        bytes.extend_from_slice(b"\r\n\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

fn serve(client: TcpStream, server: u16, shared: &Mutex<State>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut input = BufReader::new(client.try_clone()?);
    let mut output = client;
    while let Some(mut request) = Message::read_head(&mut input)? {
        let length = request.field("content-length").map_or(0, |text| text.parse().unwrap_or(0));
        request.body = vec![0; length];
        input.read_exact(&mut request.body)?;
        let range = request.field("range").map(|range| format!(" {range}")).unwrap_or_default();
        let line = request.head[0].trim_end_matches(" HTTP/1.1").to_owned();
        let (fault, latency, due) = {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.log.push(line + &range);
            state.open += 1;
            state.most_open = state.most_open.max(state.open);
            if state.ignores_conditions {
                request.head.retain(|line| !line.to_ascii_lowercase().starts_with("if-"));
            }
            let fault = state.always.or_else(|| state.faults.pop_front().flatten());
            (fault, state.latency, state.due())
        };
        if let Some((path, content)) = due {
            ask(server, "PUT", &path, &content);
        }
        thread::sleep(latency);
        // Before the answer is sent: the client may ask again as soon as it has that.
        shared.lock().unwrap_or_else(PoisonError::into_inner).open -= 1;
        match fault {
            None => output.write_all(&pass(request, server)?)?,
            Some(Fault::Reset) => return Ok(()),
            Some(Fault::LostAnswer) => {
                pass(request, server)?;
                return Ok(());
            }
            Some(Fault::HalfAnswer) => {
                let answer = pass(request, server)?;
                let head = find(&answer, b"\r\n\r\n").map_or(0, |at| at + 4);
                return output.write_all(&answer[..head.midpoint(answer.len())]);
            }
            Some(fault @ (Fault::Status(status) | Fault::DoneBut(status))) => {
                if fault == Fault::DoneBut(status) {
                    pass(request, server)?;
                }
                let body = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Please reduce your request \
                            rate.</Message></Error>";
                write!(
                    output,
                    "HTTP/1.1 {status} Slow Down\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )?;
            }
        }
    }
    Ok(())
}

/// Returns the server's answer to a request.
fn pass(mut request: Message, server: u16) -> io::Result<Vec<u8>> {
    let is_head = request.head[0].starts_with("HEAD");
    request.head.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    request.head.push("Connection: close".to_owned());
    let mut stream = TcpStream::connect(("127.0.0.1", server))?;
    stream.write_all(&request.bytes())?;
    let mut input = BufReader::new(stream);
    let mut answer = Message::read_head(&mut input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if !is_head {
        input.read_to_end(&mut answer.body)?;
    }
    // The client keeps its connection open.
    answer.head.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let has_no_body = is_head || answer.head[0].contains(" 304") || answer.head[0].contains(" 204");
    if !has_no_body && answer.field("content-length").is_none() {
        answer.head.retain(|line| !line.to_ascii_lowercase().starts_with("transfer-encoding:"));
        answer.head.push(format!("Content-Length: {}", answer.body.len()));
    }
    Ok(answer.bytes())
}
