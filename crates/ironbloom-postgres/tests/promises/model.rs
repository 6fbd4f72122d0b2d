//! Random schemas and histories: every answer is that of a scan of the whole table.

use ironbloom_testing::Random;

use crate::common::Server;

/// A type, how a number becomes one of its values, and other types it can be compared with.
const TYPES: &[(&str, &str, &[&str])] = &[
    ("smallint", "(K)::smallint", &["(K)::bigint", "(K)::int"]),
    ("int", "(K)::int", &["(K)::bigint", "(K)::smallint"]),
    ("bigint", "(K)::bigint", &["(K)::int", "(K)::smallint"]),
    ("real", "(K)::real", &["(K)::float8"]),
    ("float8", "(case when K = 0 then '-0' else (K)::text end)::float8", &["(K)::real"]),
    (
        "numeric",
        "((K)::text || case when (K) % 2 = 0 then '.00' else '' end)::numeric",
        &["(K)::numeric"],
    ),
    ("text", "('v' || K)", &[]),
    ("varchar(20)", "('v' || K)::varchar", &["('v' || K)::text"]),
    ("char(8)", "('c' || K)::char(8)", &[]),
    ("name", "('n' || K)::name", &["('n' || K)::text"]),
    ("bytea", "decode(md5((K)::text), 'hex')", &[]),
    ("uuid", "md5((K)::text)::uuid", &[]),
    ("date", "(date '2020-01-01' + K)", &[]),
    ("timestamptz", "(timestamptz '2020-01-01 00:00+00' + make_interval(hours => K))", &[]),
    ("timestamp", "(timestamp '2020-01-01' + make_interval(hours => K))", &[]),
    ("time", "(time '00:00' + make_interval(mins => K))", &[]),
    ("interval", "make_interval(days => K)", &[]),
    ("timetz", "(time '00:00' + make_interval(mins => K))::timetz", &[]),
    ("inet", "(inet '10.0.0.0' + K)", &[]),
    ("cidr", "set_masklen((inet '10.0.0.0' + K)::cidr, 32)", &[]),
    ("macaddr", "('08:00:2b:01:02:' || lpad(to_hex(K), 2, '0'))::macaddr", &[]),
    ("macaddr8", "('08:00:2b:01:02:03:04:' || lpad(to_hex(K), 2, '0'))::macaddr8", &[]),
    ("\"char\"", "chr(33 + K)::\"char\"", &[]),
    ("pg_lsn", "('0/' || to_hex(K))::pg_lsn", &[]),
    ("tid", "format('(%s,1)', K)::tid", &[]),
    ("mood", "(enum_range(null::mood))[1 + (K) % 5]", &[]),
    ("jsonb", "jsonb_build_object('k', K)", &[]),
    ("int[]", "array[K, (K) + 1]", &[]),
    ("int4range", "int4range(K, (K) + 3)", &[]),
    ("boolean", "((K) % 2 = 0)", &[]),
    ("oid", "(K)::oid", &[]),
    ("pair", "row(K, 'x')::pair", &[]),
    ("text collate \"C\"", "('w' || K)", &[]),
];
/// Numbers that rows are made of; conditions ask for some more.
const NUMBERS: u64 = 60;

struct Schema {
    table: String,
    /// Places in the list of types.
    columns: Vec<usize>,
    expression: bool,
    partial: bool,
}

impl Schema {
    /// Of these types, by their places in the list.
    fn new(number: usize, types: &[usize], random: &mut Random) -> Self {
        let len = 1 + random.index(8);
        // Every type has its turn.
        let columns =
            (0..len).map(|i| types[(number * 5 + i * 7 + random.index(3)) % types.len()]).collect();
        Self {
            table: format!("t{number}"),
            columns,
            expression: random.one_in(3),
            partial: random.one_in(4),
        }
    }

