//! For every operator of every family and every kind of collation: what SQL calls equal is found by the index.
//!
//! SQL itself is the oracle. The list of operators comes from the catalogue: a type without values here is a failure.

use std::collections::BTreeMap;

use crate::common::Server;

/// Texts that some collation takes for equal.
const TEXTS: &[&str] = &[
    "''",
    "'abc'",
    "'ABC'",
    "'Abc'",
    "'abc '",
    "' abc'",
    "'a-bc'",
    "'ab c'",
    "'a_b.c'",
    "'abcd'",
    "'1'",
    "'01'",
    "'x1'",
    "'x001'",
    "U&'\\00e1bc'",
    "U&'a\\0301bc'",
    "U&'\\00c1BC'",
    "U&'stra\\00dfe'",
    "'strasse'",
    "'STRASSE'",
    "U&'\\fb01'",
    "'fi'",
    "U&'\\0131'",
    "'i'",
    "'I'",
    "U&'\\212b'",
    "U&'\\00c5'",
    "U&'A\\030a'",
    "U&'\\ff21\\ff22'",
    "'AB'",
];

const FLOATS: &[&str] =
    &["'0'", "'-0'", "'1'", "'1.5'", "'16777217'", "'1e10'", "'NaN'", "'-NaN'", "'inf'", "'-inf'"];
const INTEGERS: &[&str] = &["'0'", "'1'", "'-1'", "'7'", "'32767'", "'-32768'"];
const TIMES: &[&str] = &[
    "'infinity'",
    "'-infinity'",
    "'2020-01-01'",
    "'2020-01-01 00:00:00+00'",
    "'2020-01-01 02:00:00+02'",
    "'epoch'",
    "'0044-03-15 BC'",
];
const BITS: &[&str] = &["'0'", "'1'", "'7'", "'4294967295'"];

