//! Filters that are sent in pieces, and dumps that were forged.

use ironbloom::{BlockedBloom, Bloom, BloomParams, Cuckoo, HashFn, Persist};
use xxhash_rust::xxh3::xxh3_64;

use super::{OVER_LIMIT, WRONG_TYPE, each_server, fill};
use crate::common::envelope::{self, Field};
use crate::common::key;
use ironbloom_testing::Random;
use ironbloom_testing::module::{Server, all_programs as programs, assert_equal, replica_of};

/// The header of a native image, as docs/redis.md says.
pub(crate) fn header_of(image: &[u8]) -> Vec<u8> {
    let mut header = b"IBLOOM01".to_vec();
    header.extend((image.len() as u64).to_le_bytes());
    header.extend(xxh3_64(image).to_le_bytes());
    header
}

/// Header and pieces of this many bytes, with their iterators.
pub(crate) fn pairs_of(image: &[u8], step: usize) -> Vec<(i64, Vec<u8>)> {
    let mut pairs = vec![(1, header_of(image))];
    let mut end = 1;
    for piece in image.chunks(step) {
        end += piece.len() as i64;
        pairs.push((end, piece.to_vec()));
    }
    pairs
}

/// A file as `ironbloom build` makes it from lines; planned for a few fewer, so that it is full.
pub(crate) fn built(count: usize) -> BlockedBloom {
    let mut filter = BlockedBloom::with_rate((count - count / 50) as u64, 0.001).unwrap();
    (0..count).for_each(|i| {
        filter.insert(key(i));
    });
    filter
}

#[test]
fn images_go_in_and_out_in_pieces() {
    each_server(|_, client| {
        let filter = built(20_000);
        let image = filter.to_bytes();
        assert_eq!(client.load("BF", "f", &pairs_of(&image, 10_000)), "+OK\r\n");
        let mut random = Random(1);
        for _ in 0..3000 {
            let word = key(random.index(40_000));
            let reply = client.text(&format!("BF.EXISTS f {word}"));
            assert_eq!(
                reply == ":1\r\n",
                filter.contains(&word),
                "the same answers, also the wrong ones"
            );
        }
        // Out again: the same bytes, 1 MiB at most a piece, as announced.
        let pairs = client.scandump("BF", "f");
        assert_eq!(pairs[0], (1, header_of(&image)));
        let bytes: Vec<u8> = pairs[1..].iter().flat_map(|(_, piece)| piece.clone()).collect();
        assert!(bytes == image);
        assert_eq!(
            client.text(&format!("BF.SCANDUMP f {}", image.len() + 1)),
            "*2\r\n:0\r\n$0\r\n\r\n"
        );
        assert_eq!(client.text("BF.SCANDUMP f -5"), "*2\r\n:0\r\n$0\r\n\r\n");
        assert_eq!(client.text("BF.SCANDUMP f x"), "-Second argument must be numeric\r\n");
        // A larger one, in more than one piece.
        client.call("BF.RESERVE large 0.0001 7000000 LAYOUT BLOCKED");
        client.call("BF.MADD large a b c");
        let pairs = client.scandump("BF", "large");
        assert!(pairs.len() > 3 && pairs[1..].iter().all(|(_, piece)| piece.len() <= 1 << 20));
        assert_eq!(client.load("BF", "large2", &pairs), "+OK\r\n");
        let digests = client.text("DEBUG DIGEST-VALUE large large2");
        let digests: Vec<&str> = digests.lines().skip(1).collect();
        assert_eq!(digests[0], digests[1]);
        client.call("DEL large large2");
        // A full filter refuses, and says so.
        assert_eq!(client.text("BF.ADD f one-more"), "-ERR non scaling filter is full\r\n");
        assert_eq!(client.text(&format!("BF.ADD f {}", key(1))), ":0\r\n");
        // Cuckoo filters, with their two numbers; and a plain file without.
        fill(client, 0..700);
        let pairs = client.scandump("CF", "parts");
        assert_eq!(pairs[0].1.len(), 40);
        assert_eq!(client.load("CF", "parts2", &pairs), "+OK\r\n");
        let digests = client.text("DEBUG DIGEST-VALUE parts parts2");
        let digests: Vec<&str> = digests.lines().skip(1).collect();
        assert_eq!(digests[0], digests[1]);
        let mut cuckoo = Cuckoo::with_rate(1000, 0.001).unwrap();
        (0..1000).for_each(|i| assert!(cuckoo.insert(key(i)).is_ok()));
        assert_eq!(client.load("CF", "file", &pairs_of(&cuckoo.to_bytes(), 900)), "+OK\r\n");
        assert_eq!(client.text(&format!("CF.DEL file {}", key(5))), ":1\r\n");
        assert_eq!(client.text("CF.ADD file x"), ":1\r\n");
        assert_eq!(client.text("CF.ADD file y"), "-Filter is full\r\n");
    });
}

