//! Operator classes: those of the extension are sound, and what is wrong with others is said.

use crate::common::Server;

#[test]
fn all_classes_of_the_extension_are_valid() {
    let server = Server::start("classes");
    let invalid = "select opcname from pg_opclass c join pg_am a on a.oid = c.opcmethod and a.amname = 'ironbloom' where not amvalidate(c.oid);";
    assert_eq!(server.sql(invalid), "");
    // Operators of users are not asked, wherever the search path looks first.
    server.sql(
        "create schema traps; create function traps.trap(oid, oid) returns boolean language plpgsql as $$ begin raise 'trapped'; end $$;
         create operator traps.= (leftarg = oid, rightarg = oid, function = traps.trap);",
    );
    assert_eq!(
        server.sql(&format!(
            "set search_path = traps, pg_catalog; {}",
            invalid.replace(" = ", " operator(pg_catalog.=) ")
        )),
        ""
    );
    let count = "select count(*) > 30 from pg_opclass c join pg_am a on a.oid = c.opcmethod where amname = 'ironbloom';";
    assert_eq!(server.sql(count), "t");
}

#[test]
fn classes_that_could_not_work_are_not_valid() {
    let server = Server::start("classes-wrong");
    server.sql(
        "create function hash(int, int8) returns int8 language sql immutable as 'select $1::int8';
         create function short(int, int8) returns int4 language sql immutable as 'select $1';
         create function alone(int) returns int8 language sql immutable as 'select $1::int8';
         create function of_text(text, int8) returns int8 language sql immutable as 'select 1::int8';
         create function of_varchar(varchar, int8) returns int8 language sql immutable as 'select 1::int8';",
    );
    for (name, definition, said) in [
        ("none", "for type int using ironbloom as operator 1 =", "no hash function"),
        (
            "no_operator",
            "for type int using ironbloom as function 1 hash(int, int8)",
            "no operator",
        ),
        (
            "short",
            "for type int using ironbloom as operator 1 =, function 1 short(int, int8)",
            "short(integer,bigint)",
        ),
        (
            "alone",
            "for type int using ironbloom as operator 1 =, function 1 alone(int)",
            "alone(integer)",
        ),
        (
            "other",
            "for type int using ironbloom as operator 1 =, function 1 of_text(text, int8)",
            "of_text(text,bigint)",
        ),
        (
            "half",
            "for type int using ironbloom as operator 1 = (int, int), operator 1 = (int, int8), function 1 hash(int, int8)",
            "bigint",
        ),
        ("sound", "for type int using ironbloom as operator 1 =, function 1 hash(int, int8)", ""),
        (
            "coerced",
            "for type varchar using ironbloom as operator 1 = (text, text), function 1 of_varchar(varchar, int8)",
            "no operator",
        ),
    ] {
        // Much is refused already when a class is created.
        if server.try_sql(&format!("create operator class {name} {definition};")).is_err() {
            assert_ne!(name, "sound");
            continue;
        }
        let valid = format!("select amvalidate(oid) from pg_opclass where opcname = '{name}';");
        assert_eq!(server.sql(&valid), if said.is_empty() { "t" } else { "f" }, "{name}");
        if !said.is_empty() {
            let done = server
                .try_sql(&format!(
                    "do $$ begin if not (select amvalidate(oid) from pg_opclass where opcname = '{name}') then raise 'not valid'; end if; end $$;"
                ))
                .unwrap_err();
            assert!(done.contains(said), "{name}: {done}");
        }
    }
}

/// A warning must not promise what does not hold.
#[test]
fn a_hash_function_that_returns_nothing_fails_queries_and_the_warning_does_not_deny_it() {
    let server = Server::start("classes-null");
    server.sql(
        "create table t (a int);
         create function hash(int, int8) returns int8 language plpgsql immutable as 'begin return case when $1 < 30000 then $1 end; end';
         create operator class sparse for type int using ironbloom as operator 1 =, function 1 hash(int, int8);
         create index t_i on t using ironbloom (a sparse);",
    );
    let insert = "insert into t select generate_series(1, 60000);";
    let told = server.sql(&format!("{insert} vacuum t; select count(*) from t;"));
    assert_eq!(told, "60000");
    let log = server.log();
    assert!(log.contains("was not tidied") || log.contains("returned NULL"), "{log}");
    assert!(!log.contains("find everything"), "{log}");
    let asked =
        |value: u32| format!("set enable_seqscan = off; select count(*) from t where a = {value};");
    assert_eq!(server.sql(&asked(7)), "1");
    assert!(server.try_sql(&asked(40_000)).unwrap_err().contains("returned NULL"));
}
