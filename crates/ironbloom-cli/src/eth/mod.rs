//! `ironbloom eth`: logs blooms of Ethereum blocks.

mod headers;
mod index;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use ironbloom::ethereum::{LogQuery, LogsBloom};

use crate::failure::Advice;
use crate::{Outcome, output};

/// Ethereum's logs blooms: ask one, or index those of a chain
#[derive(Args)]
pub(crate) struct EthArgs {
    #[command(subcommand)]
    command: EthCommand,
}

#[derive(Subcommand)]
enum EthCommand {
    Check(CheckArgs),
    Index(index::IndexArgs),
    Find(index::FindArgs),
}

/// Filter of logs, as `eth_getLogs` has it.
#[derive(Args)]
pub(super) struct QueryArgs {
    /// An address, 20 bytes in hexadecimal. Repeat, or separate by commas: any of them
    #[arg(long, value_name = "HEX", value_delimiter = ',')]
    address: Vec<String>,

    /// A topic, 32 bytes in hexadecimal. The first is that of position 0, the next of position 1, and so on: all must be
    /// there. Several separated by commas: any of them. `any`: this position does not matter
    #[arg(long, value_name = "HEX")]
    topic: Vec<String>,
}

impl QueryArgs {
    /// The question, which must ask for something.
    pub(super) fn query(&self) -> Result<LogQuery> {
        let mut query = LogQuery::default().any_of(keys(&self.address, "an address", 20)?);
        let mut is_open = self.address.is_empty();
        for topics in self.topic.iter().filter(|topics| *topics != "any") {
            let topics: Vec<&str> = topics.split(',').collect();
            query = query.any_of(keys(&topics, "a topic", 32)?);
            is_open = false;
        }
        if is_open {
            return Err(Advice::error(
                "nothing to look for",
                "give an --address, a --topic, or both",
            ));
        }
        Ok(query)
    }
}

/// The bytes of some hexadecimal texts of the same length.
fn keys(texts: &[impl AsRef<str>], what: &str, bytes: usize) -> Result<Vec<Vec<u8>>> {
    let parse = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let key: Option<Vec<u8>> = digits
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        key.filter(|key| digits.len() == 2 * bytes && key.len() == bytes)
            .ok_or_else(|| anyhow!("{text:?} is not {what}: {bytes} bytes in hexadecimal digits"))
    };
    texts.iter().map(|text| parse(text.as_ref().trim())).collect()
}

/// Ask whether a block may hold a log, by its logs bloom
///
/// The exit status is 0 if it may, and 1 if it certainly does not.
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom eth check 0x00…00 --address 0xdac17f958d2ee523a2206206994597c13d831ec7")]
struct CheckArgs {
    /// The logs bloom: 512 hexadecimal digits after 0x
    #[arg(value_name = "BLOOM")]
    bloom: String,

    #[command(flatten)]
    query: QueryArgs,
}

pub(crate) fn run(args: &EthArgs) -> Result<Outcome> {
    match &args.command {
        EthCommand::Check(args) => check(args),
        EthCommand::Index(args) => index::build(args),
        EthCommand::Find(args) => index::find(args),
    }
}

fn check(args: &CheckArgs) -> Result<Outcome> {
    let bloom = LogsBloom::parse(args.bloom.trim().as_bytes()).filter(|_| args.bloom.len() >= 512);
    let bloom = bloom
        .ok_or_else(|| anyhow!("not a logs bloom: 512 hexadecimal digits after 0x are one"))?;
    let found = args.query.query()?.matches(&bloom);
    output::print(if found { "may be there\n" } else { "certainly not there\n" })?;
    Ok(if found { Outcome::Found } else { Outcome::NotFound })
}
