//! Work that goes on between commands, a little at a time, on the server's main thread.
//!
//! One timer serves all of it: it is started when there is work, and restarts itself as long as some is left. Its changes are
//! replicated like the effects of a command.

use std::ffi::{c_int, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::api::{Ctx, Str, api};
use super::call::{Call, OwnString};

/// Time between two turns. A turn takes about one millisecond by default, so commands get at least as much.
const MILLISECONDS: c_longlong = 2;

/// Whether a timer is set.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// A moment between commands.
pub(crate) struct Moment {
    ctx: Ctx,
}

impl Moment {
    /// A moment within a command, for the first slice of the work that it starts.
    pub(crate) fn of(call: &Call<'_>) -> Self {
        Self { ctx: call.ctx }
    }

    /// Runs something as if it were a command on these keys.
    pub(crate) fn with_keys<R>(
        &self,
        database: c_int,
        keys: &[&[u8]],
        run: impl FnOnce(&Call<'_>) -> R,
    ) -> R {
        let name: &[u8] = b"";
        let strings: Vec<OwnString> =
            [&[name], keys].concat().into_iter().map(OwnString::new).collect();
        let mut args: Vec<Str> = strings.iter().map(|string| string.string).collect();
        // SAFETY: the context of the timer or of a command; the strings live until the call is over.
        let call = unsafe {
            (api().select_db)(self.ctx, database);
            Call::new(self.ctx, args.as_mut_ptr(), args.len() as c_int)
        };
        run(&call)
    }

    /// Whether nothing may be replicated now, because a replica is about to take over.
    pub(crate) fn must_wait(&self) -> bool {
        // SAFETY: it takes nothing.
        api().avoid_replica_traffic.is_some_and(|avoid| unsafe { avoid() != 0 })
    }
}

/// Work: does a little, and says whether some is left.
pub(crate) type Work = fn(&Moment) -> bool;

/// Calls `work` soon, and again as long as it returns true.
pub(crate) fn start(call: &Call<'_>, work: Work) {
    if !IS_SET.swap(true, Ordering::Relaxed) {
        set(call.ctx, work);
    }
}

fn set(ctx: Ctx, work: Work) {
    // SAFETY: the context of a call or of a timer; the function takes what is given here.
    unsafe { (api().create_timer)(ctx, MILLISECONDS, turn, work as *mut c_void) };
}

unsafe extern "C" fn turn(ctx: Ctx, work: *mut c_void) {
    // SAFETY: `set` made the address from such a function.
    let work: Work = unsafe { std::mem::transmute::<*mut c_void, Work>(work) };
    // A panic must not reach the server. Filters are changed in steps that cannot panic half way, and the other work goes on.
    if catch_unwind(AssertUnwindSafe(|| work(&Moment { ctx }))).unwrap_or(true) {
        set(ctx, work);
    } else {
        IS_SET.store(false, Ordering::Relaxed);
    }
}