/// Types as the catalogue names them, columns of such a type, and their values. A value may begin with the version of the server
/// from which on it exists.
const VALUES: &[(&str, &str, &[&str])] = &[
    ("int2", "int2", INTEGERS),
    ("int4", "int4", INTEGERS),
    ("int8", "int8", INTEGERS),
    ("float4", "float4", FLOATS),
    ("float8", "float8", FLOATS),
    ("text", "text", TEXTS),
    ("text", "varchar(20)", TEXTS),
    ("name", "name", TEXTS),
    ("bpchar", "char(12)", TEXTS),
    ("bpchar", "padded", TEXTS),
    // Not as constants: the planner makes `c` of `c = true`.
    ("bool", "bool", &["(select true)", "(select false)", "(select 'yes'::bool)"]),
    ("char", "\"char\"", &["'a'", "'b'", "''", "'\\'"]),
    ("oid", "oid", BITS),
    ("xid", "xid", BITS),
    ("xid8", "xid8", &["'0'", "'7'", "'18446744073709551615'"]),
    ("cid", "cid", BITS),
    (
        "numeric",
        "numeric",
        &[
            "'0'",
            "'-0'",
            "'0.000'",
            "'1'",
            "'1.00'",
            "'1e3'",
            "'1000'",
            "'NaN'",
            "14:'inf'",
            "14:'-inf'",
            "'0.1'",
            "'10e-2'",
        ],
    ),
    ("bytea", "bytea", &["''", "'\\x00'", "'\\x0000'", "'abc'", "'\\x616263'"]),
    (
        "uuid",
        "uuid",
        &["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'"],
    ),
    (
        "date",
        "date",
        &["'infinity'", "'-infinity'", "'2020-01-01'", "'2020-1-1'", "'0044-03-15 BC'"],
    ),
    ("time", "time", &["'00:00'", "'24:00'", "'12:00'", "'12:00:00.000000'", "'12:00 PM'"]),
    (
        "timetz",
        "timetz",
        &["'12:00+00'", "'14:00+02'", "'12:00+00:00'", "'00:00+00'", "'24:00+00'"],
    ),
    ("timestamp", "timestamp", TIMES),
    ("timestamptz", "timestamptz", TIMES),
    (
        "interval",
        "interval",
        &[
            "'1 day'",
            "'24 hours'",
            "'30 days'",
            "'1 month'",
            "'720 hours'",
            "'-1 day'",
            "'0'",
            "'1 month -30 days'",
            "17:'infinity'",
            "17:'-infinity'",
        ],
    ),
    (
        "inet",
        "inet",
        &["'10.0.0.1'", "'10.0.0.1/32'", "'10.0.0.1/24'", "'10.0.0.0/24'", "'::1'", "'::1/128'"],
    ),
    ("inet", "cidr", &["'10.0.0.0/24'", "'10.0.0'", "'10.0.0.1/32'", "'10.0.0.1'", "'::1'"]),
    ("macaddr", "macaddr", &["'08:00:2b:01:02:03'", "'08002b:010203'"]),
    (
        "macaddr8",
        "macaddr8",
        &["'08:00:2b:ff:fe:01:02:03'", "'08:00:2b:01:02:03'", "'08002b0102030405'"],
    ),
    ("pg_lsn", "pg_lsn", &["'0/0'", "'0/1'", "'00/01'", "'FFFFFFFF/FFFFFFFF'"]),
    ("tid", "tid", &["'(0,1)'", "'(1,1)'", "'(4294967295,65535)'"]),
    ("anyenum", "mood", &["'sad'", "'ok'"]),
    ("oidvector", "oidvector", &["''", "'1'", "'1 2'", "'2 1'"]),
    ("aclitem", "aclitem", &["'=r/postgres'", "'postgres=r/postgres'", "'postgres=rw/postgres'"]),
    (
        "jsonb",
        "jsonb",
        &[
            "'1'",
            "'1.0'",
            "'1e0'",
            "'\"a\"'",
            "'\"\\u0061\"'",
            "'null'",
            "'[]'",
            "'{}'",
            "'[1, 2]'",
            "'[1.00, 2.0]'",
            "'{\"a\": 1, \"b\": 2}'",
            "'{\"b\": 2.0, \"a\": 1, \"a\": 1}'",
            "'-0'",
            "'0'",
        ],
    ),
    ("anyarray", "int[]", &["'{}'", "'{1,2}'", "'[0:1]={1,2}'", "'{{1,2}}'", "'{NULL}'"]),
    ("anyarray", "float8[]", &["'{0,NaN}'", "'{-0,NaN}'", "'{1}'"]),
    ("anyarray", "numeric[]", &["'{1.0,2}'", "'{1,2.00}'"]),
    ("anyarray", "text[]", &["'{abc}'", "'{ABC}'", "'{Abc,abc}'", "'{abc,abc}'"]),
    ("anyarray", "varchar[]", &["'{abc}'", "'{ABC}'", "'{Abc,abc}'"]),
    ("anyarray", "name[]", &["'{abc}'", "'{ABC}'", "'{Abc,abc}'"]),
    ("anyarray", "char(5)[]", &["'{abc}'::bpchar[]", "'{ABC}'", "'{\"abc  \"}'::char(5)[]"]),
    ("anyrange", "int4range", &["'empty'", "'[1,3)'", "'[1,2]'", "'(0,2]'", "'(,)'"]),
    ("anyrange", "numrange", &["'[1,2]'", "'[1.0,2.00]'", "'[1,1)'", "'empty'", "14:'[1,inf]'"]),
    ("anyrange", "texts", &["'[abc,abd]'", "'[ABC,ABD]'", "'empty'"]),
    ("anyrange", "folded_texts", &["'[abc,abd]'", "'[ABC,ABD]'", "'empty'", "'[abc,ABC)'"]),
    ("anyrange", "folded_names", &["'[abc,abd]'", "'[ABC,ABD]'"]),
    ("anymultirange", "int4multirange", &["'{}'", "'{[1,3),[5,6)}'", "'{[1,2],[5,5]}'"]),
    ("anymultirange", "folded_multitexts", &["'{[abc,abd]}'", "'{[ABC,ABD]}'"]),
    ("record", "pair", &["'(1,abc)'", "'(1,ABC)'", "'(1,)'"]),
    ("record", "folded_pair", &["'(1,abc)'", "'(1,ABC)'", "'(1,\"abc  \")'"]),
    ("record", "padded_pair", &["'(1,abc)'", "'(1,ABC)'", "'(1,\"abc  \")'"]),
    ("record", "nested_pair", &["'(1,\"{abc}\")'", "'(1,\"{ABC}\")'"]),
];

const TYPES: &str = "create type mood as enum ('sad', 'ok');
    create type pair as (a int, b text); create type texts as range (subtype = text);\n";
/// The same under a collation that ignores case.
const FOLDED_TYPES: &str = "
    create type folded_texts as range (subtype = text, collation = folded);
    create type folded_names as range (subtype = name, collation = folded);
    create type folded_pair as (a int, b text collate folded);
    create type padded_pair as (a int, b char(5) collate folded);
    create type nested_pair as (a int, b name[] collate folded);
    create domain padded as char(12) collate folded;\n";

/// Collations that take different texts for equal, in several ways.
const ICU: &[(&str, &str, bool)] = &[
    ("plain", "und", true),
    ("folded", "und-u-ks-level2", false),
    ("base", "und-u-ks-level1", false),
    ("strict", "und-u-ks-level3", false),
    ("shifted", "und-u-ka-shifted-ks-level1", false),
    ("numbers", "und-u-kn-ks-level2", false),
    ("turkish", "tr-u-ks-level2", false),
];

