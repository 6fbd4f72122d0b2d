//! Promise: clients made for RedisBloom work unchanged: redis-py's `r.bf()` and `r.cf()`, in both versions of the protocol.
//!
//! Needs Python with redis-py: `make test` makes such an environment and names its interpreter in IRONBLOOM_PYTHON. Without that
//! the test says so on standard error and passes.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use ironbloom_testing::module::{Server, all_programs as programs};

#[test]
fn redis_py_gets_the_answers_it_expects() {
    let Some(python) = std::env::var_os("IRONBLOOM_PYTHON") else {
        // Not by eprintln, which the test harness would swallow.
        let message =
            "\nSKIPPED: redis-py as a client; set IRONBLOOM_PYTHON, or run `make test`\n\n";
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/redis_py.py");
    for program in programs() {
        let server = Server::start(&program, &[]);
        for protocol in ["2", "3"] {
            let port = server.port.to_string();
            let run = Command::new(&python).arg(&script).args([&port, protocol]).output().unwrap();
            assert!(
                run.status.success(),
                "{} with protocol {protocol}:\n{}{}",
                program.display(),
                String::from_utf8_lossy(&run.stdout),
                String::from_utf8_lossy(&run.stderr)
            );
        }
    }
}
