//! A service for user names: claim, check, release. Most names that people try are free, and the store is asked only for
//! those that may be taken.
//!
//! ```text
//! PUT    /names/alice       201 claimed, 409 taken already        (the body, the owner, is stored with it)
//! GET    /names/alice       200 and the owner, 404 free
//! DELETE /names/alice       204 released, 404 was free
//! GET    /metrics           for Prometheus
//! GET    /health            200, or 503 if the store does not answer
//!
//! cargo run --package ironbloom-store --example username_service              asks itself some questions, and ends
//! cargo run --package ironbloom-store --example username_service -- 8080      serves until standard input ends
//! ```
//!
//! The names are in a redb file. Its calls block, so they run on threads made for that (`spawn_blocking`).

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract;
use axum::http::StatusCode;
use axum::routing::get;
use ironbloom_store::{
    Backend, Guard, GuardKind, Options, Redb, RedbError, Typed, checkpoint_beside,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const LONGEST_NAME: usize = 64;

/// The names, and who owns each.
type Names = Typed<Guard<Redb>, str, String>;

struct Service {
    names: Names,
    /// Held from the check whether a name is free to its claim.
    claiming: Mutex<()>,
    prometheus: PrometheusHandle,
}

type State = extract::State<Arc<Service>>;
type Name = extract::Path<String>;
/// What the client is told if there is no answer: not the store's own words.
type Failure = (StatusCode, &'static str);

fn open(directory: &Path) -> Result<Service, Box<dyn Error>> {
    let file = directory.join("names.redb");
    // Names come and go, and nobody else writes to the file.
    let options =
        Options::new(GuardKind::Cuckoo, 100_000, 0.001).checkpoint(checkpoint_beside(&file));
    let names = Typed::new(Guard::open(Redb::create(&file)?, options)?);
    let recorder = PrometheusBuilder::new().build_recorder();
    let prometheus = recorder.handle();
    // Fails if the service was opened before in this process: then that one's page shows these numbers, too.
    let _ = metrics::set_global_recorder(recorder);
    Ok(Service { names, claiming: Mutex::new(()), prometheus })
}

fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route("/names/{name}", get(check).put(claim).delete(release))
        .route("/metrics", get(numbers))
        .route("/health", get(health))
        .with_state(service)
}

/// A name in any case is the same name.
fn checked(name: &str) -> Result<String, Failure> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(letter) {
        true => Ok(name.to_ascii_lowercase()),
        false => Err((StatusCode::BAD_REQUEST, "letters, digits, - and _, 64 at most\n")),
    }
}

/// Runs what may wait for the disk on a thread that may be blocked.
async fn blocking<T: Send + 'static>(
    service: Arc<Service>,
    work: impl FnOnce(&Service) -> Result<T, ironbloom_store::Error<RedbError>> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(move || work(&service)).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            Err((StatusCode::SERVICE_UNAVAILABLE, "please try again\n"))
        }
        Err(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, "please tell us\n")),
    }
}

async fn check(
    extract::State(service): State,
    extract::Path(name): Name,
) -> Result<String, Failure> {
    let name = checked(&name)?;
    let owner = blocking(service, move |service| service.names.get(name.as_str())).await?;
    owner.ok_or((StatusCode::NOT_FOUND, "free\n"))
}

async fn claim(
    extract::State(service): State,
    extract::Path(name): Name,
    owner: String,
) -> Result<StatusCode, Failure> {
    let name = checked(&name)?;
    let claimed = blocking(service, move |service| {
        // A put replaces: of two who want a name at once, the second must not take it from the first.
        let _claiming = service.claiming.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(!service.names.contains(name.as_str())?
            && service.names.put(name.as_str(), &owner)?.was_absent())
    });
    Ok(if claimed.await? { StatusCode::CREATED } else { StatusCode::CONFLICT })
}

