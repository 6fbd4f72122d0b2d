//! A query: which heap pages may hold rows that satisfy all its conditions?
//!
//! A row's cells are all in one segment or in one row of a pending list. So the pages that have all wanted buckets are found
//! segment by segment; pages of the tail are always candidates. Which of their rows to recheck: `narrow.rs`.

use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;

use crate::hashing::Hasher;
use crate::meta::{Meta, NULL};
use crate::narrow::Narrow;
use crate::pending;
use crate::shape;
use crate::storage::{Index, Moved};

/// A column must have one of these hashes. They ascend.
struct Condition {
    column: usize,
    hashes: Vec<u32>,
}

/// The conditions of a scan that the index knows something about; `None` if no row can satisfy them.
///
/// # Safety
///
/// The scan is one of this index, with its keys set.
unsafe fn conditions(
    index: Index,
    meta: &Meta,
    scan: pg_sys::IndexScanDesc,
) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    // SAFETY: the caller's promise.
    let keys = unsafe {
        match (*scan).numberOfKeys {
            0 => &[][..],
            count => std::slice::from_raw_parts((*scan).keyData, count as usize),
        }
    };
    for key in keys {
        let column = key.sk_attno as usize - 1;
        let flags = key.sk_flags as u32;
        if flags & pg_sys::SK_SEARCHNOTNULL != 0 {
            // Nothing is known about that.
            continue;
        }
        let hashes = if flags & pg_sys::SK_SEARCHNULL != 0 {
            vec![NULL]
        } else if flags & pg_sys::SK_ISNULL != 0 {
            return None;
        } else {
            // SAFETY: the key's argument is of its type.
            let hash =
                || unsafe { wanted_hashes(Hasher::of_type(index, column, key.sk_subtype), key) };
            let Some(hashes) = shape::unless_changed(index, meta, column, hash) else { continue };
            hashes
        };
        if hashes.is_empty() {
            return None;
        }
        conditions.push(Condition { column, hashes });
    }
    // Short lists first: what they leave is quickly compared with the others.
    conditions.sort_by_key(|condition| condition.hashes.len());
    Some(conditions)
}

/// # Safety
///
/// The key's argument is of the hasher's type, or an array of it.
unsafe fn wanted_hashes(hasher: Hasher, key: &pg_sys::ScanKeyData) -> Vec<u32> {
    // SAFETY: the caller's promise; the array's values are read before anything frees them.
    unsafe {
        if key.sk_flags as u32 & pg_sys::SK_SEARCHARRAY == 0 {
            return vec![hasher.hash_guarded(key.sk_argument)];
        }
        let array: *mut pg_sys::ArrayType =
            pg_sys::pg_detoast_datum(key.sk_argument.cast_mut_ptr()).cast();
        let kind = (*array).elemtype;
        let (mut len, mut by_value, mut align) = (0, false, 0);
        pg_sys::get_typlenbyvalalign(kind, &mut len, &mut by_value, &mut align);
        let (mut values, mut nulls, mut count) = (std::ptr::null_mut(), std::ptr::null_mut(), 0);
        pg_sys::deconstruct_array(
            array,
            kind,
            len.into(),
            by_value,
            align,
            &mut values,
            &mut nulls,
            &mut count,
        );
        let mut hashes: Vec<u32> = (0..count as usize)
            .filter(|&i| !*nulls.add(i))
            .map(|i| hasher.hash_guarded(*values.add(i)))
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }
}

/// The heap pages that may have rows for these conditions, apart from the tail.
fn candidates(index: Index, meta: &Meta, conditions: &[Condition]) -> Result<Vec<u32>, Moved> {
    let columns = meta.columns.len();
    let mut found = Vec::new();
    for list in pending::lists(meta) {
        pending::each_row(index, list, columns, |block, hashes| {
            if conditions
                .iter()
                .all(|wanted| wanted.hashes.binary_search(&hashes[wanted.column]).is_ok())
            {
                found.push(block);
            }
        })?;
    }
    let buckets: Vec<Vec<u32>> = conditions
        .iter()
        .map(|wanted| {
            let column = meta.columns[wanted.column];
            let mut buckets: Vec<u32> =
                wanted.hashes.iter().map(|&hash| column.bucket(hash)).collect();
            buckets.sort_unstable();
            buckets.dedup();
            buckets
        })
        .collect();
    for segment in &meta.segments {
        crate::check_interrupts();
        let mut common: Option<Vec<u32>> = None;
        for (wanted, buckets) in conditions.iter().zip(&buckets) {
            let mut blocks = Vec::new();
            segment.find(index, wanted.column, buckets, &mut blocks)?;
            if buckets.len() > 1 {
                blocks.sort_unstable();
                blocks.dedup();
            }
            let both = match common {
                Some(before) => intersect(&before, &blocks),
                None => blocks,
            };
            let done = both.is_empty();
            common = Some(both);
            if done {
                break;
            }
        }
        found.extend(common.unwrap_or_default());
    }
    Ok(found)
}

