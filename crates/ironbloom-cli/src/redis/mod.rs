//! `ironbloom redis`: filters between files and servers. One file a command.
//!
//! ```text
//! load ──► upload.rs ──┐                        ┌── .ibf file, its bytes as they are
//! dump ◄── chunks.rs ──┼── server.rs ── BF./CF. ┤
//! check ───────────────┤   or cluster           └── dump_file.rs: chunks of RedisBloom's own layout, or several shards
//! info ◄── advice.rs ──┘   ▲
//!                          └── address.rs: --url; tls.rs; sentinel.rs: which server; failover.rs: and if it is lost
//! ```
//!
//! A filter goes over the wire as the chunks of SCANDUMP and LOADCHUNK (`chunks.rs`). One logical filter may be spread over
//! a cluster in shards (`names.rs`).

mod address;
mod advice;
mod check;
mod chunks;
mod dump;
mod dump_file;
mod explain;
mod failover;
mod info;
mod load;
mod local;
mod names;
mod sentinel;
mod server;
mod tls;
mod upload;

use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};

use self::address::Address;
pub(crate) use self::explain::without_password;
use self::names::{MOST_SHARDS, Name};
use self::server::Server;
use self::tls::TlsArgs;
use crate::Outcome;
use crate::failure::Advice;

/// Push filters to Redis or Valkey servers and clusters, pull them back, and ask them
///
/// The server must have the module of Ironbloom (docs/redis.md). With RedisBloom's module, its own filters can be dumped,
/// loaded and asked.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  ironbloom build -o seen.ibf --kind blocked urls.txt
  ironbloom redis load seen.ibf --url redis://127.0.0.1:6379 --key seen
  ironbloom redis check new.txt --url redis://127.0.0.1:6379 --key seen
  ironbloom redis dump -o copy.ibf --url redis://127.0.0.1:6379 --key seen
  ironbloom redis info --url redis://127.0.0.1:6379

A filter in eight parts, spread over a cluster:
  ironbloom redis load --lines urls.txt --shards 8 --url redis://10.0.0.1:6379 --key seen

With TLS, and by Sentinels:
  ironbloom redis info --url rediss://db.example:6379 --cacert ca.pem
  ironbloom redis load seen.ibf --url redis+sentinel://10.0.0.1,10.0.0.2/mymaster --key seen"
)]
pub(crate) struct RedisArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Load(load::LoadArgs),
    Dump(dump::DumpArgs),
    Check(check::CheckArgs),
    Info(info::InfoArgs),
}

pub(crate) fn run(args: &RedisArgs) -> Result<Outcome> {
    match &args.command {
        Command::Load(args) => load::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Check(args) => check::run(args),
        Command::Info(args) => info::run(args),
    }
}

/// Which server.
#[derive(Args)]
struct ServerArgs {
    /// The server, or any server of a cluster: redis://[user:password@]host[:port][/database] or unix:///path. By
    /// Sentinels: redis+sentinel://[user:password@]host[:port][,…]/NAME[/database][?sentinel_password=…]. With TLS:
    /// rediss://…, rediss+sentinel://…. If not given, the variable IRONBLOOM_REDIS_URL, which other users of this
    /// machine cannot see
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// With Sentinels: wait so long for a master, and for replicas to confirm a load
    #[arg(long, value_name = "SECONDS", default_value_t = 120, hide_short_help = true)]
    failover_wait: u32,

    #[command(flatten)]
    tls: TlsArgs,
}

/// Which filter on which server.
#[derive(Args)]
struct TargetArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The key that the filter has there
    #[arg(long, value_name = "KEY")]
    key: String,

    /// Number of keys that the filter is spread over; load makes them, dump and check find out themselves
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SHARDS)))]
    shards: Option<u32>,
}

/// Where the URL may be, too.
const URL_VARIABLE: &str = "IRONBLOOM_REDIS_URL";

impl ServerArgs {
    fn address(&self) -> Result<Address> {
        match (&self.url, std::env::var(URL_VARIABLE)) {
            (Some(url), _) => Address::parse(url, &self.tls),
            (None, Ok(url)) => Address::parse(&url, &self.tls),
            (None, Err(_)) => Err(Advice::error(
                "which server?",
                format!("give --url redis://host:port, or set {URL_VARIABLE}"),
            )),
        }
    }

    fn failover_wait(&self) -> Duration {
        Duration::from_secs(self.failover_wait.into())
    }

    fn connect(&self) -> Result<Server> {
        failover::connect(&self.address()?, self.failover_wait())
    }
}

impl TargetArgs {
    fn connect(&self) -> Result<Server> {
        self.server.connect()
    }

    fn name(&self) -> Result<Name> {
        let name = Name::new(&self.key);
        if self.key.is_empty() {
            return Err(anyhow!("--key is empty"));
        }
        if self.shards.is_some() {
            name.refuse_braces()?;
        }
        Ok(name)
    }
}