async fn release(
    extract::State(service): State,
    extract::Path(name): Name,
) -> Result<StatusCode, Failure> {
    let name = checked(&name)?;
    let released =
        blocking(service, move |service| Ok(service.names.remove(name.as_str())?.was_present()))
            .await?;
    Ok(if released { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
}

async fn numbers(extract::State(service): State) -> String {
    service.names.guard().stats().publish("names");
    service.prometheus.render()
}

async fn health(extract::State(service): State) -> Result<&'static str, Failure> {
    // The store itself: the filter would answer without it.
    let ask = |service: &Service| {
        service.names.guard().backend().contains(b"").map_err(ironbloom_store::Error::Store)
    };
    blocking(service, ask).await.map(|_| "ok\n")
}

/// Serves until `stop` ends, then writes a checkpoint.
fn serve(directory: &Path, listener: std::net::TcpListener, stop: oneshot::Receiver<()>) {
    let service = Arc::new(open(directory).expect("a store"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    runtime.expect("a runtime").block_on(async {
        listener.set_nonblocking(true).expect("a listener");
        let listener = TcpListener::from_std(listener).expect("a listener");
        let stopped = async { drop(stop.await) };
        let routes = routes(service.clone());
        axum::serve(listener, routes).with_graceful_shutdown(stopped).await.expect("a server");
    });
    let service = Arc::into_inner(service).expect("nobody asks any more");
    service.names.into_guard().close().expect("a checkpoint");
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(port) = std::env::args().nth(1) else { return ask_itself() };
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    println!("http://{}/names/alice", listener.local_addr()?);
    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = stop.send(());
    });
    serve(Path::new("."), listener, stopped);
    Ok(())
}

/// One request. The status and the body.
fn ask(server: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

/// Starts a server in a thread, lets `questions` ask it, and stops it.
fn with_server(directory: &Path, questions: impl FnOnce(SocketAddr)) -> Result<(), Box<dyn Error>> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let server = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| serve(directory, listener, stopped));
        questions(server);
        let _ = stop.send(());
        serving.join().expect("a clean end");
    });
    Ok(())
}

fn ask_itself() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    with_server(directory.path(), |server| {
        let ask = |method: &str, path: &str, body: &str| ask(server, method, path, body);
        assert_eq!(ask("GET", "/health", ""), (200, "ok\n".to_owned()));
        assert_eq!(ask("GET", "/names/alice", "").0, 404);
        assert_eq!(ask("PUT", "/names/Alice", "Alice A.").0, 201);
        assert_eq!(ask("PUT", "/names/alice", "Alice B.").0, 409, "somebody else was faster");
        assert_eq!(ask("GET", "/names/ALICE", ""), (200, "Alice A.".to_owned()));
        assert_eq!(ask("PUT", "/names/a%20b", "").0, 400);
        for i in 0..50 {
            assert_eq!(ask("GET", &format!("/names/alice{i}"), "").0, 404);
        }
        // Of many who want one name at once, one gets it.
        let claims = || {
            let ask = || ask("PUT", "/names/bob", "Bob").0;
            std::thread::scope(|scope| {
                let all: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
                all.into_iter().map(|one| one.join().expect("an answer")).collect::<Vec<u16>>()
            })
        };
        assert_eq!(claims().iter().filter(|&&status| status == 201).count(), 1);
        assert_eq!(ask("DELETE", "/names/bob", "").0, 204);
        assert_eq!(ask("DELETE", "/names/bob", "").0, 404);
        assert_eq!(ask("GET", "/names/bob", "").0, 404, "free again");
        let (status, page) = ask("GET", "/metrics", "");
        assert_eq!(status, 200);
        let skipped = "ironbloom_store_lookups_total{store=\"names\",result=\"skipped\"} ";
        let line = page.lines().find_map(|line| line.strip_prefix(skipped));
        let skipped: u64 = line.and_then(|count| count.parse().ok()).expect("a counter");
        assert!(skipped >= 50, "{page}");
        println!("{skipped} questions for free names were answered without the store");
    })?;
    // The checkpoint written at the end is enough to know the names again.
    with_server(directory.path(), |server| {
        assert_eq!(ask(server, "GET", "/names/alice", "").0, 200);
        assert_eq!(ask(server, "GET", "/names/bob", "").0, 404);
    })?;
    Ok(())
}