#[test]
fn what_is_not_whole_is_no_filter_yet() {
    each_server(|server, client| {
        let image = built(15_000).to_bytes();
        let pairs = pairs_of(&image, 4000);
        assert_eq!(client.load("BF", "f", &pairs[..2]), "+OK\r\n");
        let loading =
            format!("-ERR the filter is still being loaded: 4000 of {} bytes\r\n", image.len());
        for command in [
            "BF.ADD f x",
            "BF.MADD f x",
            "BF.INSERT f ITEMS x",
            "BF.EXISTS f x",
            "BF.MEXISTS f x",
            "BF.FIND f x",
            "BF.CARD f",
            "BF.INFO f",
            "BF.INFO f FULL",
            "BF.DEBUG f",
            "BF.SCANDUMP f 0",
            "BF.MERGE g f",
            "BF.MERGE f f",
            "BF.RESERVE f 0.1 10",
        ] {
            assert_eq!(client.text(command), loading, "{command}");
        }
        assert_eq!(client.text("CF.ADD f x"), WRONG_TYPE);
        assert_eq!(client.text("EXISTS g"), ":0\r\n");
        // Out of order, twice, too long, empty: refused, and the load goes on.
        let order = "-ERR the chunk is not the next one: its iterator should be 8001\r\n";
        assert_eq!(client.load("BF", "f", &pairs[1..2]), order);
        assert_eq!(client.load("BF", "f", &pairs[3..4]), order);
        assert_eq!(client.text("BF.LOADCHUNK f 4001 "), "-ERR received bad data\r\n");
        assert_eq!(client.text("BF.LOADCHUNK f x y"), "-ERR Second argument must be numeric\r\n");
        let long = vec![(image.len() as i64 + 2, [&image[4000..], b"x"].concat())];
        assert_eq!(
            client.load("BF", "f", &long),
            "-ERR the chunk reaches beyond the end of the filter\r\n"
        );
        // What has come can be copied, saved and rewritten like any value.
        assert_eq!(client.text("COPY f copy"), ":1\r\n");
        let dump = client.bytes(&[b"DUMP", b"f"]);
        assert_eq!(client.call_words(&[b"RESTORE", b"back", b"0", &dump]), b"+OK\r\n");
        for name in ["f", "copy", "back"] {
            assert_eq!(client.load("BF", name, &pairs[2..]), "+OK\r\n");
            assert_eq!(client.text(&format!("BF.EXISTS {name} {}", key(4999))), ":1\r\n");
        }
        assert_eq!(
            client.load("BF", "f", &pairs[pairs.len() - 1..]),
            "-ERR the filter is loaded already\r\n"
        );
        assert_eq!(client.load("BF", "f", &pairs[..1]), "-ERR item exists\r\n");
        // A header starts again as long as it is not whole.
        client.load("BF", "again", &pairs[..3]);
        assert_eq!(client.load("BF", "again", &pairs), "+OK\r\n");
        assert_eq!(client.text("BF.CARD again"), client.text("BF.CARD f"));
        // Another type's key stays what it is.
        client.call("SET text x");
        client.call("BF.ADD theirs x");
        assert_eq!(client.load("BF", "text", &pairs), WRONG_TYPE);
        assert_eq!(client.load("BF", "theirs", &pairs), "-ERR item exists\r\n");
        assert_eq!(client.load("BF", "none", &pairs[1..]), "-ERR not found\r\n");
        // The limit is asked by the header, before anything is taken.
        client.call("CONFIG SET ironbloom.key-memory-limit 20000");
        assert_eq!(client.load("BF", "over", &pairs), OVER_LIMIT);
        let mut absurd = pairs[0].clone();
        absurd.1[8..16].copy_from_slice(&(1u64 << 60).to_le_bytes());
        assert_eq!(client.load("BF", "over", &[absurd]), OVER_LIMIT);
        assert_eq!(client.text("EXISTS over"), ":0\r\n");
        let _ = server;
    });
}

