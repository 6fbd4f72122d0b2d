//! `ironbloom redis`: filters between files and servers. One file per command.
//!
//! ```text
//! load ──► upload.rs ──┐                        ┌── .ibf file, its bytes as they are
//! dump ◄── scan.rs ────┼── server.rs ── BF./CF. ┤
//! check ───────────────┤   or cluster           └── .ibd file: chunks of RedisBloom's own layout, or several shards
//! info ◄── advice.rs ──┘   ▲
//!                          └── address.rs: --url; tls.rs; sentinel.rs: which server; failover.rs: and if it is lost
//! ```
//!
//! A filter goes over the wire as the chunks of SCANDUMP and LOADCHUNK (`format::redis_chunks` and `format::dump` of the library). One logical filter may be spread over
//! a cluster in shards (`names.rs`).

mod address;
mod advice;
mod check;
mod dump;
mod explain;
mod failover;
mod info;
mod load;
mod local;
mod names;
mod scan;
mod sentinel;
mod server;
mod sketches;
mod survey;
mod tls;
mod upload;

use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use ironbloom::format::dump::MAX_SHARDS;

use self::address::Address;
pub(crate) use self::explain::without_password;
use self::names::Name;
use self::server::Server;
use self::tls::TlsArgs;
use crate::Outcome;
use crate::failure::Advice;

/// Load filters into Redis or Valkey servers and clusters, save them to files, and query them
///
/// The server needs Ironbloom's module (docs/redis.md). With RedisBloom's module, RedisBloom's own filters can be dumped,
/// loaded and queried.
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
    /// rediss://…, rediss+sentinel://…. Default: the environment variable IRONBLOOM_REDIS_URL, which other users of this
    /// machine cannot see
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// With Sentinels: how long to wait for a master, and for replicas to confirm a load
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

    /// The key of the filter
    #[arg(long, value_name = "KEY")]
    key: String,

    /// Number of keys over which the filter is spread: for load; dump and check find out by themselves
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)))]
    shards: Option<u32>,
}

/// The environment variable that may hold the URL.
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