/// Rows are each on a page of their own, so a value that is hashed wrongly is missed. Fails if an answer by index is not that
/// of the table, or if the index was not asked.
const JUDGE: &str = r#"
create function judge(kind text, collation_name text, values_of text[], conditions text[]) returns int language plpgsql as $$
declare
    value text; condition text; by_index text; by_table text; plan json; compared int := 0;
begin
    drop table if exists t;
    execute format('create table t (pad text, c %s %s)', kind, collation_name);
    alter table t alter pad set storage plain;
    foreach value in array values_of loop
        execute format('insert into t values (repeat(''x'', 5000), %s::%s)', value, kind);
    end loop;
    create index t_i on t using ironbloom (c) with (selectivity = 20);
    foreach condition in array conditions loop
        set local enable_seqscan = off; set local enable_bitmapscan = on;
        execute format('explain (format json) select from t where %s', condition) into plan;
        if plan::text not like '%Bitmap Index Scan%' then
            raise exception 'the index was not asked: %', condition;
        end if;
        execute format('select array_agg(ctid order by ctid)::text from t where %s', condition) into by_index;
        set local enable_seqscan = on; set local enable_bitmapscan = off;
        execute format('select array_agg(ctid order by ctid)::text from t where %s', condition) into by_table;
        if by_index is distinct from by_table then
            raise exception '% %: where %: % by index, % by table', kind, collation_name, condition, by_index, by_table;
        end if;
        compared := compared + 1;
    end loop;
    return compared;
end $$;
"#;

/// What the index of such a column says about all values, its own and those of other types. An error if it was refused.
fn judge(
    server: &Server,
    version: u32,
    (kind, collation): (&str, &str),
    others: &[(&str, &[&str])],
) -> Result<String, String> {
    let exists = |value: &&str| {
        let from = value.split_once(":'").and_then(|(from, _)| from.parse::<u32>().ok());
        from.is_none_or(|from| version >= from)
    };
    let plain = |value: &str| match value.split_once(":'") {
        Some((from, rest)) if from.parse::<u32>().is_ok() => format!("'{rest}"),
        _ => value.to_owned(),
    };
    let list = |texts: Vec<String>| {
        let quoted: Vec<String> = texts.iter().map(|text| format!("$q${text}$q$")).collect();
        format!("array[{}]::text[]", quoted.join(", "))
    };
    let own = others[0].1.iter().copied().filter(|value| exists(value)).map(plain).collect();
    let conditions = others.iter().flat_map(|(other, values)| {
        let values = values.iter().copied().filter(exists).map(plain);
        values.map(move |value| format!("c = ({value}::{other} {collation})"))
    });
    // Several at once, except arrays, which would become one of more dimensions.
    let lists = others.iter().filter(|(other, _)| !other.ends_with("[]")).map(|(other, values)| {
        let values = values.iter().copied().filter(exists).map(plain);
        let values: Vec<String> =
            values.step_by(3).map(|value| format!("{value}::{other}")).collect();
        format!("c = any(array[{}] {collation})", values.join(", "))
    });
    let conditions = conditions.chain(lists);
    server.try_sql(&format!(
        "select judge($q${kind}$q$, $q${collation}$q$, {}, {});",
        list(own),
        list(conditions.collect())
    ))
}