/// A load that fails at its end leaves nothing, here and on a replica.
#[test]
fn damaged_and_foreign_images_leave_nothing_behind() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let client = &mut server.client();
        let image = built(3000).to_bytes();
        let mut random = Random(3);
        let mut damaged = Vec::new();
        for _ in 0..40 {
            let mut bytes = image.clone();
            bytes[random.index(image.len())] ^= 1 << random.index(8);
            damaged.push(bytes);
        }
        let params = BloomParams::for_rate(100, 0.01).unwrap();
        let external = Bloom::new(params, HashFn::External { id: 4 }).unwrap().to_bytes();
        let cuckoo = Cuckoo::with_rate(100, 0.01).unwrap().to_bytes();
        damaged.extend([external.clone(), cuckoo.clone(), b"no image at all".to_vec()]);
        damaged.push(image[..1000].to_vec());
        damaged.push([&image[..], &image[..]].concat());
        for (i, bytes) in damaged.iter().enumerate() {
            // The sum of the header is that of the damaged bytes, so the image itself must be looked at.
            let reply = client.load("BF", "f", &pairs_of(bytes, 700));
            assert!(reply.starts_with("-ERR the filter was not loaded: "), "{i}: {reply}");
            assert_eq!(client.text("EXISTS f"), ":0\r\n");
        }
        let reply = client.load("BF", "f", &pairs_of(&external, 1 << 20));
        assert!(reply.contains("hashes of another program (external hash 4)"), "{reply}");
        let reply = client.load("BF", "f", &pairs_of(&cuckoo, 1 << 20));
        assert!(reply.contains("CF.LOADCHUNK takes it"), "{reply}");
        // Damage on the way: the sum of the header sees it.
        let mut pairs = pairs_of(&image, 700);
        pairs[2].1[5] ^= 1;
        let reply = client.load("BF", "f", &pairs);
        assert!(reply.contains("the bytes are not those that the header announced"), "{reply}");
        assert_equal(&server, &replica);
        assert_eq!(replica.client().text("DBSIZE"), ":0\r\n");
        assert_eq!(client.load("BF", "f", &pairs_of(&image, 700)), "+OK\r\n");
        assert_equal(&server, &replica);
        assert_eq!(replica.client().text("DBSIZE"), ":1\r\n");
        assert!(!replica.log().contains("== CRITICAL =="), "{}", replica.log());
    }
}

/// Dumps with a byte changed and the checksum made right: refused, or a filter that can be used.
#[test]
fn forged_dumps_of_native_filters_do_no_harm() {
    each_server(|_, client| {
        fill(client, 0..300);
        client.load("BF", "half", &pairs_of(&built(300).to_bytes(), 300)[..2]);
        let mut refused = 0;
        for name in ["grow", "fixed", "window", "parts", "one", "half"] {
            let dump = client.bytes(&[b"DUMP", name.as_bytes()]);
            let (kind, version, fields) = envelope::open(&dump);
            assert!(["ironbloom", "ironcucko"].contains(&kind.as_str()) && version == 1);
            assert!(matches!(fields.0[0], Field::Unsigned(0 | 1)));
            let mut random = Random(9);
            for round in 0..400 {
                let forged = envelope::forged(&dump, round, &mut random);
                let reply = client.call_words(&[b"RESTORE", b"f", b"0", &forged, b"REPLACE"]);
                if reply.starts_with(b"-") {
                    refused += 1;
                    continue;
                }
                for command in [
                    "BF.ADD f a",
                    "BF.EXISTS f b",
                    "BF.INFO f FULL",
                    "BF.DEBUG f",
                    "BF.SCANDUMP f 0",
                    "CF.ADD f a",
                    "CF.DEL f a",
                    "CF.COUNT f b",
                    "CF.COMPACT f",
                    "CF.SCANDUMP f 1",
                    "BF.LOADCHUNK f 400 x",
                    "COPY f g REPLACE",
                ] {
                    client.call(command);
                }
            }
        }
        assert!(refused > 2000, "only {refused} were refused");
        assert_eq!(client.text("PING"), "+PONG\r\n");
    });
}
