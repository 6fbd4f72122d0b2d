//! TLS: every command speaks it, to servers and clusters, and nothing is sent to a server without a trusted certificate.

use super::{redis_with, refused, url};
use crate::program::{Run, Scratch, lines};
use ironbloom_testing::certificates::Authority;
use ironbloom_testing::cluster::SLOTS;
use ironbloom_testing::tls::{Secured, tls_programs};
use ironbloom_testing::wait_until;

/// The files of a test: `ca.pem`, which has signed `here` (this machine) and `elsewhere` (another one).
fn certificates() -> Scratch {
    let scratch = Scratch::new();
    let authority = Authority::new(&scratch, "ca.pem");
    authority.sign(&scratch, "here", &["127.0.0.1", "localhost"]);
    authority.sign(&scratch, "elsewhere", &["db.example"]);
    scratch
}

/// Loads, asks, saves and lists with these options.
fn use_all_commands(scratch: &Scratch, url: &str, options: &[&str], shards: &[&str]) {
    let run =
        |args: &[&str], stdin: &str| redis_with(scratch, url, &[args, options].concat(), stdin);
    let load = [&["load", "--lines", "-", "--key", "k", "--rate", "0.01%"], shards].concat();
    run(&load, &lines(0..1000)).succeeds();
    assert_eq!(run(&["check", "--key", "k"], &lines(0..1000)).succeeds().text(), lines(0..1000));
    run(&["dump", "--key", "k", "-o", "k.file"], "").succeeds();
    run(&["load", "k.file", "--key", "copy"], "").succeeds();
    assert_eq!(run(&["check", "--key", "copy"], &lines(0..1000)).succeeds().text(), lines(0..1000));
    let listed = run(&["info", "--json"], "").succeeds().json();
    let keys: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["copy", "k"]);
}

#[test]
fn every_command_speaks_tls() {
    for program in tls_programs() {
        let scratch = certificates();
        let server = Secured::start(&program, &scratch, "here", &[]);
        let identity = ["--cacert", "ca.pem", "--cert", "here.pem", "--cert-key", "here.key"];
        use_all_commands(&scratch, &server.url(), &identity, &[]);
        // The same, said otherwise: both in one file, and an option for what the URL does not say.
        let both = [scratch.read("here.pem"), scratch.read("here.key")].concat();
        scratch.write("both.pem", both);
        let plain = server.url().replace("rediss", "redis").replace("127.0.0.1", "localhost");
        let check = ["check", "--key", "k", "--tls", "--cacert", "ca.pem", "--cert", "both.pem"];
        assert_eq!(redis_with(&scratch, &plain, &check, "7\n").succeeds().text(), "7\n");
        // What the system trusts, if no file is given.
        let mut command =
            scratch.command(["redis", "info", "--cert", "both.pem", "--url", &server.url()]);
        let run = command.env("SSL_CERT_FILE", scratch.path("ca.pem")).output().unwrap();
        assert_eq!(Run::from(run).succeeds().text().lines().count(), 3);
    }
}

#[test]
fn every_command_speaks_tls_to_a_cluster() {
    for program in tls_programs().into_iter().take(1) {
        let scratch = certificates();
        let options =
            ["--cluster-enabled", "yes", "--tls-cluster", "yes", "--tls-replication", "yes"];
        let options = [&options[..], &["--tls-auth-clients", "no"]].concat();
        for (name, trust) in [
            ("here", &["--cacert", "ca.pem"][..]),
            ("elsewhere", &["--cacert", "ca.pem", "--any-host-name"]),
        ] {
            let masters: Vec<Secured> =
                SLOTS.iter().map(|_| Secured::start(&program, &scratch, name, &options)).collect();
            for (master, (first, last)) in masters.iter().zip(SLOTS) {
                let mut client = master.server.client();
                let slots: Vec<String> = (first..=last).map(|slot| slot.to_string()).collect();
                assert_eq!(
                    client.text(&format!("CLUSTER ADDSLOTS {}", slots.join(" "))),
                    "+OK\r\n"
                );
                let meet = format!("CLUSTER MEET 127.0.0.1 {}", masters[0].tls_port);
                assert_eq!(client.text(&meet), "+OK\r\n");
            }
            for master in &masters {
                let mut client = master.server.client();
                wait_until(|| client.text("CLUSTER INFO").contains("cluster_state:ok"));
            }
            use_all_commands(&scratch, &masters[1].url(), trust, &["--shards", "7"]);
            if name == "elsewhere" {
                let check = ["check", "--key", "k", "--insecure"];
                redis_with(&scratch, &masters[1].url(), &check, "1\n").succeeds();
                let check = ["check", "--key", "k", "--cacert", "ca.pem"];
                let run = redis_with(&scratch, &masters[1].url(), &check, "1\n");
                let message = format!(
                    "{}: the server's certificate is for another host name",
                    masters[1].url()
                );
                refused(&run, &message, "--any-host-name");
            }
        }
    }
}

