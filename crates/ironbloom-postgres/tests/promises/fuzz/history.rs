//! What happens to a table in one session: changes, definitions, maintenance, interruptions; and how answers are compared.

use ironbloom_testing::Random;

use super::schema::{DIGEST, Persistence, Prepared, Schema};

/// Functions of the fuzzer. Each returns what is wrong, as text. `differences` is stable: both answers are those of one
/// snapshot at every level of isolation.
///
/// Without hash joins: the server hashes a `name` by its bytes, so that they lose rows of `text` that equal it under a collation that
/// is not deterministic.
pub(crate) fn functions() -> String {
    format!(
        r#"
create function leaves(tab text) returns setof regclass language sql as $$
    select i.indexrelid::regclass from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where a.amname = 'ironbloom' and c.relkind = 'i' and i.indisvalid
        and (i.indrelid = tab::regclass or i.indrelid in (select relid from pg_partition_tree(tab::regclass)))
$$;
create function by_index(ask text) returns text language plpgsql stable as $$
declare answer text; begin
    perform set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
    execute ask into answer;
    return answer;
exception
    when serialization_failure or query_canceled or deadlock_detected then raise;
    when others then return sqlerrm;
end $$;
create function by_table(ask text) returns text language plpgsql stable as $$
declare answer text; begin
    perform set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true);
    execute ask into answer;
    return answer;
end $$;
create function differences(questions text[]) returns setof text language plpgsql stable as $$
declare question text; ask text; found text; there text; begin
    foreach question in array questions loop
        ask := $q$select {DIGEST} from $q$ || question;
        found := by_index(ask);
        there := by_table(ask);
        if found is distinct from there then
            return next format('wrong: %s by index, %s by table: %s', found, there, question);
        end if;
    end loop;
end $$;
create function generic(statement text, question text) returns setof text language plpgsql as $$
declare found text; there text; begin
    perform set_config('plan_cache_mode', 'force_generic_plan', true);
    perform set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
    execute 'execute ' || statement into found;
    there := by_table($q$select {DIGEST} from $q$ || question);
    if found is distinct from there then
        return next format('wrong: %s by index, %s by table: %s, %s', found, there, statement, question);
    end if;
end $$;
create function rest(inout rows refcursor, out digest numeric) language plpgsql as $$
declare row record; begin
    digest := 0;
    loop
        fetch rows into row;
        exit when not found;
        digest := digest + 1 + hashtextextended(row::text, 0)::numeric;
    end loop;
end $$;
create function by_cursor(question text, change text) returns setof text language plpgsql as $$
declare found refcursor; there refcursor; row record; begin
    perform set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
    open found for execute 'select x from ' || question;
    perform set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true);
    open there for execute 'select x from ' || question;
    execute change;
    if (select r.digest from rest(found) r) is distinct from (select r.digest from rest(there) r) then
        return next format('wrong: by cursor, before %s: %s', change, question);
    end if;
end $$;
"#
    )
}

/// How many questions a script asks, for the count.
pub(crate) struct Script {
    pub(crate) sql: String,
    pub(crate) questions: usize,
}

/// The life of a table.
pub(crate) fn life(schema: &Schema, random: &mut Random) -> Script {
    const STEPS: usize = 8;
    const AT_ONCE: usize = 60;
    let table = &schema.table;
    let mut sql = format!("select setseed({:.3});\n", random.below(1_000) as f64 / 1_000.0);
    sql += &schema.create(random);
    sql += &format!("create index {table}_id on {table} (id);\n");
    let prepared: Vec<Prepared> =
        (0..2).map(|i| schema.prepared(&format!("{table}_p{i}"), random)).collect();
    for statement in &prepared {
        sql += &statement.prepare;
    }
    let mut questions = 0;
    for _ in 0..STEPS {
        for _ in 0..1 + random.index(4) {
            sql += &operation(schema, random);
        }
        let asked: Vec<String> =
            (0..AT_ONCE).map(|_| format!("$q${}$q$", schema.question(random))).collect();
        sql += &settings(random);
        sql += &format!(
            "begin; select differences(array[{}]);
             select 'scans ' || sum(pg_stat_get_xact_numscans(i)) from leaves('{table}') i; commit;\nreset all;\n",
            asked.join(",\n")
        );
        questions += asked.len();
        for (i, statement) in prepared.iter().enumerate() {
            for (value, question) in &statement.calls {
                sql += &format!(
                    "begin; select generic($q${table}_p{i}({value})$q$, $q${question}$q$); commit;\n"
                );
                questions += 1;
            }
        }
        let change = match random.below(3) {
            0 => schema.change(random),
            1 => schema.insertion(300),
            _ => format!("delete from {table} where id % 3 = 1"),
        };
        let end = ["commit", "rollback"][random.index(2)];
        let question = schema.question(random);
        sql += &format!("begin; select by_cursor($q${question}$q$, $q${change}$q$); {end};\n");
        questions += 1;
        let deep = random.one_in(4);
        // Of a row type that has changed, a check says so.
        sql += &format!(
            "\\set ON_ERROR_STOP 0\nselect sum(ironbloom_check(i, {deep})) is null from leaves('{table}') i;\n\\set ON_ERROR_STOP 1\n"
        );
    }
    sql += &format!("deallocate all; drop table {table};\n");
    Script { sql, questions }
}

