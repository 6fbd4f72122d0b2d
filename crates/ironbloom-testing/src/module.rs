//! Servers with the module.
//!
//! All installed servers are used: `redis-server`, `valkey-server`, and those that IRONBLOOM_SERVERS names (paths,
//! separated by colons); the module's own tests also use those in IRONBLOOM_MODULE_SERVERS. Without any, a test says
//! loudly that it was skipped; with IRONBLOOM_REQUIRE_SERVER set, as `make test` does, it fails.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::process::{find_program, skipped};
use crate::{Running, Scratch, Start as _, free_port, wait_until};

/// How long a client waits for a reply.
const PATIENCE: Duration = Duration::from_secs(600);

/// The installed server programs.
pub fn programs() -> Vec<PathBuf> {
    programs_of(&["IRONBLOOM_SERVERS"])
}

/// The installed server programs and those in IRONBLOOM_MODULE_SERVERS: only the module itself must work on every
/// version.
pub fn all_programs() -> Vec<PathBuf> {
    programs_of(&["IRONBLOOM_SERVERS", "IRONBLOOM_MODULE_SERVERS"])
}

fn programs_of(variables: &[&str]) -> Vec<PathBuf> {
    let installed =
        ["redis-server", "valkey-server"].iter().filter_map(|name| find_program(name, &[]));
    let mut found: Vec<PathBuf> = installed.collect();
    for named in variables.iter().filter_map(env::var_os).filter(|named| !named.is_empty()) {
        found.extend(env::split_paths(&named));
    }
    if found.is_empty() {
        skipped("redis-server or valkey-server");
    }
    found
}

/// The shared object that cargo built beside this test.
pub fn module() -> PathBuf {
    let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
    let module = folder.join("libironbloom_redis.so");
    assert!(module.is_file(), "{} is missing", module.display());
    module
}

/// A server with the module, on a free loopback port, in its own folder; stopped and removed when the test ends.
pub struct Server {
    program: PathBuf,
    child: Running,
    /// The port it listens on.
    pub port: u16,
    folder: Scratch,
    options: Vec<String>,
}

impl Server {
    /// Starts a server with the module and these options.
    pub fn start(program: &Path, options: &[&str]) -> Self {
        Self::start_with_files(program, options, &[])
    }

    /// Starts a server whose module has these arguments.
    pub fn start_with_arguments(program: &Path, arguments: &[&str]) -> Self {
        Self::start_with_all(program, &[], arguments, &[])
    }

    /// Starts a server with files that are in its folder before it starts.
    pub fn start_with_files(program: &Path, options: &[&str], files: &[(&str, Vec<u8>)]) -> Self {
        Self::start_with_all(program, options, &[], files)
    }

    /// Starts a server with another module, which is built in its folder; `None` if it cannot be built.
    pub fn start_beside(
        program: &Path,
        options: &[&str],
        make: impl FnOnce(&Path) -> Option<PathBuf>,
    ) -> Option<Self> {
        let folder = new_folder();
        let other = make(folder.path())?;
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        options.extend(["--loadmodule".to_owned(), other.to_str().unwrap().to_owned()]);
        let (child, port) = launch(program, folder.path(), &options);
        Some(Self { program: program.to_owned(), child, port, folder, options })
    }

    /// Starts a server that does not know the commands.
    pub fn start_without_module(program: &Path) -> Self {
        let folder = new_folder();
        let (child, port) = launch(program, folder.path(), &[]);
        Self { program: program.to_owned(), child, port, folder, options: Vec::new() }
    }

    fn start_with_all(
        program: &Path,
        options: &[&str],
        arguments: &[&str],
        files: &[(&str, Vec<u8>)],
    ) -> Self {
        let folder = new_folder();
        for (name, bytes) in files {
            fs::write(folder.file(name), bytes).unwrap();
        }
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        options.extend(["--loadmodule".to_owned(), module().to_str().unwrap().to_owned()]);
        options.extend(arguments.iter().map(|&argument| argument.to_owned()));
        let (child, port) = launch(program, folder.path(), &options);
        Self { program: program.to_owned(), child, port, folder, options }
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the server and starts it again on the same files.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        (self.child, self.port) = launch(&self.program, self.folder.path(), &self.options);
    }

