//! Promise: a guard over S3 says of no key that it was there, or is not, because a request was repeated; whatever its keys
//! look like, and however many there are.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use ironbloom_store::{AsyncBackend, AsyncGuard, Before, GuardKind, Objects, Options, Rebuild};
use ironbloom_testing::Scratch;
use ironbloom_testing::s3::{BUCKET, Fault, S3Server};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::common::key;

/// HTTP/1.1 to a server of loopback, a connection for each request.
#[derive(Clone, Copy, Debug)]
struct Plain;

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Self))
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, error)
}

#[async_trait::async_trait]
impl HttpService for Plain {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let authority = head.uri.authority().map(|host| host.to_string()).unwrap_or_default();
        let place = head.uri.path_and_query().map(|place| place.as_str()).unwrap_or_default();
        let mut text = format!("{} {place} HTTP/1.1\r\nhost: {authority}\r\n", head.method);
        for (name, value) in &head.headers {
            if name != "content-length" && name != "host" {
                text += &format!("{name}: {}\r\n", value.to_str().unwrap_or_default());
            }
        }
        text += &format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(authority).await.map_err(broken)?;
        stream.write_all(text.as_bytes()).await.map_err(broken)?;
        stream.write_all(&body).await.map_err(broken)?;
        answer(stream, head.method == "HEAD").await
    }
}

async fn answer(mut stream: TcpStream, is_head: bool) -> Result<HttpResponse, HttpError> {
    let mut bytes = Vec::new();
    let cut = || broken(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
    // The proxy keeps the connection: as many bytes as it says, and no more.
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4);
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut lines = head.lines();
            let status = lines.next().and_then(|line| line.split(' ').nth(1)).ok_or_else(cut)?;
            let mut response = http::Response::builder().status(status);
            let mut length = 0;
            for (name, value) in lines.filter_map(|line| line.split_once(':')) {
                response = response.header(name, value.trim());
                if name.eq_ignore_ascii_case("content-length") && !is_head {
                    length = value.trim().parse().unwrap_or(0);
                }
            }
            if bytes.len() >= end + length {
                let body = HttpResponseBody::from(bytes[end..end + length].to_vec());
                return response.body(body).map_err(broken);
            }
        }
        if stream.read_buf(&mut bytes).await.map_err(broken)? == 0 {
            return Err(cut());
        }
    }
}

fn bucket(server: &S3Server) -> AmazonS3 {
    let soon = Duration::from_millis(1);
    let backoff = BackoffConfig { init_backoff: soon, max_backoff: 4 * soon, base: 2.0 };
    AmazonS3Builder::new()
        .with_endpoint(server.proxy.url())
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id("AKIATESTKEY")
        .with_secret_access_key("hunter2hunter2")
        .with_bucket_name(BUCKET)
        .with_retry(RetryConfig { backoff, ..RetryConfig::default() })
        .with_http_connector(Plain)
        .build()
        .unwrap()
}

fn objects(server: &S3Server, prefix: &str) -> Objects {
    Objects::new(Arc::new(bucket(server)), prefix)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn scanned(store: &Objects) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(&mut visit).await.unwrap();
    keys.sort();
    keys
}

