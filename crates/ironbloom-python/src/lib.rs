//! The Python package `ironbloom`, below its Python code.
//!
//! ```text
//!  python/ironbloom/    what users see: classes, docstrings, types
//!        │
//!        ▼ _native
//!  filter.rs            a filter of any kind                      make.rs    new ones, and from files
//!  shared.rs            the same for threads                      foreign.rs those of other programs
//!  lock.rs              writers of a file take turns
//!  rows.rs              the same for rows of several attributes   plan.rs    what kinds cost
//!  many.rs              many keys at once                         groups.rs  all keys, as numbers, in groups
//!  key/                 a Python object ──► stable bytes
//!  batch/               columns of numpy and Arrow ──► hashes     dedup.rs   first occurrences
//!  index/               tables: conditions, searches, rows as Arrow
//!  guard/               a filter in front of a store of Python, also awaited
//!  interrupt.rs         long work without the interpreter         errors.rs  exceptions
//! ```
//!
//! Everything here translates; what a filter does is in the library. A panic becomes an exception (pyo3 catches it at each
//! function of the module).

mod batch;
mod dedup;
mod errors;
mod filter;
mod foreign;
mod groups;
mod guard;
mod index;
mod interrupt;
mod key;
mod lock;
mod make;
mod many;
mod plan;
mod rows;
mod shared;

/// The part of the package that is not Python.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::batch::mask::Mask;
    #[pymodule_export]
    use crate::dedup::Dedup;
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::guard::Guard;
    #[pymodule_export]
    use crate::guard::awaited::{AsyncGuard, Operation, open_async_guard};
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::index::change::build_index;
    #[pymodule_export]
    use crate::index::expression::{Column, Expr, col};
    #[pymodule_export]
    use crate::index::search::Batches;
    #[pymodule_export]
    use crate::index::table::{Table, write_parquet};
    #[pymodule_export]
    use crate::lock::Lock;
    #[pymodule_export]
    use crate::make::{
        Made, from_bytes, key_bytes, load, load_mapped, make, make_bloom_of_bits, make_fuse,
        make_rows, make_scalable, make_window_of_time,
    };
    #[pymodule_export]
    use crate::plan::plans;

    #[pymodule_init]
    fn begin(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        crate::shared::watch_forks(module.py())
    }
}
