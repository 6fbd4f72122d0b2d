//! Sends what was written to a file to the disk, while more is made.
//!
//! A system keeps what is written for half a minute. A build that ends sooner would then wait for all of it at once.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// A thread that waits for the disk, so that nobody else does. It ends by itself after the owner.
pub(crate) struct Flusher {
    wake: SyncSender<()>,
}

impl Flusher {
    /// For this file.
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        thread::Builder::new().name("flush".to_owned()).spawn(move || {
            while woken.recv().is_ok() {
                // Whoever needs it to be there syncs again, and is told of errors.
                let _ = file.sync_data();
            }
        })?;
        Ok(Self { wake })
    }

    /// Everything that was written so far should go to the disk.
    pub(crate) fn flush(&self) {
        // If one is waiting already, it will see this as well.
        let _ = self.wake.try_send(());
    }
}