/// Settings under which the server takes other ways.
fn settings(random: &mut Random) -> String {
    match random.below(4) {
        // Bitmaps become lossy.
        0 => "set work_mem = '64kB';\n".into(),
        1 => "set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;\n".into(),
        _ => String::new(),
    }
}

/// Anything that can happen to a table.
fn operation(schema: &Schema, random: &mut Random) -> String {
    match random.below(11) {
        0..=3 => write(schema, random),
        4 | 5 => transaction(schema, random),
        6 => maintain(schema, random),
        7 => define(schema, random),
        8 => interrupt(schema, random),
        9 => alter(schema, random),
        _ => rebuild(schema, random),
    }
}

fn write(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    match random.below(9) {
        0..=2 => schema.insert(1 + random.below(400)),
        3 => schema.insert(1_000 + random.below(3_000)),
        4 => format!("{};\n", schema.change(random)),
        // Within their pages, if there is room.
        5 => {
            format!("update {table} set note = note + 1 where id % {} = 0;\n", 2 + random.below(9))
        }
        6 => format!(
            "update {table} set note = 1 where id % 3 = 0; update {table} set note = 2 where id % 6 = 0;\n"
        ),
        // Many rows are placed before the index hears of the first.
        7 => format!(
            "do $copy$ declare file text := current_setting('data_directory') || '/{table}.copy'; begin
                execute format('copy (select * from {table} where id %% {} = 0) to %L', file);
                execute format('copy {table} from %L', file); end $copy$;\n",
            3 + random.below(5)
        ),
        _ => format!("delete from {table} where id % {} = 1;\n", 2 + random.below(6)),
    }
}

fn transaction(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    let write = |random: &mut Random| write(schema, random);
    let (first, second, third) = (write(random), write(random), write(random));
    match random.below(8) {
        0 => format!("begin; {first} rollback;\n"),
        1 => format!("begin; {first} savepoint s; {second} rollback to s; {third} commit;\n"),
        2 => format!(
            "begin; {first} savepoint s; {second} savepoint r; {third} release r; rollback to s; commit;\n"
        ),
        3 => format!(
            "do $do$ begin {first} begin {second} raise exception 'no'; exception when others then null; end; end $do$;\n"
        ),
        4 if schema.persistence != Persistence::Temporary => {
            let end = ["commit", "rollback"][random.index(2)];
            format!(
                "begin; {first} prepare transaction '{table}'; {} {end} prepared '{table}';\n",
                schema.insert(500)
            )
        }
        5 => format!("begin; {} truncate {table}; {first} commit;\n", schema.insert(3_000)),
        6 => format!("begin; {first} truncate {table}; {second} rollback;\n"),
        _ => format!("begin; {first} {second} {third} commit;\n"),
    }
}

fn maintain(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    match random.below(8) {
        0..=2 => format!("vacuum {table};\n"),
        3 => format!("vacuum (freeze, analyze) {table};\n"),
        4 => format!("analyze {table};\n"),
        5 => format!("vacuum full {table};\n"),
        _ => format!("select ironbloom_seal(i) from leaves('{table}') i;\n"),
    }
}

