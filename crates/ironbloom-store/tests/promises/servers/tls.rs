//! Encrypted connections: only to servers whose certificate was signed by a trusted authority for their host name.

use std::path::Path;

use ironbloom_store::{
    AsyncBackend, AsyncPostgres, AsyncRedis, Backend, Connections, Guard, GuardKind, Options,
    Postgres, Redis, Tls, TlsError,
};
use ironbloom_testing::certificates::Authority;

use super::awaited::runtime;
use crate::common::{assert_covers, key};
use ironbloom_testing::Scratch;
use ironbloom_testing::eventually;
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::tls::TlsFiles;

/// A server that is called `localhost`, and nothing else.
fn files(directory: &Path, authority: &Authority) -> TlsFiles {
    use std::os::unix::fs::PermissionsExt;
    let (certificate, key) = authority.certificate("localhost", &["localhost"]);
    let write = |name: &str, text: &str| {
        let file = directory.join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    };
    TlsFiles {
        certificate: write("server.pem", &certificate),
        key: write("server.key", &key),
        authority: write("authority.pem", &authority.pem()),
    }
}

fn trusting(authority: &Authority) -> Connections {
    Connections::new().tls(Tls::trusting(authority.pem()))
}

/// Why somebody was refused, and not by chance.
fn refused<T, E: std::fmt::Display>(answer: Result<T, E>, words: &str) {
    let said = answer.err().expect("this must be refused").to_string();
    assert!(said.to_lowercase().contains(&words.to_lowercase()), "{words}: {said}");
}

#[test]
fn postgresql_is_believed_only_with_the_right_certificate() {
    let scratch = Scratch::new("tls-postgres");
    let (right, wrong) = (Authority::named("right"), Authority::named("wrong"));
    let files = files(scratch.path(), &right);
    let Some(server) = PostgresServer::start_with(scratch.path(), Some(&files)) else { return };
    let place = |host: &str| {
        format!("host={host} hostaddr=127.0.0.1 port={} user=postgres dbname=postgres", server.port)
    };
    let (url, runtime) = (place("localhost"), runtime());
    let store = eventually(|| Postgres::connect_with(&url, "t", &trusting(&right)));
    assert!(store.put(b"a", b"1").unwrap().was_absent());
    refused(Postgres::connect_with(&url, "t", &trusting(&wrong)), "UnknownIssuer");
    refused(
        Postgres::connect_with(&place("127.0.0.1"), "t", &trusting(&right)),
        "not valid for name",
    );
    refused(Postgres::connect(&url, "t"), "no encryption");
    // What a connection string says.
    let root = files.authority.to_str().unwrap();
    for mode in ["require", "verify-ca", "verify-full"] {
        let with = |host: &str| format!("{} sslmode={mode} sslrootcert='{root}'", place(host));
        let store = Postgres::connect(&with("localhost"), "t").unwrap();
        assert!(store.contains(b"a").unwrap());
        refused(Postgres::connect(&with("127.0.0.1"), "t"), "not valid for name");
        // The system knows none of our authorities.
        let system = Postgres::connect(&format!("{url} sslmode={mode}"), "t");
        let said = system.unwrap_err().to_string();
        assert!(said.contains("UnknownIssuer") || said.contains("no certificate"), "{said}");
    }
    let form = format!("postgresql://postgres@localhost:{}/postgres", server.port);
    let form = format!("{form}?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={root}");
    assert!(Postgres::connect(&form, "t").unwrap().contains(b"a").unwrap());
    refused(
        Postgres::connect(&format!("{url} sslmode=require sslrootcert=/no/file"), "t"),
        "/no/file",
    );
    let nonsense = Connections::new().tls(Tls::trusting("nonsense"));
    let error = Postgres::connect_with(&url, "t", &nonsense).unwrap_err();
    assert!(matches!(error, ironbloom_store::PostgresError::Tls(TlsError::NoRoots)), "{error}");

    // The same, awaited; and the scan, which has a connection of its own.
    runtime.block_on(async {
        let connect = |url: String, authority: &Authority| {
            let connections = trusting(authority);
            async move { AsyncPostgres::connect_with(&url, "t", &connections).await }
        };
        let store = connect(url.clone(), &right).await.unwrap();
        assert!(store.contains(b"a").await.unwrap());
        let mut visited = 0;
        let mut visit = |_: &[u8]| {
            visited += 1;
            std::ops::ControlFlow::Continue(())
        };
        store.scan(&mut visit).await.unwrap();
        assert_eq!(visited, 1);
        refused(connect(url.clone(), &wrong).await, "UnknownIssuer");
        refused(connect(place("127.0.0.1"), &right).await, "not valid for name");
        refused(AsyncPostgres::connect(&url, "t").await, "no encryption");
    });

    // A server that wants to know who we are.
    let hba = "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n";
    std::fs::write(scratch.file("data/pg_hba.conf"), hba).unwrap();
    server.psql("select pg_reload_conf()");
    let refuses = || Postgres::connect_with(&url, "t", &trusting(&right)).err().ok_or("not yet");
    let said = eventually(refuses).to_string();
    assert!(said.contains("valid client certificate"), "{said}");
    let (certificate, key) = right.certificate("me", &["me"]);
    let me = Tls::trusting(right.pem()).identity(certificate, key);
    let store = Postgres::connect_with(&url, "t", &Connections::new().tls(me)).unwrap();
    assert!(store.contains(b"a").unwrap());
}

