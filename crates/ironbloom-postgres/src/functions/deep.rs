//! `ironbloom_check(index, deep => true)`: asks the index as queries do, and compares the answers with those of the table.
//!
//! For each column some values are taken from the table, and each is asked for by every operator that the index serves, once
//! with this index and once without any. What a comparison of pages cannot see is seen here: values that an operator takes for
//! equal and that the index hashes differently, and whatever else may be wrong between a query and the pages.

use std::cell::Cell;
use std::ffi::{CStr, CString};

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;
use pgrx_pg_sys::panic::ErrorReport;

use crate::attempt::attempt;
use crate::owner::AsOwner;
use crate::storage::Index;

/// Values of each column that are asked for.
const KEYS: usize = 12;
/// Pages of the table that they come from, about.
const PAGES: u32 = 200;

/// What the planner may use for a table.
#[derive(Clone, Copy)]
struct Only {
    table: pg_sys::Oid,
    /// No index at all if there is none.
    index: pg_sys::Oid,
}

thread_local! {
    static ONLY: Cell<Option<Only>> = const { Cell::new(None) };
    static BEFORE: Cell<pg_sys::get_relation_info_hook_type> = const { Cell::new(None) };
}

/// Has the planner ask us about indexes.
pub(crate) fn register() {
    // SAFETY: once in each process, while the library is loaded.
    unsafe {
        BEFORE.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(choose);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn choose(
    root: *mut pg_sys::PlannerInfo,
    table: pg_sys::Oid,
    inherits: bool,
    relation: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: the planner's own arguments; the list is one of IndexOptInfo.
    unsafe {
        if let Some(before) = BEFORE.get() {
            pg_sys::ffi::pg_guard_ffi_boundary(|| before(root, table, inherits, relation));
        }
        let Some(only) = ONLY.get().filter(|only| only.table == table) else { return };
        let Some(all) = (*relation).indexlist.as_ref() else { return };
        let mut left = std::ptr::null_mut();
        for i in 0..all.length as usize {
            let info = (*all.elements.add(i)).ptr_value.cast::<pg_sys::IndexOptInfo>();
            if (*info).indexoid == only.index {
                left = pg_sys::lappend(left, info.cast());
            }
        }
        (*relation).indexlist = left;
    }
}

/// As long as this lives, plans for a table use one index or none.
struct Using;

impl Using {
    fn new(table: pg_sys::Oid, index: pg_sys::Oid) -> Self {
        ONLY.set(Some(Only { table, index }));
        Self
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        ONLY.set(None);
    }
}

type Row = Vec<Option<String>>;

/// The rows of a query, as texts, in the snapshot of the statement. Ends the statement if it fails.
pub(super) fn rows(sql: &str) -> Vec<Row> {
    let sql = CString::new(sql).unwrap_or_default();
    // SAFETY: connected; what the server returns is copied before it is freed.
    unsafe {
        pg_sys::SPI_execute(sql.as_ptr(), true, 0);
        let table = pg_sys::SPI_tuptable;
        let Some(found) = table.as_ref() else { return Vec::new() };
        let value = |row: usize, column: i32| {
            let text = pg_sys::SPI_getvalue(*found.vals.add(row), found.tupdesc, column);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let columns = (*found.tupdesc).natts;
        let all = (0..pg_sys::SPI_processed as usize)
            .map(|row| (1..=columns).map(|column| value(row, column)).collect())
            .collect();
        pg_sys::SPI_freetuptable(table);
        all
    }
}

/// Asks for some values of every column. Ends the statement if an answer is wrong.
///
/// # Safety
///
/// Both are open.
pub(super) unsafe fn check(heap: pg_sys::Relation, index: Index) {
    // SAFETY: the caller's promise. Queries evaluate index expressions, so they are the owner's.
    unsafe {
        let owner = AsOwner::of(heap);
        owner.ignore_policies();
        // Values become texts and values again.
        owner.set(c"datestyle", c"ISO, YMD");
        owner.set(c"intervalstyle", c"postgres");
        owner.set(c"extra_float_digits", c"1");
        owner.set(c"bytea_output", c"hex");
        // What forbids an index scan is more than what our index costs.
        owner.set(c"enable_seqscan", c"off");
        owner.set(c"enable_bitmapscan", c"on");
        pg_sys::SPI_connect();
        Asking::new(heap, index).all_columns();
        pg_sys::SPI_finish();
    }
}

/// An index that is being asked.
struct Asking {
    index: Index,
    table: pg_sys::Oid,
    /// Name of the table, and the predicate of a partial index with `and`.
    from: String,
    condition: String,
    percent: f64,
}

/// Values of a column that are asked for.
struct Questions {
    /// The column, or its expression.
    shown: String,
    /// What follows it: an operator and a value.
    asked: Vec<String>,
}

impl Asking {
    /// # Safety
    ///
    /// Both are open, and we are connected.
    unsafe fn new(heap: pg_sys::Relation, index: Index) -> Self {
        // SAFETY: the caller's promise.
        let (table, pages) = unsafe {
            let main = pg_sys::ForkNumber::MAIN_FORKNUM;
            ((*heap).rd_id, pg_sys::RelationGetNumberOfBlocksInFork(heap, main))
        };
        let names = rows(&format!(
            "select format('%I.%I', n.nspname, c.relname), pg_get_expr(i.indpred, i.indrelid)
             from pg_index i join pg_class c on c.oid = i.indrelid join pg_namespace n on n.oid = c.relnamespace
             where i.indexrelid = {}",
            index.id().0
        ));
        let mut names = names.into_iter().flatten();
        let from = names.next().flatten().unwrap_or_default();
        let condition =
            names.next().flatten().map_or(String::new(), |text| format!("({text}) and "));
        let percent = (f64::from(PAGES) / f64::from(pages.max(1)) * 100.0).min(100.0);
        Self { index, table, from, condition, percent }
    }

    fn all_columns(&self) {
        for column in 0..self.index.columns() {
            if let Some(questions) = self.questions(column)
                && !questions.asked.is_empty()
            {
                self.compare(&questions);
            }
        }
    }

    /// Some values of a column, each asked for by every operator.
    fn questions(&self, column: usize) -> Option<Questions> {
        let index = self.index.id().0;
        let shown = rows(&format!("select pg_get_indexdef({index}, {}, false)", column + 1));
        let shown = shown.into_iter().flatten().next().flatten()?;
        let Self { from, condition, percent, .. } = self;
        let keys = |sample: &str| {
            rows(&format!(
                "select quote_literal(({shown})::text), ctid from only {from} {sample}
                 where {condition} num_nonnulls({shown}) = 1 order by random() limit {KEYS}"
            ))
        };
        let mut sampled = keys(&format!("tablesample system ({percent})"));
        if sampled.is_empty() {
            sampled = keys("");
        }
        let operators = rows(&format!(
            "select format('operator(%I.%s)', n.nspname, o.oprname),
                    format_type(r.oid, -1),
                    case when a.attcollation <> 0 then (select format('collate %I.%I', m.nspname, l.collname) from pg_collation l
                        join pg_namespace m on m.oid = l.collnamespace where l.oid = i.indcollation[{column}]) else '' end,
                    case when r.oid = c.opcintype then 'own' end
             from pg_index i join pg_attribute a on a.attrelid = i.indexrelid and a.attnum = {column} + 1
             join pg_opclass c on c.oid = i.indclass[{column}]
             join pg_amop p on p.amopfamily = c.opcfamily and p.amoplefttype = c.opcintype
             join pg_operator o on o.oid = p.amopopr join pg_namespace n on n.oid = o.oprnamespace
             join pg_type r on r.oid = p.amoprighttype where i.indexrelid = {index}"
        ));
        let mut asked = Vec::new();
        for operator in &operators {
            let [Some(name), Some(kind), collation, own] = &operator[..] else { continue };
            let collation = collation.as_deref().unwrap_or_default();
            for key in &sampled {
                let [Some(key), Some(place)] = &key[..] else { continue };
                if own.is_some() {
                    // As it is stored: a domain might not take it again.
                    let value = format!("(select {shown} from only {from} where ctid = '{place}')");
                    asked.push(format!("{name} ({value} {collation})"));
                    continue;
                }
                // Not every value exists in every type.
                let value = format!("{key}::{kind}");
                if attempt(|| rows(&format!("select {value}"))).is_ok() {
                    asked.push(format!("{name} ({value} {collation})"));
                }
            }
        }
        Some(Questions { shown, asked })
    }

    fn compare(&self, questions: &Questions) {
        let (Self { from, condition, .. }, Questions { shown, asked }) = (self, questions);
        // Rows are known by their places. The table is read once for all questions, and an expression computed once.
        let places = "sum(hashtid(ctid)::int8 + 5000000000)";
        let sums: Vec<String> =
            asked.iter().map(|asked| format!("{places} filter (where k {asked})")).collect();
        let by_table = self.rows_using(pg_sys::InvalidOid, &format!(
            "select {} from (select {shown} as k, ctid from only {from} where {condition} true offset 0) t",
            sums.join(", ")
        ));
        for (asked, expected) in asked.iter().zip(by_table.into_iter().flatten()) {
            crate::check_interrupts();
            let question = format!("from only {from} where {condition} ({shown}) {asked}");
            let by_index =
                self.rows_using(self.index.id().0, &format!("select {places} {question}"));
            if by_index.into_iter().flatten().next().flatten() != expected {
                self.wrong(&question, &format!("({shown}) {asked}"));
            }
        }
    }

    /// The rows of a query for which the table has this index only, or none.
    fn rows_using(&self, index: pg_sys::Oid, sql: &str) -> Vec<Row> {
        let _using = Using::new(self.table, index);
        rows(sql)
    }

    fn wrong(&self, question: &str, asked: &str) -> ! {
        let count = |index| {
            let counted = self.rows_using(index, &format!("select count(*) {question}"));
            counted.into_iter().flatten().next().flatten().unwrap_or_default()
        };
        let message = format!(
            "index \"{}\" finds {} rows where the table has {}: {asked}",
            self.index.name(),
            count(self.index.id().0),
            count(pg_sys::InvalidOid)
        );
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED, message, "ironbloom")
            .set_hint("Please REINDEX it. If that does not help, its operator class hashes equal values differently.")
            .report(pg_sys::elog::PgLogLevel::ERROR);
        unreachable!("an error does not return")
    }
}
