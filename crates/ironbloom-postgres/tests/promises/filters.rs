//! Filters in SQL: the bytes of .ibf files, both ways.

use std::path::Path;

use ironbloom::{AnyFilter, Bloom, Persist};

use crate::common::Server;

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn filters_go_from_sql_to_the_library_and_back() {
    let server = Server::start("filters");
    let hex = server.sql(
        "create table words as select 'w' || i as w from generate_series(1, 5000) i;
         select encode(ironbloom_build(w, 5000, 0.01), 'hex') from words;",
    );
    let filter = AnyFilter::from_bytes(&unhex(&hex)).unwrap();
    assert!((1..=5000).all(|i| filter.contains(format!("w{i}").as_bytes()).unwrap()));
    let wrong = (0..5000).filter(|i| filter.contains(format!("x{i}").as_bytes()).unwrap()).count();
    // 1 % of 5000, 6 sigma.
    assert!(wrong < 50 + 6 * 8, "{wrong}");

    let mut bloom = Bloom::with_rate(100, 0.01).unwrap();
    bloom.insert(b"alice".as_slice());
    let hex = hex_of(&bloom.to_bytes());
    let asked = format!(
        "select ironbloom_contains(decode('{hex}', 'hex'), 'alice'), ironbloom_contains(decode('{hex}', 'hex'), 'bob');"
    );
    assert_eq!(server.sql(&asked), "t|f");
    let counted = server.sql(
        "with f as (select ironbloom_build(w, 5000, 0.01) as f from words)
         select count(*) filter (where ironbloom_contains(f.f, w)) from words, f;",
    );
    assert_eq!(counted, "5000");
    assert_eq!(
        server.sql("select ironbloom_build(w, 10, 0.1) is null from words where false;"),
        "t"
    );
    assert!(
        server
            .try_sql("select ironbloom_contains('\\x1234', 'x');")
            .unwrap_err()
            .contains("not a filter")
    );
    assert!(
        server
            .try_sql("select ironbloom_build(w, 10, 2) from words;")
            .unwrap_err()
            .contains("rate")
    );
}

/// One key, one meaning: this extension's part of the test that `one_meaning.rs` of the library describes.
#[test]
fn the_files_of_all_programs_are_written_and_answered_for_or_refused_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ironbloom/tests/golden/keys");
    let server = Server::start("filters-meaning");
    let hex = server.sql(
        "create table keys as
             select i, k from unnest(array['-9223372036854775808', '-9223372036854775807', '-2', '-1',
                 '9223372036854775806', '9223372036854775807']) with ordinality as edges(k, i)
             union all select 7 + i, i::text from generate_series(0, 993) i;
         select encode(ironbloom_build(k, 1000, 1e-6 order by i), 'hex') from keys;",
    );
    assert!(unhex(&hex) == std::fs::read(folder.join("text.ibf")).unwrap());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "ibf") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let filter = hex_of(&std::fs::read(&path).unwrap());
        let count = |keys: &str| {
            server.try_sql(&format!(
                "select count(*) filter (where ironbloom_contains('\\x{filter}', k)) from ({keys}) as keys(k);"
            ))
        };
        let there = count("select k from keys");
        let absent = count("select i::text from generate_series(5000, 5999) i");
        let found = match name {
            "text" | "text-blocked" | "text-keyed" | "integers-declared" => Ok("1000"),
            "bytes" | "bytes-blocked" => Ok("0"),
            // An argument of type text is text.
            "several" => Ok("500"),
            "integers" | "integers-blocked" => Err("holds integers, not text or bytes"),
            "floats" => {
                Err("holds other values, such as floats, dates and tuples, not text or bytes")
            }
            "hashed" => Err("holds hashed values, not text or bytes"),
            "text-secret" => Err("a secret key that is not in its file"),
            "rows-of-text" | "rows-typed" => Err("holds rows of several attributes, not keys"),
            other => panic!("{other}: a file that this test does not know"),
        };
        match found {
            Ok(found) => assert_eq!((there, absent), (Ok(found.into()), Ok("0".into())), "{name}"),
            Err(message) => {
                for refused in [there, absent].map(Result::unwrap_err) {
                    assert!(refused.contains(message), "{name}: {refused}");
                }
            }
        }
    }
}