#[test]
fn what_sql_calls_equal_the_index_finds() {
    let server = Server::start("equality");
    let version: u32 = server.sql("show server_version_num;").parse::<u32>().unwrap() / 10_000;
    let mut collations = vec!["collate \"default\"".to_owned(), "collate \"C\"".to_owned()];
    server.sql(TYPES);
    let mut icu = true;
    for (name, locale, deterministic) in ICU {
        icu = icu && server.make_collation(name, locale, *deterministic);
        if icu {
            collations.push(format!("collate {name}"));
        }
    }
    if icu {
        server.sql(FOLDED_TYPES);
        if version >= 14 {
            server.sql("alter type folded_texts_multirange rename to folded_multitexts;");
        }
    }
    server.sql(JUDGE);

    // From the catalogue: which types a column of a type can be compared with.
    let operators = server.sql(
        "select l.typname, string_agg(r.typname, ' ' order by l.typname <> r.typname, r.typname) from pg_amop
         join pg_opfamily f on f.oid = amopfamily join pg_am a on a.oid = opfmethod and amname = 'ironbloom'
         join pg_type l on l.oid = amoplefttype join pg_type r on r.oid = amoprighttype group by l.typname;",
    );
    let operators: BTreeMap<&str, Vec<&str>> = operators
        .lines()
        .map(|line| line.split_once('|').unwrap())
        .map(|(left, rights)| (left, rights.split(' ').collect()))
        .collect();
    assert!(operators.len() >= 30, "{operators:?}");
    let (mut compared, mut refused) = (0, Vec::new());
    for (left, rights) in &operators {
        let columns: Vec<_> = VALUES.iter().filter(|(name, ..)| name == left).collect();
        assert!(!columns.is_empty(), "no values of type {left} here");
        for (_, kind, values) in columns {
            let needs_icu = ["folded", "padded", "nested"].iter().any(|name| kind.contains(name));
            if needs_icu && !icu {
                continue;
            }
            let mut others: Vec<(&str, &[&str])> = vec![(kind, values)];
            for right in rights.iter().filter(|right| *right != left) {
                let other = VALUES.iter().find(|(name, ..)| name == right);
                let (_, other, values) =
                    other.unwrap_or_else(|| panic!("no values of type {right}"));
                others.push((other, values));
            }
            let collatable = server.sql(&format!(
                "select typcollation <> 0 from pg_type where oid = '{kind}'::regtype;"
            ));
            let none = [String::new()];
            let some = if collatable == "t" { &collations[..] } else { &none };
            for collation in some {
                match judge(&server, version, (kind, collation), &others) {
                    Ok(count) => compared += count.parse::<usize>().unwrap(),
                    Err(error) if error.contains("nondeterministic") => {
                        assert!(error.contains("HINT"), "{error}");
                        refused.push(format!("{kind} {collation}"));
                    }
                    Err(error) => panic!("{kind} {collation}: {error}"),
                }
            }
        }
    }
    // Only within other types, where the server itself hashes them.
    let within = |refused: &&String| {
        let kinds = ["name[]", "char(5)[]", "folded_names", "padded_pair", "nested_pair"];
        kinds.iter().any(|kind| refused.starts_with(kind))
    };
    assert!(refused.iter().all(|refused| within(&refused)), "{refused:?}");
    assert!(!icu || refused.len() >= 13, "{refused:?}");
    assert!(compared > if icu { 1_000 } else { 200 }, "{compared}");
}

#[test]
fn padded_and_folded_texts_are_found() {
    let server = Server::start("equality-folded");
    if !server.make_collation("ci", "und-u-ks-level2", false) {
        return;
    }
    server.sql(
        "create table t (c char(12) collate ci, v text collate ci);
         insert into t select 'aBc' || i % 100, 'aBc' || i % 100 from generate_series(1, 6000) i;
         create index t_i on t using ironbloom (c, v);
         insert into t select 'ABC' || i % 100, 'ABC' || i % 100 from generate_series(1, 300) i;",
    );
    for found in
        ["c = 'Abc5'", "v = 'abc5'::name collate ci", "c in ('Abc5', 'none') and v = 'abC5'"]
    {
        server.compare("t", &[found]);
        assert_eq!(
            server.sql(&format!("set enable_seqscan = off; select count(*) from t where {found};")),
            "63"
        );
    }
}

/// The server hashes bounds by the default operators of their type, whatever the range compares them by; and it takes arrays
/// and rows whose elements have no hash function until it meets one.
#[test]
fn containers_that_the_server_cannot_hash_as_it_compares_them_are_refused() {
    let server = Server::start("containers");
    server.sql(
        "create type padded as range (subtype = text, subtype_opclass = bpchar_ops);
         create type usual as range (subtype = text);
         create type measured as (b bit(3), i int);
         create type counted as (t text, i int);
         create domain padded_domain as padded;
         create type nested as (r padded, i int);
         create table t (p padded, d padded_domain, a padded[], n nested, m money[], r measured,
             u usual, c counted, l int[]);
         insert into t (u, c, l) select usual('a' || g, 'b' || g), row('x'::text, g)::counted, array[g]
             from generate_series(1, 5000) g;",
    );
    for column in ["p", "d", "a", "n", "m", "r"] {
        let error = server.try_sql(&format!("create index on t using ironbloom ({column})"));
        let error = error.expect_err(column);
        // Before version 14, the server cannot hash rows at all.
        let ours = error.contains("column 1 of index");
        assert!(ours || error.contains("no default operator class"), "{column}: {error}");
        assert!(error.contains("HINT"), "{column}: {error}");
    }
    if server.sql("show server_version_num").parse::<u32>().unwrap() >= 140_000 {
        let error = server.try_sql("create index on t using ironbloom ((multirange(p)))");
        assert!(error.unwrap_err().contains("column 1 of index"));
        server.sql("create index on t using ironbloom (c)");
        server.compare("t", &["c = row('x', 77)::counted"]);
    }
    server.sql("create index on t using ironbloom (u, l)");
    server.compare("t", &["u = usual('a77', 'b77')", "l = array[77]"]);
}