/// Definitions that change, alone and after a load in the same transaction.
fn define(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    let load = if random.one_in(2) { schema.insert(2_500) } else { String::new() };
    let change = match random.below(9) {
        0 => format!("alter table {table} alter note type bigint;"),
        1 => format!("alter table {table} alter note type int using note::int;"),
        2 => {
            format!("alter table {table} add extra int default 7; alter table {table} drop extra;")
        }
        3 => format!(
            "alter table {table} alter k type bigint; alter table {table} alter k type int;"
        ),
        4 => format!(
            "alter index {table}_i rename to {table}_r; alter index {table}_r rename to {table}_i;"
        ),
        5 => format!("drop index {table}_i; {}", schema.index("")),
        6 if schema.persistence != Persistence::Partitioned => {
            format!("cluster {table} using {table}_id;")
        }
        7 if schema.persistence == Persistence::Logged => {
            format!("alter table {table} set unlogged; alter table {table} set logged;")
        }
        8 if schema.persistence == Persistence::Partitioned => format!(
            "alter table {table} detach partition {table}_low; alter table {table} attach partition {table}_low for values from (minvalue) to (30);"
        ),
        _ => format!(
            "alter table {table} rename note to remark; alter table {table} rename remark to note;"
        ),
    };
    let end = if random.one_in(3) { "rollback" } else { "commit" };
    // A column that others depend on cannot change its type: an error is as good as a rollback.
    format!("\\set ON_ERROR_STOP 0\nbegin; {load} {change} {end};\n\\set ON_ERROR_STOP 1\n")
}

/// Definitions of types and columns, of which the server may refuse any: that ends a subtransaction, and what came before it stays.
fn alter(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    let column = schema.column(random);
    let change = schema.alteration(random).unwrap_or_else(|| match random.below(12) {
        0 => format!("alter table {table} alter {column} set storage external"),
        1 => format!(
            "alter table {table} rename {column} to other; alter table {table} rename other to {column}"
        ),
        2 => format!("alter table {table} set tablespace place"),
        3 => format!("alter table {table} set tablespace pg_default"),
        4 => format!("alter index {table}_i set tablespace place"),
        5 => format!("alter index {table}_i set (selectivity = {})", 1 + random.below(12)),
        6 => format!("alter table {table} set (fillfactor = {})", 20 + random.below(80)),
        7 => format!("alter table {table} add more{} text default 'x'", random.below(1_000)),
        8 => format!("alter table {table} drop more{}", random.below(1_000)),
        9 => format!(
            "alter table {table} set schema elsewhere; alter table elsewhere.{table} set schema public"
        ),
        10 => format!(
            "create table {table}_more partition of {table} for values from (30) to (40)"
        ),
        _ => format!(
            "alter table {table} add constraint {table}_u unique (id); alter table {table} drop constraint {table}_u"
        ),
    });
    let load = if random.one_in(2) { schema.insert(1_500) } else { String::new() };
    let more = if random.one_in(2) { write(schema, random) } else { String::new() };
    let end = if random.one_in(3) { "rollback" } else { "commit" };
    // What is written after the change may be refused, too: a value that an enum has got just now cannot be used.
    format!(
        "\\set ON_ERROR_STOP 0\nbegin; {load} do $do$ begin {change}; exception when {REFUSED} then null; end $do$;
         {more} {end};\n\\set ON_ERROR_STOP 1\n"
    )
}

/// How the server refuses definitions, as conditions of PL/pgSQL.
const REFUSED: &str = "duplicate_column or undefined_column or duplicate_object or undefined_object or duplicate_table
    or wrong_object_type or invalid_parameter_value or numeric_value_out_of_range or string_data_right_truncation
    or feature_not_supported or check_violation or invalid_object_definition or invalid_table_definition or object_in_use";

fn rebuild(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    let concurrently = match schema.persistence {
        Persistence::Partitioned => "",
        _ => "concurrently",
    };
    match random.below(5) {
        0 => format!("reindex table {table};\n"),
        1 => format!("reindex table concurrently {table};\n"),
        2 => format!("drop index {table}_i;\n{}", schema.index(concurrently)),
        3 => format!(
            "set maintenance_work_mem = '1MB'; reindex table {table}; reset maintenance_work_mem;\n"
        ),
        _ => format!("drop index {table}_i;\n{}", schema.index("")),
    }
}

/// Something is cancelled in the middle.
fn interrupt(schema: &Schema, random: &mut Random) -> String {
    let table = &schema.table;
    let what = match random.below(6) {
        0 => schema.insert(3_000),
        1 => format!("{};\n", schema.change(random)),
        2 => format!("reindex table {table};\n"),
        3 => format!("vacuum {table};\n"),
        4 => format!("select ironbloom_seal(i) from leaves('{table}') i;\n"),
        _ => format!("begin; {} {} commit;\n", schema.insert(2_500), schema.insert(500)),
    };
    format!(
        "\\set ON_ERROR_STOP 0\nset statement_timeout = '{}ms';\n{what}rollback;\nreset statement_timeout;\n\\set ON_ERROR_STOP 1\n",
        1 + random.below(40)
    )
}
