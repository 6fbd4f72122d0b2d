//! Filters in SQL: `ironbloom_build(key, capacity, rate)` is an aggregate, `ironbloom_contains(filter, key)` asks it.
//!
//! A filter is a bytea with the bytes of an .ibf file, which the program, the module and the guards read as well.

use ironbloom::{AnyFilter, Bloom, Persist};
use pgrx_macros::pg_guard;
use pgrx_pg_sys as pg_sys;
use pgrx_pg_sys::errcodes::PgSqlErrorCode;

use super::arguments::{argument, bytea, bytes, fail};
use crate::sql_function;

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
        let state: *mut Bloom = match argument(call, 0) {
            Some(state) => state.cast_mut_ptr(),
            None => {
                let capacity = argument(call, 2).map_or(0, |datum| datum.value() as i64);
                let rate =
                    argument(call, 3).map_or(0.0, |datum| f64::from_bits(datum.value() as u64));
                let filter = Bloom::with_rate(capacity.max(0).cast_unsigned(), rate);
                match filter {
                    Ok(filter) => keep(filter, context),
                    Err(error) => {
                        fail(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string())
                    }
                }
            }
        };
        if let Some(key) = argument(call, 1) {
            (*state).insert(bytes(key));
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
        let filter: *const Bloom = state.cast_mut_ptr();
        bytea(&(*filter).to_bytes())
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
        // The same filter for all rows of a query is decoded once.
        let found = if pg_sys::get_fn_expr_arg_stable(function, 0) {
            if function.fn_extra.is_null() {
                function.fn_extra = keep(decode(bytes(image)), function.fn_mcxt).cast();
            }
            (*function.fn_extra.cast::<AnyFilter>()).contains(bytes(key))
        } else {
            decode(bytes(image)).contains(bytes(key))
        };
        match found {
            Ok(found) => pg_sys::Datum::from(found),
            Err(error) => fail(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string()),
        }
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
