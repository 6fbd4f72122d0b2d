//! What a scan costs, and how many pages it names.
//!
//! ```text
//! a condition is true of a page if one of its rows satisfies it, or by chance: k values, each once in 2^s pages
//! pages named = sealed pages · product over the conditions + pages with rows that satisfy all + tail
//! ```
//!
//! The server prices the rows that it thinks an index names, one by one. Here it is whole pages that are read: the selectivity
//! returned is that of as many rows as make it read these pages, and the time to look at all their rows is part of the
//! index's cost: an operator each where the scan itself does so (`narrow.rs`), otherwise as much as a scan of the table takes.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::meta::Meta;
use crate::narrow;
use crate::shape;
use crate::storage::Index;

/// Operators that a lookup in a page costs: as the server's own estimate for descending a B-tree.
const OPERATORS_PER_PAGE: f64 = 50.0;

/// More than the server adds to plans that are switched off.
const UNUSABLE: f64 = 1e12;

/// How often a condition is true of a page.
struct Clause {
    column: usize,
    /// Of a row.
    selectivity: f64,
    /// Values it asks for; none if the index knows nothing about it.
    values: f64,
}

/// An index that exists.
struct Known {
    meta: Meta,
    /// Columns that rows can be told apart by.
    narrow: Vec<bool>,
    /// Columns that the index knows nothing about any more.
    changed: Vec<bool>,
}

/// # Safety
///
/// The arguments of the estimate.
unsafe fn clauses(root: *mut pg_sys::PlannerInfo, path: *mut pg_sys::IndexPath) -> Vec<Clause> {
    let mut clauses = Vec::new();
    // SAFETY: the planner's own nodes: a list of IndexClause.
    unsafe {
        let relation = (*(*(*path).indexinfo).rel).relid;
        for node in members((*path).indexclauses) {
            let clause = node.cast::<pg_sys::IndexClause>();
            for qual in members((*clause).indexquals) {
                let info = qual.cast::<pg_sys::RestrictInfo>();
                let expression: *mut pg_sys::Node = (*info).clause.cast();
                let selectivity = pg_sys::clause_selectivity(
                    root,
                    info.cast(),
                    relation as i32,
                    pg_sys::JoinType::JOIN_INNER,
                    std::ptr::null_mut(),
                );
                let values = values(root, expression);
                clauses.push(Clause { column: (*clause).indexcol as usize, selectivity, values });
            }
        }
    }
    clauses
}

/// The values that a condition asks for.
///
/// # Safety
///
/// The planner's own nodes.
unsafe fn values(root: *mut pg_sys::PlannerInfo, expression: *mut pg_sys::Node) -> f64 {
    let _ = root;
    // SAFETY: a node's tag says what it is.
    unsafe {
        match (*expression).type_ {
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                let arguments = (*expression.cast::<pg_sys::ScalarArrayOpExpr>()).args;
                let array = *members(arguments).last().unwrap_or(&std::ptr::null_mut());
                #[cfg(any(feature = "pg17", feature = "pg18"))]
                let len = pg_sys::estimate_array_length(root, array.cast());
                #[cfg(not(any(feature = "pg17", feature = "pg18")))]
                let len = f64::from(pg_sys::estimate_array_length(array.cast()));
                len.max(1.0)
            }
            pg_sys::NodeTag::T_NullTest => 0.0,
            _ => 1.0,
        }
    }
}

/// The pointers in a list.
///
/// # Safety
///
/// A list of pointers, or none.
unsafe fn members(list: *mut pg_sys::List) -> Vec<*mut std::ffi::c_void> {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(list) = list.as_ref() else { return Vec::new() };
        (0..list.length as usize).map(|i| (*list.elements.add(i)).ptr_value).collect()
    }
}

/// An index that exists; `None` if it is damaged.
///
/// # Safety
///
/// The planner has locked the index and its table.
unsafe fn known(oid: pg_sys::Oid, clauses: &[Clause]) -> Option<Known> {
    const LOCKED: i32 = pg_sys::NoLock as i32;
    // SAFETY: the caller's promise.
    unsafe {
        let relation = pg_sys::index_open(oid, LOCKED);
        let index = Index::new(relation);
        let known = index.meta_or_warning().map(|meta| {
            let heap = pg_sys::table_open((*(*relation).rd_index).indrelid, LOCKED);
            let narrow = narrow::columns(heap, index);
            pg_sys::table_close(heap, LOCKED);
            let mut changed = vec![false; index.columns()];
            for clause in clauses {
                changed[clause.column] = shape::has_changed(index, &meta, clause.column);
            }
            if let Some(column) = changed.iter().position(|&changed| changed) {
                shape::warn(index, column);
            }
            Known { meta, narrow, changed }
        });
        pg_sys::index_close(relation, LOCKED);
        known
    }
}