    fn create(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, &kind)| format!("c{i} {}", TYPES[kind].0))
            .collect();
        // Pages with few rows and much room: many pages, and rows that come to sealed ones.
        format!(
            "create table {0} (id serial, k int, {1}) with (fillfactor = 20);\n{2}",
            self.table,
            columns.join(", "),
            self.index()
        )
    }

    fn index(&self) -> String {
        let mut keys: Vec<String> = (0..self.columns.len()).map(|i| format!("c{i}")).collect();
        if self.expression {
            keys.push("(k % 7)".into());
        }
        let clause = if self.partial { " where k % 3 <> 0" } else { "" };
        format!(
            "create index {0}_i on {0} using ironbloom ({1}) with (selectivity = 5){clause};\n",
            self.table,
            keys.join(", ")
        )
    }

    fn insert(&self, rows: u64) -> String {
        let value = |&kind: &usize| {
            format!(
                "case when random() < 0.1 then null else {} end",
                TYPES[kind].1.replace('K', "r.k")
            )
        };
        let values: Vec<String> = self.columns.iter().map(value).collect();
        let names: Vec<String> = (0..self.columns.len()).map(|i| format!("c{i}")).collect();
        format!(
            "insert into {} (k, {}) select r.k, {} from (select (random() * {NUMBERS})::int as k from generate_series(1, {rows})) r;\n",
            self.table,
            names.join(", "),
            values.join(", ")
        )
    }

    /// Something that can happen to a table.
    fn operation(&self, random: &mut Random) -> String {
        let table = &self.table;
        let rows = 1 + random.below(400);
        match random.below(14) {
            0..=3 => self.insert(rows),
            4 => format!(
                "update {table} set c0 = null, k = k + 1 where id % {} = 0;\n",
                3 + random.below(20)
            ),
            5 => format!("update {table} set k = k where id % 5 = 0;\n"),
            6 => format!("delete from {table} where id % {} = 1;\n", 2 + random.below(6)),
            7 => format!(
                "begin; {} savepoint s; {} rollback to s; commit;\n",
                self.insert(rows),
                self.insert(rows)
            ),
            8 => format!("begin; {} rollback;\n", self.insert(rows)),
            9 => format!("vacuum {table};\n"),
            10 => format!("select ironbloom_seal('{table}_i');\n"),
            11 => format!("reindex index {table}_i;\n"),
            12 => format!("reindex index concurrently {table}_i;\n"),
            _ if random.one_in(4) => format!("vacuum full {table};\n"),
            _ if random.one_in(4) => format!("truncate {table};\n{}", self.insert(rows)),
            _ => format!("drop index {table}_i; {}", self.index()),
        }
    }

    fn condition(&self, random: &mut Random) -> String {
        let column = random.index(self.columns.len());
        let (_, value, others) = TYPES[self.columns[column]];
        let one = |random: &mut Random| {
            let value = if !others.is_empty() && random.one_in(2) {
                others[random.index(others.len())]
            } else {
                value
            };
            value.replace('K', &random.below(NUMBERS + 10).to_string())
        };
        match random.below(12) {
            0 => format!("c{column} is null"),
            1 => format!("c{column} is not null and k = {}", random.below(NUMBERS)),
            2..=4 => {
                let count = 1 + random.below(6);
                let values: Vec<String> = (0..count)
                    .map(|_| value.replace('K', &random.below(NUMBERS + 10).to_string()))
                    .collect();
                match value.starts_with("array") || random.one_in(2) {
                    true => format!("c{column} in ({})", values.join(", ")),
                    false => format!("c{column} = any (array[{}])", values.join(", ")),
                }
            }
            5 if self.expression => format!("k % 7 = {}", random.below(9)),
            _ => format!("c{column} = {}", one(random)),
        }
    }

    fn conditions(&self, random: &mut Random) -> String {
        let count = 1 + random.index(3);
        let joint = if random.one_in(6) { " or " } else { " and " };
        let mut all: Vec<String> =
            (0..count).map(|_| format!("({})", self.condition(random))).collect();
        all = vec![all.join(joint)];
        if self.partial {
            all.push("k % 3 <> 0".into());
        }
        format!("({})", all.join(") and ("))
    }
}

/// How many conditions to compare: `IRONBLOOM_PREDICATES`, or as many as fit into the time of all tests.
fn wanted() -> usize {
    std::env::var("IRONBLOOM_PREDICATES").map_or(21_000, |text| text.parse().unwrap())
}

#[test]
fn every_answer_is_that_of_a_scan_of_the_table() {
    const AT_ONCE: usize = 250;
    const SCHEMAS: usize = 14;
    let server = Server::start("model");
    server.sql(
        "create type mood as enum ('sad', 'so', 'la', 'ok', 'happy'); create type pair as (a int, b text);",
    );
    // Before version 14 the server cannot hash records.
    let version: u32 = server.sql("show server_version_num;").parse().unwrap();
    let types: Vec<usize> =
        (0..TYPES.len()).filter(|&i| version >= 140_000 || TYPES[i].0 != "pair").collect();
    let rounds = wanted().div_ceil(AT_ONCE * SCHEMAS);
    let mut random = Random(2026);
    let mut expected = 0;
    let mut script = String::from("select setseed(0.5);\n");
    for number in 0..SCHEMAS {
        let schema = Schema::new(number, &types, &mut random);
        script += &schema.create();
        script += &schema.insert(1_500);
        for _ in 0..rounds {
            for _ in 0..3 {
                script += &schema.operation(&mut random);
            }
            let conditions: Vec<String> =
                (0..AT_ONCE).map(|_| format!("$q${}$q$", schema.conditions(&mut random))).collect();
            script += &format!(
                "begin; select 'compared ' || compare('{0}', array[{1}]);
                 select 'scans ' || pg_stat_get_xact_numscans('{0}_i'::regclass); commit;\n",
                schema.table,
                conditions.join(",\n")
            );
            script += &format!("select ironbloom_check('{}_i') >= 0;\n", schema.table);
            expected += AT_ONCE;
        }
    }
    let printed = server.sql(&script);
    let sum = |what: &str| -> usize {
        let counts = printed.lines().filter_map(|line| line.strip_prefix(what));
        counts.map(|count| count.parse::<usize>().unwrap()).sum()
    };
    assert_eq!(sum("compared "), expected);
    // Otherwise this would compare scans of tables with each other.
    let scans = sum("scans ");
    assert!(scans > expected / 2, "{scans} scans of indexes, {expected} conditions");
}