#[test]
fn servers_that_nobody_vouches_for_are_refused() {
    for program in tls_programs().into_iter().take(1) {
        let scratch = certificates();
        Authority::new(&scratch, "other-ca.pem");
        let server = Secured::start(&program, &scratch, "here", &["--tls-auth-clients", "no"]);
        let stranger =
            Secured::start(&program, &scratch, "elsewhere", &["--tls-auth-clients", "no"]);
        let info = |url: &str, options: &[&str]| {
            redis_with(&scratch, url, &[&["info"], options].concat(), "")
        };
        let says = |url: &str, options: &[&str], message: &str, hint: &str| {
            refused(&info(url, options), &format!("{url}: {message}"), hint);
        };
        let untrusted = "the server's certificate is not trusted";
        says(&server.url(), &["--cacert", "other-ca.pem"], untrusted, "--cacert");
        says(&server.url(), &[], untrusted, "--cacert"); // the system has never heard of it either
        let other_name = "the server's certificate is for another host name";
        says(&stranger.url(), &["--cacert", "ca.pem"], other_name, "--any-host-name");
        info(&stranger.url(), &["--cacert", "ca.pem", "--any-host-name"]).succeeds();
        // That needs a certificate that is trusted all the same.
        says(
            &stranger.url(),
            &["--cacert", "other-ca.pem", "--any-host-name"],
            untrusted,
            "--cacert",
        );
        let run = info(&stranger.url(), &["--insecure"]).succeeds();
        assert!(run.stderr.starts_with("warning: --insecure: "), "{}", run.stderr);
        assert!(
            !info(&server.url(), &["--cacert", "ca.pem"]).succeeds().stderr.contains("warning")
        );
    }
}

#[test]
fn plain_text_is_told_from_tls() {
    for program in tls_programs() {
        let scratch = certificates();
        let server = Secured::start(&program, &scratch, "here", &["--tls-auth-clients", "no"]);
        let info = |url: &str| redis_with(&scratch, url, &["info"], "");
        let plain = url(&server.server).replace("redis:", "rediss:");
        refused(
            &info(&plain),
            &format!("{plain}: the server does not speak TLS on this port"),
            "redis://",
        );
        let encrypted = server.url().replace("rediss:", "redis:");
        refused(
            &info(&encrypted),
            &format!("{encrypted}: the server closed the connection"),
            "rediss://",
        );
        let run = redis_with(&scratch, &encrypted, &["info", "--cacert", "ca.pem"], "");
        refused(&run, "--cacert is for TLS, and the URL is not", "--tls");
        let run = redis_with(&scratch, &format!("{plain}#insecure"), &["info"], "");
        refused(&run, &format!("{plain}#insecure: #insecure is an option"), "--insecure");
    }
}

#[test]
fn a_server_that_wants_a_certificate_gets_one_that_it_trusts() {
    for program in tls_programs().into_iter().take(1) {
        let scratch = certificates();
        let server = Secured::start(&program, &scratch, "here", &["--tls-auth-clients", "yes"]);
        Authority::new(&scratch, "other-ca.pem").sign(&scratch, "unknown", &["127.0.0.1"]);
        let info = |options: &[&str]| {
            let trust = ["info", "--cacert", "ca.pem"];
            redis_with(&scratch, &server.url(), &[&trust[..], options].concat(), "")
        };
        info(&["--cert", "elsewhere.pem", "--cert-key", "elsewhere.key"]).succeeds();
        refused(
            &info(&[]),
            &format!("{}: the server asks for a certificate", server.url()),
            "--cert FILE",
        );
        let unknown = info(&["--cert", "unknown.pem", "--cert-key", "unknown.key"]);
        let message =
            format!("{}: the server does not accept the certificate of --cert", server.url());
        refused(&unknown, &message, "tls-ca-cert-file");
    }
}

#[test]
fn files_that_hold_no_certificate_or_no_key_are_named() {
    let scratch = certificates();
    scratch.write("text.pem", "hello\n");
    scratch.write("cut.pem", &scratch.read("here.pem")[..100]);
    let locked =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    scratch.write("locked.key", locked);
    let info = |options: &[&str]| {
        redis_with(&scratch, "rediss://127.0.0.1:1", &[&["info"], options].concat(), "")
    };
    for file in ["text.pem", "cut.pem", "here.key"] {
        let message = format!("{file}: holds no certificate that can be read");
        refused(&info(&["--cacert", file]), &message, "-----BEGIN CERTIFICATE-----");
    }
    let key = |file| info(&["--cert", "here.pem", "--cert-key", file]);
    refused(&key("text.pem"), "text.pem: holds no private key that can be read", "PRIVATE KEY");
    refused(&key("locked.key"), "locked.key: the private key is locked", "openssl pkey");
    refused(
        &key("elsewhere.key"),
        "elsewhere.key: is not the private key of the certificate here.pem",
        "--cert-key",
    );
    let run = info(&["--cacert", "missing.pem"]).ends_with(2);
    assert!(run.stderr.starts_with("error: missing.pem: No such file"), "{}", run.stderr);
    let run = info(&["--cert-key", "here.key"]).ends_with(2);
    assert!(run.stderr.contains("--cert <FILE>"), "{}", run.stderr);
}