/// What is in both; both ascend.
fn intersect(left: &[u32], right: &[u32]) -> Vec<u32> {
    let (short, mut long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let mut both = Vec::new();
    for &block in short {
        long = &long[long.partition_point(|&other| other < block)..];
        match long.first() {
            Some(&other) if other == block => both.push(block),
            Some(_) => {}
            None => break,
        }
    }
    both
}

/// The conditions, with candidates and the tail; `None` if no row can satisfy them. Whoever merges meanwhile may take pages away:
/// then everything is read again.
///
/// # Safety
///
/// The scan is one of this index, with its keys set.
unsafe fn find(
    index: Index,
    scan: pg_sys::IndexScanDesc,
    end: u32,
) -> Option<(Vec<Condition>, Vec<u32>)> {
    let mut meta = index.meta();
    loop {
        // SAFETY: the caller's promise.
        let conditions = unsafe { conditions(index, &meta, scan) }?;
        if conditions.is_empty() {
            return Some((conditions, (0..end).collect()));
        }
        match candidates(index, &meta, &conditions) {
            Ok(mut blocks) => {
                let sealed = meta.sealed.min(end);
                blocks.retain(|&block| block < end);
                blocks.extend(sealed..end);
                return Some((conditions, blocks));
            }
            Err(Moved) => {
                let now = index.meta();
                if now.owners() == meta.owners() {
                    let root = meta.segments.first().map_or(0, |segment| segment.root);
                    index.damaged(root, "pages of its segment belong to others");
                }
                meta = now;
                crate::check_interrupts();
            }
        }
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn get_bitmap(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // SAFETY: the server's own arguments; the table is locked by the query.
    unsafe {
        let relation = (*scan).indexRelation;
        let index = Index::new(relation);
        count_scan(relation);
        let heap = pg_sys::table_open((*(*relation).rd_index).indrelid, pg_sys::NoLock as i32);
        let end = pg_sys::RelationGetNumberOfBlocksInFork(heap, pg_sys::ForkNumber::MAIN_FORKNUM);
        let (conditions, mut blocks) = find(index, scan, end).unwrap_or_default();
        blocks.sort_unstable();
        blocks.dedup();
        let mut narrow = Narrow::new(heap);
        if !blocks.is_empty() {
            for wanted in &conditions {
                narrow.add(index, wanted.column, &wanted.hashes);
            }
        }
        let named = narrow.add_pages(&blocks, bitmap);
        pg_sys::table_close(heap, pg_sys::NoLock as i32);
        named
    }
}

/// For pg_stat_user_indexes.idx_scan.
///
/// # Safety
///
/// The relation is open.
unsafe fn count_scan(relation: pg_sys::Relation) {
    // SAFETY: the caller's promise; counters belong to this process.
    unsafe {
        #[cfg(not(any(feature = "pg13", feature = "pg14")))]
        if (*relation).pgstat_info.is_null() && (*relation).pgstat_enabled {
            pg_sys::pgstat_assoc_relation(relation);
        }
        if let Some(info) = (*relation).pgstat_info.as_mut() {
            #[cfg(any(feature = "pg13", feature = "pg14", feature = "pg15"))]
            {
                info.t_counts.t_numscans += 1;
            }
            #[cfg(not(any(feature = "pg13", feature = "pg14", feature = "pg15")))]
            {
                info.counts.numscans += 1;
            }
        }
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn begin_scan(
    index: pg_sys::Relation,
    keys: i32,
    orders: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: the server has opened the index.
    unsafe { pg_sys::RelationGetIndexScan(index, keys, orders) }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn rescan(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    _key_count: i32,
    _orders: pg_sys::ScanKey,
    _order_count: i32,
) {
    // SAFETY: the server has as many keys as the scan has room for.
    unsafe {
        if !keys.is_null() && (*scan).numberOfKeys > 0 {
            std::ptr::copy(keys, (*scan).keyData, (*scan).numberOfKeys as usize);
        }
    }
}

#[pg_guard]
pub(crate) unsafe extern "C-unwind" fn end_scan(_scan: pg_sys::IndexScanDesc) {}
