//! A client that waits for its reply while the server serves others.
//!
//! ```text
//! command ──► Waiting::begin ──► work in slices (timer) ──► Waiting::answer ──► reply, on the main thread
//! ```
//!
//! If a client disconnects, the work goes on, and the reply is dropped. No client waits forever: if a `Waiting` is dropped
//! unanswered, by a panic, its client gets an error.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use super::api::{BlockedPtr, Ctx, OK, Str, api};
use super::call::Call;

/// What makes the reply.
type Reply = Box<dyn FnOnce(&Call<'_>)>;

/// A client that waits.
pub(crate) struct Waiting {
    client: BlockedPtr,
}

// SAFETY: the server allows a blocked client to be answered from any thread; and here it is only done on the main thread.
unsafe impl Send for Waiting {}

impl Waiting {
    /// Lets the client of this command wait, unless it must be answered at once: in a transaction, a script, a call of another
    /// module, and what a primary or a file sends, which has to be done in its order.
    pub(crate) fn begin(call: &Call<'_>) -> Option<Self> {
        if !call.may_wait() {
            return None;
        }
        // SAFETY: the context of a command; the functions fit. Without a time limit no function for it is needed, and nobody
        // can end the wait by CLIENT UNBLOCK.
        let client = unsafe { (api().block_client)(call.ctx, Some(reply), None, Some(free), 0) };
        (!client.is_null()).then_some(Self { client })
    }

    /// Answers: `reply` is called soon, unless the client has gone.
    pub(crate) fn answer(mut self, reply: impl FnOnce(&Call<'_>) + 'static) {
        self.unblock(Box::new(reply));
    }

    fn unblock(&mut self, reply: Reply) {
        let client = std::mem::replace(&mut self.client, ptr::null_mut());
        // In another box, because the address of a closure has two words.
        let reply: *mut Reply = Box::into_raw(Box::new(reply));
        // SAFETY: a client that is blocked, once; `free` takes the box back.
        unsafe { (api().unblock_client)(client, reply.cast()) };
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.client.is_null() {
            self.unblock(Box::new(|call| call.reply_error(super::register::INTERNAL_ERROR)));
        }
    }
}

unsafe extern "C" fn reply(ctx: Ctx, args: *mut Str, count: c_int) -> c_int {
    // SAFETY: the context of the reply, and the arguments of the command.
    let (call, data) = unsafe {
        (Call::new(ctx, args, count), (api().get_blocked_client_private_data)(ctx).cast::<Reply>())
    };
    // SAFETY: what `unblock` gave; the server calls this once, and `free` after it.
    let reply = std::mem::replace(unsafe { &mut *data }, Box::new(|_| {}));
    // A panic must not reach the server.
    if catch_unwind(AssertUnwindSafe(|| reply(&call))).is_err() {
        call.reply_error(super::register::INTERNAL_ERROR);
    }
    OK
}

unsafe extern "C" fn free(_ctx: Ctx, data: *mut c_void) {
    // SAFETY: what `unblock` gave, and nobody else has it.
    let _ = catch_unwind(|| drop(unsafe { Box::from_raw(data.cast::<Reply>()) }));
}
