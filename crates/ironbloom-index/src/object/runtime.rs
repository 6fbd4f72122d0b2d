//! One thread waits for all stores.
//!
//! The callers are synchronous, and may themselves be in a runtime that must not be blocked into from inside: so they hand
//! their requests over and wait for a channel.

use std::future::Future;
use std::sync::{OnceLock, mpsc};
use std::{io, thread};

use tokio::runtime::Handle;

fn handle() -> io::Result<&'static Handle> {
    static HANDLE: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = HANDLE.get() {
        return Ok(handle);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let made = runtime.handle().clone();
    let serve = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("ironbloom-objects".to_owned()).spawn(serve)?;
    // If two threads came here at the same time, one of the two runtimes stays idle.
    Ok(HANDLE.get_or_init(|| made))
}

/// Waits for a future that runs in the thread of the stores.
pub(super) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (send, receive) = mpsc::sync_channel(1);
    handle()?.spawn(async move {
        let _ = send.send(work.await);
    });
    receive.recv().map_err(|_| io::Error::other("the request was given up"))
}
