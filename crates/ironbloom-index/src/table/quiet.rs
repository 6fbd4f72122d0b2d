//! Panics that are caught are not printed.
//!
//! The `parquet` crate panics on some damaged files. That becomes an error, but a panic prints a message before it can be
//! caught. So the process gets a hook that says nothing in a thread that will catch the panic, and otherwise does what the
//! hook before it did.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, and returns the payload of its panic as an error, without a message.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    static HOOK: Once = Once::new();
    // A hook cannot be set in a thread that panics (this may be called by a destructor).
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                if !CATCHING.get() {
                    before(panic);
                }
            }));
        });
    }
    let before = CATCHING.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(before);
    done
}