    /// Opens a new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.port).expect("the server answers")
    }

    /// The folder with the server's files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.file("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let log = self.log();
            eprintln!("the end of the log of {}:", self.program.display());
            let lines: Vec<&str> = log.lines().collect();
            lines.iter().skip(lines.len().saturating_sub(30)).for_each(|line| eprintln!("{line}"));
        }
    }
}

fn new_folder() -> Scratch {
    Scratch::on_disk("server")
}

/// Starts a server and waits until it answers. If another program takes the port in between, tries another one.
fn launch(program: &Path, folder: &Path, options: &[String]) -> (Running, u16) {
    // Servers before Redis 7 have neither the option nor the need.
    let version = Command::new(program).arg("--version").output().unwrap();
    let is_old = String::from_utf8_lossy(&version.stdout).contains("v=6.");
    let debug: &[&str] = if is_old { &[] } else { &["--enable-debug-command", "yes"] };
    for _ in 0..5 {
        let port = free_port();
        let mut child = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--dir", folder.to_str().unwrap(), "--logfile", "log"])
            // Otherwise a new replica waits five seconds, in case another one arrives.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(debug)
            .args(options)
            .stdout(Stdio::null())
            .start();
        // No assertion depends on this time: it only bounds the wait for a server that never answers.
        for _ in 0..6000 {
            if child.try_wait().unwrap().is_some() {
                break;
            }
            if Client::connect(port).is_some_and(|mut client| client.is_ready()) {
                return (child, port);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    panic!("{} does not start:\n{log}", program.display());
}

/// A connection. Replies are raw bytes.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects; `None` if nothing listens there.
    pub fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        // A missing reply must fail the test, not hang it; a busy machine may take minutes for a merge.
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Self { stream: BufReader::new(stream) })
    }

    fn is_ready(&mut self) -> bool {
        self.try_call(&[b"PING"]).is_some_and(|reply| reply == b"+PONG\r\n")
    }

    /// Switches to this version of the protocol.
    pub fn hello(&mut self, version: u8) {
        let reply = self.call(&format!("HELLO {version}"));
        assert!(reply.starts_with(b"%") || reply.starts_with(b"*"), "{reply:?}");
    }

    /// Returns the reply to a command whose words are separated by blanks.
    pub fn call(&mut self, command: &str) -> Vec<u8> {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.call_words(&words)
    }

    /// Like [`call`](Self::call), as text.
    pub fn text(&mut self, command: &str) -> String {
        String::from_utf8_lossy(&self.call(command)).into_owned()
    }

    /// Returns the reply to a command of these words.
    pub fn call_words(&mut self, words: &[&[u8]]) -> Vec<u8> {
        self.try_call(words).unwrap_or_else(|| {
            panic!("no reply to {}", String::from_utf8_lossy(words[0]));
        })
    }

    /// Returns the reply, or `None` if the connection ended.
    pub fn try_call(&mut self, words: &[&[u8]]) -> Option<Vec<u8>> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command; the caller must receive its reply.
    pub fn send(&mut self, words: &[&[u8]]) -> Option<()> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            command.extend(format!("${}\r\n", word.len()).bytes());
            command.extend(*word);
            command.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&command).ok()
    }

    /// Reads the next reply.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut reply = Vec::new();
        self.read_one(&mut reply)?;
        Some(reply)
    }

    /// The next line of a reply; `None` if the connection ended.
    fn read_line(&mut self, reply: &mut Vec<u8>) -> Option<()> {
        match self.stream.read_until(b'\n', reply) {
            Ok(len) => (len > 0).then_some(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no reply within {PATIENCE:?}")
            }
            Err(_) => None,
        }
    }

    fn read_one(&mut self, reply: &mut Vec<u8>) -> Option<()> {
        let start = reply.len();
        self.read_line(reply)?;
        let line = reply[start..].strip_suffix(b"\r\n")?;
        let (kind, rest) = line.split_first()?;
        let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' => Some(()),
            b'$' | b'=' => {
                let Ok(len) = usize::try_from(number()?) else { return Some(()) };
                let end = reply.len();
                reply.resize(end + len + 2, 0);
                self.stream.read_exact(&mut reply[end..]).ok()
            }
            b'*' | b'~' | b'>' => (0..number()?).try_for_each(|_| self.read_one(reply)),
            b'%' => (0..2 * number()?).try_for_each(|_| self.read_one(reply)),
            other => panic!("no reply starts with {}", char::from(*other)),
        }
    }

    /// Returns the bytes of a reply that is a string.
    pub fn bytes(&mut self, words: &[&[u8]]) -> Vec<u8> {
        string_of(&self.call_words(words)).to_vec()
    }

    /// Returns all pairs of SCANDUMP, as a client gets them.
    pub fn scandump(&mut self, family: &str, key: &str) -> Vec<(i64, Vec<u8>)> {
        let mut pairs = Vec::new();
        let mut iterator = 0;
        loop {
            let reply = self.call(&format!("{family}.SCANDUMP {key} {iterator}"));
            let rest = reply.strip_prefix(b"*2\r\n:").expect("a pair");
            let end = rest.iter().position(|&byte| byte == b'\r').unwrap();
            iterator = std::str::from_utf8(&rest[..end]).unwrap().parse().unwrap();
            if iterator == 0 {
                return pairs;
            }
            pairs.push((iterator, string_of(&rest[end + 2..]).to_vec()));
        }
    }

    /// Sends all pairs of a SCANDUMP to a key; returns the last reply.
    pub fn load(&mut self, family: &str, key: &str, pairs: &[(i64, Vec<u8>)]) -> String {
        let mut last = String::new();
        for (iterator, piece) in pairs {
            let (command, iterator) = (format!("{family}.LOADCHUNK"), iterator.to_string());
            let words: [&[u8]; 4] =
                [command.as_bytes(), key.as_bytes(), iterator.as_bytes(), piece];
            last = String::from_utf8_lossy(&self.call_words(&words)).into_owned();
            if last != "+OK\r\n" {
                break;
            }
        }
        last
    }

    /// Changes a setting of the module: Redis 8 knows RedisBloom's by their plain names.
    pub fn configure(&mut self, name: &str, value: &str) {
        let replies = [name, &format!("ironbloom.{name}")]
            .map(|name| self.text(&format!("CONFIG SET {name} {value}")));
        assert!(replies.iter().any(|reply| reply == "+OK\r\n"), "{name}: {replies:?}");
    }

    /// Reads a field of INFO.
    pub fn info(&mut self, section: &str, field: &str) -> String {
        let text = self.text(&format!("INFO {section}"));
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("INFO {section} has no {field}:\n{text}")).to_owned()
    }
}

