//! `ironbloom redis`: filters between files and servers. One file a command.
//!
//! ```text
//! load ──► upload.rs ──┐                        ┌── .ibf file, its bytes as they are
//! dump ◄── chunks.rs ──┼── server.rs ── BF./CF. ┤
//! check ───────────────┤   or cluster           └── dump_file.rs: chunks of RedisBloom's own layout, or several shards
//! info ◄── advice.rs ──┘
//! ```
//!
//! A filter goes over the wire as the chunks of SCANDUMP and LOADCHUNK (`chunks.rs`). One logical filter may be spread over
//! a cluster in shards (`names.rs`).

mod advice;
mod check;
mod chunks;
mod dump;
mod dump_file;
mod info;
mod load;
mod local;
mod names;
mod server;
mod upload;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};

use self::names::{MOST_SHARDS, Name};
use self::server::Server;
pub(crate) use self::server::without_password;
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
  ironbloom redis load --lines urls.txt --shards 8 --url redis://10.0.0.1:6379 --key seen"
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
    /// The server, or any server of a cluster: redis://[user:password@]host[:port][/database] or unix:///path. If
    /// not given, the variable IRONBLOOM_REDIS_URL, which other users of this machine cannot see
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Which filter on which server.
#[derive(Args)]
struct TargetArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The key that the filter has there
    #[arg(long, value_name = "KEY")]
    key: String,

    /// The filter is spread over so many keys; load makes them, dump and check find out themselves
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SHARDS)))]
    shards: Option<u32>,
}

/// Where the URL may be, too.
const URL_VARIABLE: &str = "IRONBLOOM_REDIS_URL";

impl ServerArgs {
    fn connect(&self) -> Result<Server> {
        match (&self.url, std::env::var(URL_VARIABLE)) {
            (Some(url), _) => Server::connect(url),
            (None, Ok(url)) => Server::connect(&url),
            (None, Err(_)) => Err(Advice::error(
                "which server?",
                format!("give --url redis://host:port, or set {URL_VARIABLE}"),
            )),
        }
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
