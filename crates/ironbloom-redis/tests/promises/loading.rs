//! Promise: where RedisBloom is loaded, or this module already, loading it fails cleanly, and the log says why.

use std::fs;
use std::process::Command;

use ironbloom_testing::module::{Server, all_programs as programs, module};

/// A module that has RedisBloom's data type and nothing else.
const FAKE: &str = r#"
typedef int (*Find)(const char *, void *);
typedef void (*Attribs)(void *, const char *, int, int);
typedef void *(*Create)(void *, const char *, int, void *);
static struct { unsigned long long version; void *methods[32]; } methods = { 1, { 0 } };

int RedisModule_OnLoad(void **ctx, void **argv, int argc) {
    Find find = (Find)ctx[0];
    Attribs attribs;
    Create create;
    (void)argv;
    (void)argc;
    if (find("RedisModule_SetModuleAttribs", &attribs) || find("RedisModule_CreateDataType", &create)) return 1;
    attribs(ctx, "bf", 20806, 1);
    return create(ctx, "MBbloom--", 4, &methods) ? 0 : 1;
}
"#;

fn try_to_load(server: &Server, path: &str) -> String {
    let reply = server.client().call_words(&[b"MODULE", b"LOAD", path.as_bytes()]);
    let reply = String::from_utf8_lossy(&reply);
    assert!(reply.starts_with("-ERR"), "{reply}");
    assert_eq!(server.client().text("PING"), "+PONG\r\n");
    server.log()
}

#[test]
fn a_second_copy_is_refused_and_the_first_goes_on() {
    for program in programs() {
        let server = Server::start(&program, &["--enable-module-command", "yes"]);
        let copy = server.folder().join("another.so");
        fs::copy(module(), &copy).unwrap();
        let mut client = server.client();
        client.call("BF.ADD b x");
        client.call("BF.RESERVE n 0.1 10 LAYOUT BLOCKED");
        let log = try_to_load(&server, copy.to_str().unwrap());
        assert!(log.contains("a module of the name ironbloom is loaded already"), "{log}");
        assert_eq!(client.text("MODULE LIST").matches("$9\r\nironbloom\r\n").count(), 1);
        assert_eq!(client.text("BF.EXISTS b x"), ":1\r\n");
        assert_eq!(client.text("BF.ADD n x"), ":1\r\n");
    }
}

#[test]
fn beside_redisbloom_it_is_refused() {
    for program in programs() {
        let options = ["--enable-module-command", "yes"];
        let Some(server) = Server::start_beside(&program, &options, |folder| {
            let (source, object) = (folder.join("fake.c"), folder.join("fake.so"));
            fs::write(&source, FAKE).unwrap();
            let compiled = Command::new("cc")
                .args(["-shared", "-fPIC", "-o"])
                .args([&object, &source])
                .status();
            compiled.is_ok_and(|status| status.success()).then_some(object)
        }) else {
            eprintln!("SKIPPED: no C compiler, which makes the module that stands for RedisBloom");
            return;
        };
        let log = try_to_load(&server, module().to_str().unwrap());
        assert!(
            log.contains("the data types MBbloom-- and MBbloomCF are taken: RedisBloom is loaded"),
            "{log}"
        );
        // Nothing of it is left: no command, no type.
        let mut client = server.client();
        assert!(client.text("BF.ADD b x").starts_with("-ERR unknown command"));
        assert!(!client.text("MODULE LIST").contains("$9\r\nironbloom\r\n"));
    }
}
