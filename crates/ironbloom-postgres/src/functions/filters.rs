//! Filters in SQL: `ironbloom_build(key, capacity, rate)` is an aggregate, `ironbloom_contains(filter, key)` asks it.
//!
//! A filter is a bytea with the bytes of an .ibf file, which the program, the module and the guards read as well.

use ironbloom::{AnyFilter, Bloom, BloomParams, HashFn, Persist};
use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use super::arguments::{argument, bytea, bytes, fail};
use crate::sql_function;

/// A bytea has at most 1 GiB, of which a file's header and checksums take a small part.
const MOST_BYTES: u64 = (1 << 30) - (1 << 22);

/// A value of ours that lives as long as a memory context of the server.
///
/// # Safety
///
/// The context is valid.
unsafe fn keep<T>(value: T, context: pg_sys::MemoryContext) -> *mut T {
    unsafe extern "C-unwind" fn release<T>(value: *mut std::ffi::c_void) {
        // SAFETY: it was boxed below, and the server calls this once.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    }
    let value = Box::into_raw(Box::new(value));
    // SAFETY: the callback lives in the context itself.
    unsafe {
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback: *mut pg_sys::MemoryContextCallback =
            pg_sys::MemoryContextAllocZero(context, size).cast();
        (*callback).func = Some(release::<T>);
        (*callback).arg = value.cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
    value
}

/// A filter that is being built, and for what.
struct Building {
    filter: Bloom,
    asked: Asked,
}

/// The filter that a row of the aggregate asks for.
#[derive(Clone, Copy)]
struct Asked {
    capacity: Option<i64>,
    rate: Option<f64>,
}

impl Asked {
    fn filter(self) -> Bloom {
        let invalid = |what: String| fail(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, what);
        let (Some(capacity), Some(rate)) = (self.capacity, self.rate) else {
            invalid(format!("ironbloom_build needs a capacity and a rate, got {self}"))
        };
        let Ok(capacity) = u64::try_from(capacity) else {
            invalid(format!("capacity must be at least 1, got {capacity}"))
        };
        let params = BloomParams::for_rate(capacity, rate);
        if params.as_ref().is_ok_and(|params| params.bits() / 8 > MOST_BYTES) {
            fail(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "the filter would be larger than a value can be, which is 1 GB".into(),
            );
        }
        match params.and_then(|params| Bloom::new(params, HashFn::default())) {
            Ok(filter) => filter,
            Err(error) => invalid(error.to_string()),
        }
    }

    /// Ends the statement if another row asks for another filter.
    fn require(&self, other: &Self) {
        let bits = |asked: &Self| (asked.capacity, asked.rate.map(f64::to_bits));
        if bits(self) != bits(other) {
            fail(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!(
                    "ironbloom_build needs one capacity and one rate for all keys, got {self}, and then {other}"
                ),
            );
        }
    }
}

impl std::fmt::Display for Asked {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let capacity = self.capacity.map_or("null".into(), |capacity| capacity.to_string());
        let rate = self.rate.map_or("null".into(), |rate| rate.to_string());
        write!(to, "{capacity} and {rate}")
    }
}

sql_function!(pg_finfo_ironbloom_build_step);

/// `ironbloom_build_step(internal, text, bigint, float8)`: adds a key. Nulls are no keys.
#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_build_step(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL; the state is the one that this function has returned before.
    unsafe {
        let mut context = std::ptr::null_mut();
        if pg_sys::AggCheckCallContext(call, &mut context) == 0 {
            fail(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "ironbloom_build is an aggregate".into(),
            );
        }
        let asked = Asked {
            capacity: argument(call, 2).map(|datum| datum.value() as i64),
            rate: argument(call, 3).map(|datum| f64::from_bits(datum.value() as u64)),
        };
        let state: *mut Building = match argument(call, 0) {
            Some(state) => state.cast_mut_ptr(),
            None => keep(Building { filter: asked.filter(), asked }, context),
        };
        (*state).asked.require(&asked);
        if let Some(key) = argument(call, 1) {
            (*state).filter.insert(bytes(key));
        }
        pg_sys::Datum::from(state)
    }
}

sql_function!(pg_finfo_ironbloom_build_final);

/// `ironbloom_build_final(internal)`: the bytes; null if there was no row at all.
#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_build_final(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL; the state is that of the steps.
    unsafe {
        let Some(state) = argument(call, 0) else {
            (*call).isnull = true;
            return pg_sys::Datum::null();
        };
        let state: *const Building = state.cast_mut_ptr();
        bytea(&(*state).filter.to_bytes())
    }
}

sql_function!(pg_finfo_ironbloom_contains);

/// `ironbloom_contains(bytea, text)`.
#[unsafe(no_mangle)]
#[pg_guard]
unsafe extern "C-unwind" fn ironbloom_contains(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: declared so in SQL, and strict.
    unsafe {
        let (Some(image), Some(key)) = (argument(call, 0), argument(call, 1)) else {
            return pg_sys::Datum::null();
        };
        let function = &mut *(*call).flinfo;
        // The same filter for many rows is decoded once. It is recognised by its bytes: what looks like a parameter of the
        // statement may be a variable of a procedure.
        let asked = match function.fn_extra.cast::<Decoded>().as_mut() {
            Some(asked) => {
                if !is_constant(function) {
                    asked.follow(bytes(image));
                }
                asked
            }
            None => {
                let asked = keep(Decoded::new(bytes(image)), function.fn_mcxt);
                function.fn_extra = asked.cast();
                &mut *asked
            }
        };
        match asked.filter.contains(bytes(key)) {
            Ok(found) => pg_sys::Datum::from(found),
            Err(error) => fail(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string()),
        }
    }
}

/// The filter that was asked last.
struct Decoded {
    image: Vec<u8>,
    filter: AnyFilter,
}

impl Decoded {
    fn new(image: &[u8]) -> Self {
        Self { image: image.to_vec(), filter: decode(image) }
    }

    /// Becomes this filter, if it is another one.
    fn follow(&mut self, image: &[u8]) {
        if self.image != image {
            self.filter = decode(image);
            self.image.clear();
            self.image.extend_from_slice(image);
        }
    }
}

/// Whether the filter is written in the statement itself.
///
/// # Safety
///
/// The function is described by the server.
unsafe fn is_constant(function: &pg_sys::FmgrInfo) -> bool {
    // SAFETY: a node's tag says what it is, and the function has arguments.
    unsafe {
        let call = function.fn_expr.cast::<pg_sys::FuncExpr>();
        if call.is_null() || (*call).xpr.type_ != pg_sys::NodeTag::T_FuncExpr {
            return false;
        }
        let Some(arguments) = (*call).args.as_ref() else { return false };
        let first = (*arguments.elements).ptr_value.cast::<pg_sys::Node>();
        arguments.length > 0 && (*first).type_ == pg_sys::NodeTag::T_Const
    }
}

fn decode(image: &[u8]) -> AnyFilter {
    match AnyFilter::from_bytes(image) {
        Ok(filter) => filter,
        Err(error) => fail(
            PgSqlErrorCode::ERRCODE_INVALID_BINARY_REPRESENTATION,
            format!("not a filter: {error}"),
        ),
    }
}