#[pg_guard]
#[expect(clippy::too_many_arguments, reason = "as the server calls it")]
pub(crate) unsafe extern "C-unwind" fn estimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loops: f64,
    startup: *mut pg_sys::Cost,
    total: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    index_pages: *mut f64,
) {
    // SAFETY: the planner's own structures.
    unsafe {
        let info = (*path).indexinfo;
        let relation = (*info).rel;
        let (heap_pages, rows) =
            (f64::from((*relation).pages).max(1.0), (*relation).tuples.max(1.0));
        let rows_per_page = rows / heap_pages;
        let clauses = clauses(root, path);
        let known = if (*info).hypothetical {
            let meta = Meta::new(std::iter::empty());
            Some(Known { meta, narrow: Vec::new(), changed: Vec::new() })
        } else {
            known((*info).indexoid, &clauses)
        };
        let Some(Known { meta, narrow, changed }) = known else {
            (*startup, *total) = (UNUSABLE, UNUSABLE);
            (*selectivity, *correlation, *index_pages) = (1.0, 0.0, f64::from((*info).pages));
            return;
        };

        let quals = pg_sys::get_quals_from_indexclauses((*path).indexclauses);
        let quals = pg_sys::add_predicate_to_index_quals(info, quals);
        let all = pg_sys::clauselist_selectivity(
            root,
            quals,
            (*relation).relid as i32,
            pg_sys::JoinType::JOIN_INNER,
            std::ptr::null_mut(),
        );

        let named: f64 = clauses
            .iter()
            .filter(|clause| changed.get(clause.column) != Some(&true))
            .map(|clause| {
                let s = meta.columns.get(clause.column).map_or(10, |column| column.selectivity);
                let by_chance = clause.values / f64::from(1u32 << s);
                (1.0 - (1.0 - clause.selectivity).powf(rows_per_page) + by_chance).min(1.0)
            })
            .product();
        let tail = (heap_pages - f64::from(meta.sealed)).max(0.0);
        let matching = (all * rows).min(heap_pages);
        let pages = ((heap_pages - tail) * named + matching + tail).clamp(1.0, heap_pages);

        // A posting page for each value in each segment; directories are as good as cached, like the inner pages of trees.
        let lookups: f64 = clauses.iter().map(|clause| clause.values.max(1.0)).sum();
        let touched: f64 =
            meta.segments.iter().map(|segment| lookups.min(f64::from(segment.pages))).sum();
        let pending = f64::from(meta.pending.pages + meta.flushing.pages);
        let touched = touched + pending + 1.0;
        let (mut random, mut sequential) = (0.0, 0.0);
        pg_sys::get_tablespace_page_costs((*info).reltablespace, &mut random, &mut sequential);
        let read = if loops > 1.0 {
            pg_sys::index_pages_fetched(
                touched * loops,
                (*info).pages,
                f64::from((*info).pages),
                root,
            ) / loops
        } else {
            touched
        };
        let operators = clauses.len().max(1) as f64;
        let decoding = touched * OPERATORS_PER_PAGE * pg_sys::cpu_operator_cost;
        let narrowed = all * (narrow::WORTH as f64) < 1.0
            && clauses.iter().any(|clause| narrow.get(clause.column).is_some_and(|&narrow| narrow));
        let row_cost = if narrowed {
            pg_sys::cpu_operator_cost
        } else {
            pg_sys::cpu_tuple_cost + operators * pg_sys::cpu_operator_cost
        };
        let rechecking = pages * rows_per_page * row_cost;

        *startup = decoding;
        *total = decoding + read * random + rechecking;
        *selectivity = all.max(rows_for(pages, heap_pages) / rows).min(1.0);
        *correlation = 0.0;
        *index_pages = touched;
    }
}

/// How many rows, at random places, are on this number of pages out of all: the inverse of the server's formula.
fn rows_for(pages: f64, all: f64) -> f64 {
    2.0 * all * pages / (2.0 * all - pages)
}