#[test]
fn a_filter_is_asked_and_not_the_one_before_it() {
    let server = Server::start("filters-cached");
    server.sql(
        "create table f as select i, ironbloom_build('k' || i, 10, 0.0001) as filter from generate_series(1, 200) i group by i;
         create function has(f bytea, k text) returns boolean language plpgsql immutable as $$ begin
             return ironbloom_contains(f, k); end $$;
         create function has_in_sql(f bytea, k text) returns boolean language sql immutable as 'select ironbloom_contains(f, k)';
         create function loop_over() returns bigint language plpgsql as $$ declare r record; n bigint := 0; begin
             for r in select * from f loop if ironbloom_contains(r.filter, 'k' || r.i) then n := n + 1; end if; end loop;
             return n; end $$;",
    );
    for asked in [
        "has(filter, 'k' || i)",
        "has_in_sql(filter, 'k' || i)",
        "ironbloom_contains(filter, 'k' || i)",
    ] {
        let found = server.sql(&format!("select count(*) from f where {asked};"));
        assert_eq!(found, "200", "{asked}");
        // The other way round: no filter has another one's key.
        let wrong = server.sql(&format!(
            "select count(*) < 20 from f where {};",
            asked.replace("'k' || i", "'k' || i + 1")
        ));
        assert_eq!(wrong, "t", "{asked}");
    }
    assert_eq!(server.sql("select loop_over();"), "200");
    // The same statement with other parameters, and a filter of the same length that is stored elsewhere.
    let executed = server.sql(
        "set plan_cache_mode = force_generic_plan; prepare p(bytea, text) as select ironbloom_contains($1, $2);
         create table toasted as select i, ironbloom_build('k' || i, 100000, 0.01) as filter from generate_series(1, 3) i group by i;
         select format('execute p(%L, %L);', filter, 'k' || i) from f where i < 9 \\gexec
         select count(*) from toasted where has(filter, 'k' || i);",
    );
    assert_eq!(executed, format!("{}3", "t\n".repeat(8)));
}

#[test]
fn a_filter_that_no_value_can_hold_is_refused_at_once() {
    let server = Server::start("filters-size");
    // Its memory is not even asked for: within 64 MiB, and before the second key.
    let refused = server
        .try_sql(
            "create function once(i int) returns text language plpgsql as $$ begin
                 if i > 1 then raise exception 'asked for key %', i; end if; return i; end $$;
             select ironbloom_build(once(i), 1000000000, 0.001) from generate_series(1, 9) i;",
        )
        .unwrap_err();
    assert!(refused.contains("1 GB") && !refused.contains("asked for"), "{refused}");
}

#[test]
fn a_filter_has_one_capacity_and_one_rate() {
    let server = Server::start("filters-refused");
    for (asked, named) in [
        ("'k', -1, 0.01", "-1"),
        ("'k', null, 0.01", "null"),
        ("'k', 0, 0.01", "0"),
        ("'k', 100, null", "null"),
        ("'k', 100, 'NaN'", "NaN"),
        ("'k', 100, 0", "0"),
        ("'k', 100 + i, 0.01", "101"),
        ("'k', 100, 0.01 / i", "0.005"),
        ("'k', case when i < 3 then 100 end, 0.01", "null"),
        ("'k', 100, case when i < 3 then 0.01 end", "null"),
    ] {
        let refused = server
            .try_sql(&format!("select ironbloom_build({asked}) from generate_series(1, 3) i;"))
            .expect_err(asked);
        let message = refused.lines().next().unwrap();
        assert!(message.contains(named), "{asked}: {message}");
        assert!(message.contains("capacity") || message.contains("rate"), "{asked}: {message}");
    }
    // A group each, and windows.
    server.sql(
        "select i, ironbloom_build('k', 100 * i, 0.01 / i) from generate_series(1, 3) i group by i;
         select ironbloom_build('k' || i, 100, 0.01) over (order by i) from generate_series(1, 3) i;",
    );
}