#[test]
fn redis_is_believed_only_with_the_right_certificate() {
    let scratch = Scratch::new("tls-redis");
    let (right, wrong) = (Authority::named("right"), Authority::named("wrong"));
    let files = files(scratch.path(), &right);
    let Some(server) = RedisServer::start_with(scratch.path(), &[], Some(&files)) else { return };
    let place = |host: &str| format!("rediss://{host}:{}/", server.port);
    let (url, runtime) = (place("localhost"), runtime());
    let store = eventually(|| Redis::connect_with(url.as_str(), "", &trusting(&right)));
    assert!(store.put(b"a", b"1").unwrap().was_absent());
    refused(Redis::connect_with(url.as_str(), "", &trusting(&wrong)), "UnknownIssuer");
    refused(Redis::connect_with(place("127.0.0.1"), "", &trusting(&right)), "not valid for name");
    refused(Redis::connect(url.as_str(), ""), "UnknownIssuer");
    refused(Redis::connect_with(server.url(), "", &trusting(&right)), "rediss://");
    refused(Redis::connect(format!("{url}#insecure"), ""), "insecure");
    assert!(Redis::connect(server.url(), "").is_err(), "it speaks nothing else");
    runtime.block_on(async {
        let connect = |url: String, authority: &Authority| {
            let connections = trusting(authority);
            async move { AsyncRedis::connect_with(url, "", &connections).await }
        };
        let store = connect(url.clone(), &right).await.unwrap();
        assert!(store.contains(b"a").await.unwrap());
        refused(connect(url.clone(), &wrong).await, "UnknownIssuer");
        refused(connect(place("127.0.0.1"), &right).await, "not valid for name");
        refused(AsyncRedis::connect(url.clone(), "").await, "UnknownIssuer");
    });
    // A server that wants to know who we are.
    let (certificate, key) = right.certificate("me", &["me"]);
    let me = Connections::new().tls(Tls::trusting(right.pem()).identity(certificate, key));
    let mut connection = redis_client(&url, &right).get_connection().unwrap();
    redis::cmd("CONFIG").arg(&["SET", "tls-auth-clients", "yes"]).exec(&mut connection).unwrap();
    assert!(Redis::connect_with(url.as_str(), "", &trusting(&right)).is_err());
    assert!(Redis::connect_with(url.as_str(), "", &me).unwrap().contains(b"a").unwrap());
}