#[test]
fn a_put_that_was_carried_out_answered_500_and_repeated_is_not_said_to_have_been_there() {
    let scratch = Scratch::new("s3-repeated");
    let Some(server) = S3Server::start(scratch.path()) else { return };
    runtime().block_on(async {
        for kind in [GuardKind::Cuckoo, GuardKind::DLeft, GuardKind::Blocked] {
            // So high a rate that many keys share a fingerprint.
            let options = Options::new(kind, 60, 0.3).only_writer().rebuild(Rebuild::Manual);
            let store = objects(&server, kind.name());
            let guard = AsyncGuard::open(store.clone(), options).await.unwrap();
            guard.put("first", b"").await.unwrap(); // and the generation
            server.proxy.take_log();
            for i in 0..40 {
                server.proxy.fail_next([Fault::DoneBut(500)]);
                let before = guard.put(key(i), b"value").await.unwrap();
                assert_ne!(before, Before::Present, "{kind}: key {i} is new");
            }
            let puts =
                server.proxy.take_log().iter().filter(|line| line.starts_with("PUT")).count();
            assert!(puts >= 80, "{kind}: each was sent twice, {puts} in all");
            server.proxy.fail_next([Fault::DoneBut(500)]);
            assert_ne!(guard.put(key(0), b"other").await.unwrap(), Before::Absent, "{kind}");
            assert_eq!(guard.stats().foreign, 0, "{kind}: nobody else has written");
            for i in 0..20 {
                assert_ne!(guard.remove(key(i)).await.unwrap(), Before::Absent, "{kind}");
            }
            for i in 0..40 {
                let stored = store.contains(&key(i)).await.unwrap();
                assert_eq!(stored, i >= 20);
                assert_eq!(guard.contains(key(i)).await.unwrap(), stored, "{kind}: key {i}");
            }
        }
    });
}

#[test]
fn odd_keys_and_more_of_them_than_a_page_of_s3_has_are_guarded() {
    let scratch = Scratch::new("s3-odd");
    let Some(server) = S3Server::start(scratch.path()) else { return };
    runtime().block_on(async {
        let store = objects(&server, "odd prefix/ü%2F");
        let options =
            || Options::new(GuardKind::Cuckoo, 3000, 0.01).only_writer().rebuild(Rebuild::Manual);
        let guard = AsyncGuard::open(store.clone(), options()).await.unwrap();
        let mut keys: Vec<Vec<u8>> = [
            "",
            " ",
            "a b ",
            "größe",
            "日本語",
            "%",
            "%2F",
            "%25",
            "..",
            ".",
            "../..",
            "a/../b",
            "a/",
            "/a",
            "//",
            "a//b",
            "+",
            "a+b",
            "?x=1",
            "#",
            "&",
            "=41",
            "~",
            "\\",
            "\"'<>",
            "generation",
            "kx",
            "d",
            "\n",
            "\u{0}",
            "A",
            "a",
            "e\u{301}",
            "é",
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
        keys.extend([vec![0xff, 0xfe], vec![b'x'; 200], vec![b'x'; 201], vec![b'x'; 900]]);
        for key in &keys {
            let text = String::from_utf8_lossy(key);
            assert_eq!(guard.put(key, key).await.unwrap(), Before::Absent, "{text:?}");
            assert_eq!(guard.put(key, key).await.unwrap(), Before::Present, "{text:?}");
        }
        // S3 has no names of more than 1024 bytes, and other servers do: an error, or a key like others.
        let long = "ü".repeat(600).into_bytes();
        if guard.put(&long, b"").await.is_ok() {
            assert!(guard.contains(&long).await.unwrap());
            keys.push(long);
        }
        for text in ["b", "a b", "%2f", "e", "größ", "xx"] {
            assert!(!guard.contains(text).await.unwrap(), "{text}");
        }
        let many: Vec<Vec<u8>> = (0..1100).map(key).collect();
        for part in many.chunks(20) {
            futures_util::future::join_all(part.iter().map(|key| guard.put(key, b"")))
                .await
                .into_iter()
                .for_each(|put| assert_eq!(put.unwrap(), Before::Absent));
        }
        keys.extend(many);
        keys.sort();
        assert!(scanned(&store).await == keys, "all keys, and no others");
        server.proxy.take_log();
        guard.rebuild().await.unwrap();
        let pages =
            server.proxy.take_log().iter().filter(|line| line.contains("list-type")).count();
        assert!(pages >= 2, "{pages} pages");
        for (key, value) in keys.iter().zip(guard.get_many(&keys).await.unwrap()) {
            assert!(value.is_some(), "{:?}", String::from_utf8_lossy(key));
        }
        let odd = keys.iter().filter(|key| !key.starts_with(b"key-"));
        for key in odd {
            assert_eq!(guard.remove(key).await.unwrap(), Before::Present);
            assert!(!guard.contains(key).await.unwrap());
        }
        assert_eq!(scanned(&store).await.len(), 1100);
    });
}
