//! HTTP for the stores: hyper with rustls, by HTTP/1.1.
//!
//! `object_store` would bring reqwest, with HTTP/2 and another cryptography than the rest of the program; this is the part of
//! it that ranges of objects need. It knows no proxies.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long to wait for the next byte of an answer. Uploads of large objects are answered late.
const ANSWER: Duration = Duration::from_secs(20);
const ANSWER_TO_BYTES_PER_SECOND: u64 = 1 << 20;

static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Requests that this process has sent to object stores, those included that were tried again.
pub fn object_requests() -> u64 {
    REQUESTS.load(Ordering::Relaxed)
}

/// Makes clients for `object_store`. All share their connections.
#[derive(Clone, Debug)]
pub(super) struct Connector(pub(super) Arc<Connections>);

#[derive(Debug)]
pub(super) struct Connections(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

impl Connections {
    pub(super) fn new() -> std::io::Result<Self> {
        let mut tcp = TcpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let provider = rustls::crypto::ring::default_provider();
        let https = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(provider)?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(20))
            .build(https);
        Ok(Self(client))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let allow_http = allow_http.as_deref() == Some("true");
        Ok(HttpClient::new(Service { connections: Arc::clone(&self.0), allow_http }))
    }
}

#[derive(Debug)]
struct Service {
    connections: Arc<Connections>,
    allow_http: bool,
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if request.uri().scheme_str() == Some("http") && !self.allow_http {
            let what = "an endpoint without encryption (http://) is used only if AWS_ALLOW_HTTP or AZURE_ALLOW_HTTP is true";
            return Err(HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(what)));
        }
        REQUESTS.fetch_add(1, Ordering::Relaxed);
        let upload = request.body().content_length() as u64;
        let patience = ANSWER + Duration::from_secs(upload / ANSWER_TO_BYTES_PER_SECOND);
        let answer = timeout(patience, self.connections.0.request(request)).await;
        let answer = answer.map_err(|_| late(patience))?;
        let answer = answer.map_err(|error| {
            let kind = if error.is_connect() { HttpErrorKind::Connect } else { kind_of(&error) };
            HttpError::new(kind, Told(causes(&error)))
        })?;
        Ok(answer.map(|body| HttpResponseBody::new(Patient::new(body))))
    }
}

/// Whether a request may be tried again. A broken connection says nothing about what the server did with the request, so
/// what is not safe to repeat is not repeated.
fn kind_of(error: &(dyn Error + 'static)) -> HttpErrorKind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && error.is_parse()
        {
            return HttpErrorKind::Decode;
        }
        cause = error.source();
    }
    HttpErrorKind::Interrupted
}

/// The text of an error: that of its causes says more than its own.
#[derive(Debug)]
struct Told(String);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Told {}

fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn late(patience: Duration) -> HttpError {
    let what = format!("no answer for {} s", patience.as_secs());
    HttpError::new(HttpErrorKind::Timeout, Told(what))
}

/// A body whose bytes must not stop coming.
struct Patient {
    body: Incoming,
    patience: Pin<Box<Sleep>>,
}

impl Patient {
    fn new(body: Incoming) -> Self {
        Self { body, patience: Box::pin(sleep(ANSWER)) }
    }
}

impl Body for Patient {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => {
                self.patience.as_mut().reset(Instant::now() + ANSWER);
                Poll::Ready(frame.map(|frame| {
                    frame.map_err(|error| {
                        HttpError::new(HttpErrorKind::Interrupted, Told(causes(&error)))
                    })
                }))
            }
            Poll::Pending => match self.patience.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Some(Err(late(ANSWER)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