fn redis_client(url: &str, authority: &Authority) -> redis::Client {
    let root_cert = Some(authority.pem().into_bytes());
    let certificates = redis::TlsCertificates { client_tls: None, root_cert };
    redis::Client::build_with_tls(url, certificates).unwrap()
}

/// A certificate that is out of date or for another host is refused by name, and never leads to a connection that is not
/// encrypted; once it is renewed all goes on. `renew` starts the server again with this certificate.
fn is_refused_until_renewed<B: Backend>(
    authority: &Authority,
    connect: impl Fn() -> Result<B, B::Error>,
    mut renew: impl FnMut((String, String)),
) {
    let options = Options::new(GuardKind::Blocked, 1000, 0.01).only_writer();
    let guard = Guard::open(eventually(&connect), options).unwrap();
    guard.settle().unwrap();
    let hosts = &["localhost"];
    let cases = [
        (authority.expired("localhost", hosts), "expired"),
        (authority.not_yet_valid("localhost", hosts), "not valid yet"),
        (authority.certificate("elsewhere", &["elsewhere"]), "not valid for name"),
    ];
    for (i, (certificate, words)) in cases.into_iter().enumerate() {
        let (before, after) = (key(2 * i as u64), key(2 * i as u64 + 1));
        assert!(eventually(|| guard.put(&before, b"")).was_absent(), "{words}");
        renew(certificate);
        // At first it does not listen yet, and connections that have ended are errors as well.
        let says = |said: Option<String>| match said {
            Some(said) if said.contains(words) => Ok(()),
            Some(said) => Err(said),
            None => panic!("{words}: there is a way"),
        };
        eventually(|| says(connect().err().map(|error| error.to_string())));
        eventually(|| says(guard.put(&after, b"").err().map(|error| error.to_string())));
        refused(guard.rebuild(), words);
        refused(guard.get(&before), words);
        renew(authority.certificate("localhost", hosts));
        assert!(eventually(|| guard.get(&before)).is_some(), "{words}");
        assert!(eventually(|| guard.put(&after, b"")).was_absent(), "{words}: nothing was written");
        assert_covers(&guard, words);
    }
}

fn write(files: &TlsFiles, (certificate, key): (String, String)) {
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
}

#[test]
fn postgresql_with_a_certificate_that_is_out_of_date_is_refused_until_it_is_renewed() {
    let scratch = Scratch::new("expired-postgres");
    let authority = Authority::named("right");
    let files = files(scratch.path(), &authority);
    let Some(mut server) = PostgresServer::start_with(scratch.path(), Some(&files)) else { return };
    server.wait();
    // It would let anyone in who does without encryption.
    let hba = "host all all 127.0.0.1/32 trust\n";
    std::fs::write(scratch.file("data/pg_hba.conf"), hba).unwrap();
    server.psql("select pg_reload_conf()");
    let place = "host=localhost hostaddr=127.0.0.1 user=postgres dbname=postgres";
    let url = format!("{place} port={}", server.port);
    eventually(|| Postgres::connect(&url, "plain"));
    let connect = || Postgres::connect_with(&url, "t", &trusting(&authority));
    let renew = |certificate| {
        server.stop();
        write(&files, certificate);
        server.resume();
    };
    is_refused_until_renewed(&authority, connect, renew);
}

#[test]
fn redis_with_a_certificate_that_is_out_of_date_is_refused_until_it_is_renewed() {
    let scratch = Scratch::new("expired-redis");
    let authority = Authority::named("right");
    let files = files(scratch.path(), &authority);
    let Some(mut server) = RedisServer::start_with(scratch.path(), &[], Some(&files)) else {
        return;
    };
    let url = format!("rediss://localhost:{}/", server.port);
    let connect = || Redis::connect_with(url.as_str(), "", &trusting(&authority));
    let renew = |certificate| {
        server.stop();
        write(&files, certificate);
        server.resume();
    };
    is_refused_until_renewed(&authority, connect, renew);
}
