//! Forged dumps are refused or harmless: no panic, no crash, no memory beyond what was sent.

use super::golden_keys;
use crate::common::{envelope, unbase64};
use ironbloom_testing::Random;
use ironbloom_testing::module::{Server, all_programs as programs};

#[test]
fn forged_dumps_are_refused_or_harmless() {
    for program in programs() {
        let server = Server::start(&program, &["--sanitize-dump-payload", "no"]);
        let mut client = server.client();
        let mut random = Random(7);
        for (name, key) in golden_keys() {
            let mut dump = unbase64(key["dump"].as_str().unwrap());
            let end = dump.len();
            dump[end - 10..end - 8].copy_from_slice(&[9, 0]);
            let (mut refused, mut taken) = (0, 0);
            for round in 0..150 {
                let forged = if dump.len() < 160 {
                    let mut forged = dump.clone();
                    forged[random.index(end - 10)] ^= 1 << random.index(8);
                    envelope::sealed(forged)
                } else {
                    envelope::forged(&dump, round, &mut random)
                };
                let words: [&[u8]; 5] = [b"RESTORE", b"forged", b"0", &forged, b"REPLACE"];
                let reply = client.call_words(&words);
                if reply != b"+OK\r\n" {
                    assert!(reply.starts_with(b"-"), "{}", reply.escape_ascii());
                    refused += 1;
                    continue;
                }
                taken += 1;
                // Everything that a client can do with it.
                for query in key["queries"].as_array().unwrap() {
                    let query = query[0].as_str().unwrap().replace(&name, "forged");
                    client.call(&query);
                }
                for command in [
                    "CMS.INCRBY forged a 5 b 4294967295",
                    "CMS.MERGE forged 1 forged WEIGHTS 2",
                    "TOPK.INCRBY forged a 5 b 1000 c 0",
                    "TOPK.LIST forged WITHCOUNT",
                    "TDIGEST.ADD forged 1 2 3 -1e308 1e308",
                    "TDIGEST.MERGE merged 2 forged forged",
                    "TDIGEST.QUANTILE forged 0 0.1 0.5 1",
                    "COPY forged copy REPLACE",
                    "DEBUG DIGEST-VALUE forged",
                    "MEMORY USAGE forged",
                ] {
                    client.call(command);
                }
                let dump = client.bytes(&[b"DUMP", b"forged"]);
                let words: [&[u8]; 5] = [b"RESTORE", b"again", b"0", &dump, b"REPLACE"];
                assert_eq!(client.call_words(&words), b"+OK\r\n", "{name}: it survives itself");
            }
            assert!(refused > 0 && refused + taken == 150, "{name}: {refused} of 150 refused");
        }
        assert_eq!(client.text("PING"), "+PONG\r\n");
    }
}
