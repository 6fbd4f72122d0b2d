//! The types that the fuzzer makes columns of, with values that are equal and yet look different.

/// A type of a column. `K` stands for a number; all texts of a number are equal values, if the type's operator says so.
pub(crate) struct Kind {
    /// As in `create table`.
    pub(crate) name: &'static str,
    /// What rows get for a number, and conditions ask for.
    pub(crate) values: &'static [&'static str],
    /// Conditions ask for these, too: values of other types that the column can be compared with.
    pub(crate) others: &'static [&'static str],
    /// The server's version from which on it can hash the type, or know what is asked.
    pub(crate) since: u32,
    /// Whether it needs collations of ICU.
    pub(crate) icu: bool,
}

const fn kind(
    name: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
) -> Kind {
    Kind { name, values, others, since: 130_000, icu: false }
}

const fn folded(
    name: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
) -> Kind {
    Kind { icu: true, ..kind(name, values, others) }
}

/// What the types below need.
pub(crate) const SETUP: &str =
    "create type mood as enum ('sad', 'so', 'la', 'ok', 'happy'); create type pair as (a int, b text);
    create domain positive as int check (value >= 0); create type span as range (subtype = text, collation = \"C\");";

/// Collations under which different texts are equal: by case, by accents, too, and by punctuation.
pub(crate) const SETUP_ICU: &str =
    "create collation ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create collation ai (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    create collation pi (provider = icu, locale = 'und-u-ka-shifted-ks-level2', deterministic = false);
    create domain nick as text collate ci; create type folded_span as range (subtype = text, collation = ci);
    create type folded_pair as (a int, b text collate ci);";

/// Every type that an index can have.
pub(crate) const KINDS: &[Kind] = &[
    kind("smallint", &["(K)::smallint"], &["(K)::bigint", "(K)::int"]),
    kind("int", &["(K)::int"], &["(K)::bigint", "(K)::smallint"]),
    kind("bigint", &["(K)::bigint", "(-4294967296 * (K))"], &["(K)::int", "(K)::smallint"]),
    kind("positive", &["(K)::positive"], &["(K)::bigint", "(K)"]),
    kind(
        "real",
        &[
            "(K)::real",
            "((K) / 10.0)::real",
            "(case when K = 0 then '-0' when K = 1 then 'NaN' else (K)::text end)::real",
        ],
        &["(K)::float8", "((K) / 10.0)::real::float8", "((K) / 10.0)::float8"],
    ),
    kind(
        "float8",
        &[
            "(K)::float8",
            "(case when K = 0 then '-0' when K = 1 then 'NaN' when K = 2 then 'infinity' else (K)::text end)::float8",
        ],
        &["(K)::real", "((K) / 10.0)::real"],
    ),
    kind(
        "numeric",
        &[
            "(K)::numeric",
            "((K)::text || '.00')::numeric",
            "(case when K = 0 then 'NaN' else '0.1' end)::numeric",
        ],
        &[],
    ),
    kind(
        "numeric(10, 3)",
        &["(K)::numeric(10, 3)"],
        &["(K)::numeric", "((K)::text || '.0')::numeric"],
    ),
    kind("text", &["('v' || K)", "repeat(md5((K)::text), 90)"], &["('v' || K)::name"]),
    kind("text collate \"C\"", &["('w' || K)"], &["('w' || K)::name"]),
    kind("varchar(20)", &["('v' || K)::varchar"], &["('v' || K)::text", "('v' || K)::name"]),
    kind(
        "char(8)",
        &["('c' || K)::char(8)"],
        &["('c' || K || '   ')::char(12)", "('c' || K)::bpchar"],
    ),
    kind("name", &["('n' || K)::name"], &["('n' || K)::text"]),
    kind("bytea", &["decode(md5((K)::text), 'hex')", "'\\x'::bytea"], &[]),
    kind("uuid", &["md5((K)::text)::uuid"], &[]),
    kind(
        "date",
        &[
            "(date '2020-01-01' + K)",
            "(case when K = 0 then 'infinity' else '-infinity' end)::date",
        ],
        &[],
    ),
    kind(
        "timestamptz",
        &["(timestamptz '2020-01-01 00:00+00' + make_interval(hours => K))"],
        &["(timestamptz '2020-01-01 03:00+03' + make_interval(hours => K))"],
    ),
    kind(
        "timestamp",
        &["(timestamp '2020-01-01' + make_interval(hours => K))", "'infinity'::timestamp"],
        &[],
    ),
    kind("time", &["(time '00:00' + make_interval(mins => K))", "time '24:00'"], &[]),
    kind(
        "timetz",
        &["(time '00:00' + make_interval(mins => K))::timetz", "timetz '12:00+03'"],
        &[],
    ),
    kind(
        "interval",
        &[
            "make_interval(days => K)",
            "make_interval(hours => 24 * (K))",
            "make_interval(months => K)",
        ],
        &["make_interval(days => 30 * (K))"],
    ),
    kind(
        "inet",
        &["(inet '10.0.0.0' + K)"],
        &["set_masklen(inet '10.0.0.0' + K, 32)", "set_masklen((inet '10.0.0.0' + K)::cidr, 32)"],
    ),
    kind("cidr", &["set_masklen((inet '10.0.0.0' + K)::cidr, 32)"], &["(inet '10.0.0.0' + K)"]),
    kind("macaddr", &["('08:00:2b:01:02:' || lpad(to_hex(K), 2, '0'))::macaddr"], &[]),
    kind(
        "macaddr8",
        &["('08:00:2b:01:02:03:04:' || lpad(to_hex(K), 2, '0'))::macaddr8"],
        &["('08:00:2b:01:02:' || lpad(to_hex(K), 2, '0'))::macaddr::macaddr8"],
    ),
    kind("\"char\"", &["chr(33 + (K) % 60)::\"char\""], &[]),
    kind("pg_lsn", &["('0/' || to_hex(K))::pg_lsn"], &[]),
    kind("tid", &["format('(%s,1)', K)::tid"], &[]),
    kind("mood", &["(enum_range(null::mood))[1 + (K) % 5]"], &[]),
    kind(
        "jsonb",
        &[
            "jsonb_build_object('k', K, 'l', 1)",
            "jsonb_build_object('l', 1.0, 'k', K)",
            "to_jsonb(K)",
        ],
        &[],
    ),
    kind("int[]", &["array[K, (K) + 1]", "array[K, null]", "'{}'::int[]"], &[]),
    kind("text[]", &["array['a' || K, 'b']"], &[]),
    kind(
        "int4range",
        &["int4range(K, (K) + 3)", "int4range((K) - 1, (K) + 2, '(]')", "'empty'::int4range"],
        &[],
    ),
    kind("span", &["span('a' || K, 'b' || K)"], &[]),
    kind("boolean", &["((K) % 2 = 0)"], &[]),
    kind("oid", &["(K)::oid"], &["(K)::regclass"]),
    kind("xid", &["((K)::text)::xid"], &["(K)"]),
    kind("xid8", &["((K)::text)::xid8"], &[]),
    kind("cid", &["((K)::text)::cid"], &[]),
    kind(
        "aclitem",
        &[
            "makeaclitem(10, 10, (array['select', 'insert', 'update', 'delete', 'usage'])[1 + (K) % 5], false)",
        ],
        &[],
    ),
    kind("oidvector", &["format('%s 5', K)::oidvector"], &[]),
    Kind {
        name: "pair",
        values: &["row(K, 'x')::pair", "row(K, null)::pair"],
        others: &[],
        since: 140_000,
        icu: false,
    },
    Kind {
        name: "int4multirange",
        values: &[
            "int4multirange(int4range(K, (K) + 2))",
            "int4multirange(int4range(K, (K) + 1), int4range((K) + 1, (K) + 2))",
        ],
        others: &[],
        since: 140_000,
        icu: false,
    },
    folded(
        "text collate ci",
        &["('Name' || K)", "('NAME' || K)", "('name' || K)"],
        &["('nAME' || K)::name collate ci", "('NAme' || K)::varchar collate ci"],
    ),
    folded(
        "text collate ai",
        &["('Café' || K)", "('CAFE' || K)", "('cafe' || K)"],
        &["('cafE' || K)::name collate ai"],
    ),
    folded("text collate pi", &["('co-op' || K)", "('coop' || K)", "('CO OP' || K)"], &[]),
    folded(
        "varchar(20) collate ci",
        &["('Name' || K)", "('NAME' || K)"],
        &["('name' || K)::name collate ci"],
    ),
    folded(
        "char(12) collate ci",
        &["('Abc' || K)::char(12)", "('ABC' || K)::char(12)", "('abc' || K || ' ')::char(14)"],
        &["('aBC' || K)::char(20) collate ci"],
    ),
    folded(
        "char(12) collate pi",
        &["('a-b' || K)::bpchar", "('ab' || K)::bpchar", "('A B' || K)::bpchar"],
        &[],
    ),
    folded(
        "name collate ci",
        &["('Name' || K)::name collate ci", "('NAME' || K)::name collate ci"],
        &["('name' || K)::text collate ci"],
    ),
    folded("nick", &["('Name' || K)::nick", "('NAME' || K)::nick"], &[]),
    folded("text[] collate ci", &["array['Name' || K]", "array['NAME' || K]"], &[]),
    folded(
        "folded_span",
        &["folded_span('A' || K, 'b' || K)", "folded_span('a' || K, 'B' || K)"],
        &[],
    ),
    Kind {
        name: "folded_pair",
        values: &["row(K, 'Name')::folded_pair", "row(K, 'NAME')::folded_pair"],
        others: &[],
        since: 140_000,
        icu: true,
    },
];