/// The bytes of a reply that is a string.
pub fn string_of(reply: &[u8]) -> &[u8] {
    let end = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    assert_eq!(reply[0], b'$', "{:?}", String::from_utf8_lossy(reply));
    &reply[end..reply.len() - 2]
}

/// Starts a replica of this server and waits until it has caught up.
pub fn replica_of(server: &Server, program: &Path, options: &[&str]) -> Server {
    let replica = Server::start(program, options);
    let mut client = replica.client();
    client.call(&format!("REPLICAOF 127.0.0.1 {}", server.port));
    wait_until(|| client.info("replication", "master_link_status") == "up");
    replica
}

/// Waits until the replica has caught up, then compares.
pub fn assert_equal(server: &Server, replica: &Server) {
    let (mut one, mut two) = (server.client(), replica.client());
    // A separate command: once it has arrived, so have all before it.
    one.call("SET last command");
    wait_until(|| two.text("GET last") == "$7\r\ncommand\r\n");
    one.call("DEL last");
    wait_until(|| two.text("EXISTS last") == ":0\r\n");
    assert_eq!(one.text("DEBUG DIGEST"), two.text("DEBUG DIGEST"));
}

/// Saves everything into the file that a server with these options reads when it starts: the state itself, not the
/// commands that led to it.
pub fn save_or_rewrite(client: &mut Client, options: &[&str]) {
    if options[0] == "--dbfilename" {
        assert_eq!(client.text("SAVE"), "+OK\r\n");
        return;
    }
    client.call("BGREWRITEAOF");
    wait_until(|| {
        client.info("persistence", "aof_rewrite_in_progress") == "0"
            && client.info("persistence", "aof_rewrite_scheduled") == "0"
    });
    assert_eq!(client.info("persistence", "aof_last_bgrewrite_status"), "ok");
}
