//! A load that outlives its master.
//!
//! Sentinels make a replica the master when the old one is lost. Replication is asynchronous: what the old master has
//! confirmed may be missing from the new one. But a replica receives everything in the order in which it was sent, so it
//! has all that came before the last thing it has. Hence this procedure:
//!
//! ```text
//!       ┌──► connect to the master ──► is the receipt there? ──yes──────────────────┐
//!       │                                    │ no                                   ▼
//!       │                     send all filters, under temporary keys        wait for the replicas,
//!       │                                    ▼                              ask the Sentinels once more
//!       │                 one transaction: all keys and the receipt ──────────────► │ still the master
//!       └────────── lost, at any of these steps ◄───────────────────────────────────┤
//!                                                                                   ▼ done
//! ```
//!
//! The receipt is a key that is set in the transaction that renames the filters. If the new master has it, it has the complete
//! filters; if not, it has none of them under their keys, and everything is sent again.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::address::{Address, Endpoint};
use super::explain::Lost;
use super::sentinel::Sentinels;
use super::server::Server;
use super::upload::{Upload, UploadTarget, unlink};
use crate::failure::{Advice, message};
use crate::{number, output};

/// Maximum number of masters that may be lost during one load.
const MAX_LOSSES: u32 = 10;
/// Time between two tries to find the master.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for replicas to confirm, before the Sentinels are asked whether they still exist.
const CONFIRMATION: Duration = Duration::from_secs(2);

/// The server of an address. Waits for this time while its Sentinels have no master because of a failover.
pub(super) fn connect(address: &Address, wait: Duration) -> Result<Server> {
    let started = Instant::now();
    loop {
        match Server::connect(address) {
            Err(error) if may_wait(address, &error) && started.elapsed() < wait => {
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

/// Returns true if Sentinels may know another master soon. Not if the Sentinels themselves are unreachable.
fn may_wait(address: &Address, error: &anyhow::Error) -> bool {
    match &address.endpoint {
        Endpoint::Sentinels(sentinels) => error.is::<Lost>() && sentinels.master().is_ok(),
        Endpoint::Server(_) => false,
    }
}

/// Sends filters to a server with `send`, and to the next master if it is lost meanwhile. Returns the number of bytes sent to
/// the last one.
pub(super) fn load(
    address: &Address,
    wait: Duration,
    target: &UploadTarget,
    mut send: impl FnMut(&mut Upload<'_>) -> Result<()>,
) -> Result<u64> {
    let mut server = connect(address, wait)?;
    let Endpoint::Sentinels(sentinels) = &address.endpoint else {
        let mut upload = Upload::new(&mut server, target)?;
        send(&mut upload)?;
        let sent = upload.sent();
        upload.publish(None)?;
        return Ok(sent);
    };
    let mut load = Load { sentinels, wait, target, sent: 0, losses: 0, alive: Instant::now() };
    let mut tries = 0;
    loop {
        let before = load.alive;
        let error = match load.once(&mut server, tries, &mut send) {
            Err(error) if error.is::<Lost>() => error,
            result => return result.map(|()| load.sent),
        };
        tries += 1;
        // A master that refuses everything because it lacks replicas counts as lost only once.
        if load.alive > before || tries == 1 {
            load.losses += 1;
            output::note(&format!(
                "note: {}. Asking the Sentinels for the master",
                message(&error)
            ));
        }
        server = load.find_master(address, error)?;
    }
}

/// A load with Sentinels.
struct Load<'a> {
    sentinels: &'a Sentinels,
    wait: Duration,
    target: &'a UploadTarget,
    sent: u64,
    losses: u32,
    /// When a master last accepted something.
    alive: Instant,
}

impl Load<'_> {
    fn once(
        &mut self,
        server: &mut Server,
        tries: u32,
        send: &mut impl FnMut(&mut Upload<'_>) -> Result<()>,
    ) -> Result<()> {
        let receipt = self.target.name.receipt(&self.target.id);
        if tries == 0 || !server.ask::<bool>(redis::cmd("EXISTS").arg(&receipt))? {
            let mut upload = Upload::new(server, self.target)?;
            let sent = send(&mut upload);
            if upload.sent() > 0 {
                self.alive = Instant::now();
                self.sent = upload.sent();
            }
            sent?;
            upload.publish(Some(&receipt))?;
        }
        self.alive = Instant::now();
        self.settle(server)?;
        // It would expire anyway.
        let _ = server.ask::<i64>(&unlink(&receipt));
        Ok(())
    }

    /// The current master. Errors of any kind may be temporary: Sentinels come back, too.
    fn find_master(&self, address: &Address, lost: anyhow::Error) -> Result<Server> {
        if self.losses > MAX_LOSSES || self.alive.elapsed() > self.wait {
            return Err(self.unfinished(&lost));
        }
        loop {
            std::thread::sleep(PAUSE);
            match Server::connect(address) {
                Err(error) if self.alive.elapsed() > self.wait => {
                    return Err(self.unfinished(&error));
                }
                Err(_) => {}
                Ok(server) => return Ok(server),
            }
        }
    }

    fn unfinished(&self, error: &anyhow::Error) -> anyhow::Error {
        let name = self.target.name.key();
        let seconds = self.wait.as_secs();
        Advice::error(
            format!(
                "{name}: not loaded; the master was lost {}, and none has replaced it: {}",
                times(self.losses),
                message(error)
            ),
            format!(
                "see SENTINEL MASTER {}; masters are waited for {seconds} s (--failover-wait)",
                self.sentinels.name
            ),
        )
    }

    /// Waits until every healthy replica has what this connection has written, and makes sure that the Sentinels have no
    /// other master.
    fn settle(&self, server: &mut Server) -> Result<()> {
        let started = Instant::now();
        // Zero would mean forever.
        let patience = CONFIRMATION.min(self.wait).as_millis().max(1) as u64;
        loop {
            let replicas = self.sentinels.replicas();
            let confirmed: usize = match &replicas {
                Ok(replicas) if replicas.healthy > 0 => {
                    server.ask(redis::cmd("WAIT").arg(replicas.healthy).arg(patience))?
                }
                _ => 0,
            };
            let state = replicas.and_then(|replicas| Ok((replicas, self.sentinels.master()?)));
            match state {
                Ok((_, master)) if !server.master().is_some_and(|one| one.is_at(&master)) => {
                    let words = format!("{}: is the master no more", server.address());
                    return Err(Lost::error(anyhow::anyhow!(words)));
                }
                Ok((replicas, _)) if confirmed >= replicas.healthy => {
                    if replicas.healthy == 0 && replicas.known > 0 {
                        output::note(&format!(
                            "warning: {}: no replica is connected to it; if the master is lost now, the filter is, too",
                            server.address()
                        ));
                    }
                    return Ok(());
                }
                _ if started.elapsed() < self.wait => std::thread::sleep(PAUSE),
                Ok((replicas, _)) => {
                    let healthy = number::plural(replicas.healthy as u64, "replica");
                    return Err(
                        self.unsettled(server, &format!("confirmed by {confirmed} of {healthy}"))
                    );
                }
                Err(error) => return Err(self.unsettled(server, &message(&error))),
            }
        }
    }

    fn unsettled(&self, server: &Server, why: &str) -> anyhow::Error {
        let (name, master) = (self.target.name.key(), server.address());
        Advice::error(
            format!("{name}: loaded to {master}, but it could be lost with this master: {why}"),
            format!(
                "see SENTINEL REPLICAS {}; then load it again with --replace",
                self.sentinels.name
            ),
        )
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
