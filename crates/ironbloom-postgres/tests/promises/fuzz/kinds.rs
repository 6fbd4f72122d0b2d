//! The types that the fuzzer makes columns of, with values that are equal and yet look different, and how these types change.

/// A type of a column. `K` stands for a number; all texts of a number are equal values, if the type's operator says so. `TAB` stands
/// for the table, which has types and collations that no other table uses, and `COL` for the column.
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
    /// Makes what only one table uses.
    pub(crate) setup: &'static str,
    /// Definitions that change the type, or give the column another one whose values compare with the same conditions. The server
    /// may refuse them.
    pub(crate) changes: &'static [&'static str],
}

const fn kind(
    name: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
) -> Kind {
    Kind { name, values, others, since: 130_000, icu: false, setup: "", changes: &[] }
}

const fn folded(
    name: &'static str,
    values: &'static [&'static str],
    others: &'static [&'static str],
) -> Kind {
    Kind { icu: true, ..kind(name, values, others) }
}

/// The same, with definitions that change it.
const fn changing(kind: Kind, changes: &'static [&'static str]) -> Kind {
    Kind { changes, ..kind }
}

/// Row types can be hashed from here on.
const ROWS_SINCE: u32 = 140_000;
const PAIR: &str = "create type TAB_pair as (a int, b text, c int);";
const PAIR_CHANGES: &[&str] = &[
    "alter type TAB_pair add attribute d int",
    "alter type TAB_pair drop attribute d",
    "alter type TAB_pair drop attribute c",
    "alter type TAB_pair add attribute c int",
    "alter type TAB_pair drop attribute b cascade",
    "alter type TAB_pair add attribute b text collate \"C\"",
    "alter type TAB_pair rename attribute c to e",
    "alter type TAB_pair rename attribute e to c",
    "alter type TAB_pair alter attribute a type bigint",
    "alter type TAB_pair add attribute a int, drop attribute c",
];
const TO_INTEGERS: &[&str] = &[
    "alter table TAB alter COL type bigint",
    "alter table TAB alter COL type int",
    "alter table TAB alter COL type smallint",
];
const TO_FLOATS: &[&str] =
    &["alter table TAB alter COL type real", "alter table TAB alter COL type float8"];
const TO_TEXTS: &[&str] = &[
    "alter table TAB alter COL type varchar",
    "alter table TAB alter COL type varchar(20)",
    "alter table TAB alter COL type text",
    "alter table TAB alter COL type text collate \"C\"",
    "alter table TAB alter COL set storage external",
    "alter table TAB alter COL set storage main",
];
const TO_COLLATIONS: &[&str] = &[
    "alter table TAB alter COL type text collate ci",
    "alter table TAB alter COL type text collate pi",
    "alter table TAB alter COL type varchar(40) collate ai",
    "alter table TAB alter COL type text collate \"C\"",
];

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
    changing(kind("smallint", &["(K)::smallint"], &["(K)::bigint", "(K)::int"]), TO_INTEGERS),
    changing(kind("int", &["(K)::int"], &["(K)::bigint", "(K)::smallint"]), TO_INTEGERS),
    changing(
        kind("bigint", &["(K)::bigint", "(-4294967296 * (K))"], &["(K)::int", "(K)::smallint"]),
        TO_INTEGERS,
    ),
    kind("positive", &["(K)::positive"], &["(K)::bigint", "(K)"]),
    changing(
        kind(
            "real",
            &[
                "(K)::real",
                "((K) / 10.0)::real",
                "(case when K = 0 then '-0' when K = 1 then 'NaN' else (K)::text end)::real",
            ],
            &["(K)::float8", "((K) / 10.0)::real::float8", "((K) / 10.0)::float8"],
        ),
        TO_FLOATS,
    ),
    changing(
        kind(
            "float8",
            &[
                "(K)::float8",
                "(case when K = 0 then '-0' when K = 1 then 'NaN' when K = 2 then 'infinity' else (K)::text end)::float8",
            ],
            &["(K)::real", "((K) / 10.0)::real"],
        ),
        TO_FLOATS,
    ),
    changing(
        kind(
            "numeric",
            &[
                "(K)::numeric",
                "((K)::text || '.00')::numeric",
                "(case when K = 0 then 'NaN' else '0.1' end)::numeric",
            ],
            &[],
        ),
        &[
            "alter table TAB alter COL type numeric(20, 6)",
            "alter table TAB alter COL type numeric",
        ],
    ),
    kind(
        "numeric(10, 3)",
        &["(K)::numeric(10, 3)"],
        &["(K)::numeric", "((K)::text || '.0')::numeric"],
    ),
    changing(
        kind("text", &["('v' || K)", "repeat(md5((K)::text), 90)"], &["('v' || K)::name"]),
        TO_TEXTS,
    ),
    changing(kind("text collate \"C\"", &["('w' || K)"], &["('w' || K)::name"]), TO_TEXTS),
    changing(
        kind("varchar(20)", &["('v' || K)::varchar"], &["('v' || K)::text", "('v' || K)::name"]),
        TO_TEXTS,
    ),
    changing(
        kind(
            "char(8)",
            &["('c' || K)::char(8)"],
            &["('c' || K || '   ')::char(12)", "('c' || K)::bpchar"],
        ),
        &["alter table TAB alter COL type char(20)", "alter table TAB alter COL type bpchar"],
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
    changing(
        kind(
            "timestamptz",
            &["(timestamptz '2020-01-01 00:00+00' + make_interval(hours => K))"],
            &["(timestamptz '2020-01-01 03:00+03' + make_interval(hours => K))"],
        ),
        &["alter table TAB alter COL type timestamptz(0)"],
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
    changing(
        kind(
            "interval",
            &[
                "make_interval(days => K)",
                "make_interval(hours => 24 * (K))",
                "make_interval(months => K)",
            ],
            &["make_interval(days => 30 * (K))"],
        ),
        &["alter table TAB alter COL type interval(0)"],
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
    Kind { since: ROWS_SINCE, ..kind("pair", &["row(K, 'x')::pair", "row(K, null)::pair"], &[]) },
    Kind {
        since: ROWS_SINCE,
        ..kind(
            "int4multirange",
            &[
                "int4multirange(int4range(K, (K) + 2))",
                "int4multirange(int4range(K, (K) + 1), int4range((K) + 1, (K) + 2))",
            ],
            &[],
        )
    },
    changing(
        folded(
            "text collate ci",
            &["('Name' || K)", "('NAME' || K)", "('name' || K)"],
            &["('nAME' || K)::name collate ci", "('NAme' || K)::varchar collate ci"],
        ),
        TO_COLLATIONS,
    ),
    folded(
        "text collate ai",
        &["('Café' || K)", "('CAFE' || K)", "('cafe' || K)"],
        &["('cafE' || K)::name collate ai"],
    ),
    changing(
        folded("text collate pi", &["('co-op' || K)", "('coop' || K)", "('CO OP' || K)"], &[]),
        TO_COLLATIONS,
    ),
    changing(
        folded(
            "varchar(20) collate ci",
            &["('Name' || K)", "('NAME' || K)"],
            &["('name' || K)::name collate ci"],
        ),
        TO_COLLATIONS,
    ),
    changing(
        folded(
            "char(12) collate ci",
            &["('Abc' || K)::char(12)", "('ABC' || K)::char(12)", "('abc' || K || ' ')::char(14)"],
            &["('aBC' || K)::char(20) collate ci"],
        ),
        &[
            "alter table TAB alter COL type char(20) collate pi",
            "alter table TAB alter COL type char(12) collate ci",
        ],
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
        since: ROWS_SINCE,
        ..folded(
            "folded_pair",
            &["row(K, 'Name')::folded_pair", "row(K, 'NAME')::folded_pair"],
            &[],
        )
    },
    Kind {
        since: ROWS_SINCE,
        setup: PAIR,
        changes: PAIR_CHANGES,
        ..kind(
            "TAB_pair",
            &[
                "jsonb_populate_record(null::TAB_pair, jsonb_build_object('a', K, 'b', 'x', 'e', 1))",
            ],
            &[],
        )
    },
    Kind {
        since: ROWS_SINCE,
        setup: PAIR,
        changes: PAIR_CHANGES,
        ..kind(
            "TAB_pair[]",
            &["array[jsonb_populate_record(null::TAB_pair, jsonb_build_object('a', K, 'c', 2))]"],
            &[],
        )
    },
    Kind {
        setup: "create type TAB_mood as enum ('sad', 'so', 'la', 'ok', 'happy');",
        changes: &[
            "alter type TAB_mood add value if not exists 'meh' before 'so'",
            "alter type TAB_mood add value if not exists 'joy'",
            "alter type TAB_mood rename value 'la' to 'li'",
            "alter type TAB_mood rename value 'li' to 'la'",
            "alter type TAB_mood rename to TAB_other; alter type TAB_other rename to TAB_mood",
        ],
        ..kind("TAB_mood", &["(enum_range(null::TAB_mood))[1 + (K) % 5]"], &[])
    },
    Kind {
        setup: "create domain TAB_small as int check (value >= 0);",
        changes: &[
            "alter domain TAB_small drop constraint TAB_small_check",
            "alter domain TAB_small add constraint TAB_most check (value < 1000)",
            "alter domain TAB_small add constraint TAB_even check (value < 90) not valid",
            "alter domain TAB_small validate constraint TAB_even",
            "alter domain TAB_small drop constraint TAB_most",
            "alter domain TAB_small set default 5",
            "alter table TAB alter COL type bigint",
            "alter table TAB alter COL type TAB_small",
        ],
        ..kind("TAB_small", &["(K)::TAB_small"], &["(K)::bigint", "(K)::smallint"])
    },
    Kind {
        setup: "create collation TAB_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);",
        changes: &[
            "update pg_collation set collversion = 'another' where collname = 'TAB_ci'",
            "alter collation TAB_ci refresh version",
            "alter collation TAB_ci rename to TAB_other; alter collation TAB_other rename to TAB_ci",
        ],
        ..folded(
            "text collate TAB_ci",
            &["('Name' || K)", "('NAME' || K)"],
            &["('nAME' || K)::varchar"],
        )
    },
];
