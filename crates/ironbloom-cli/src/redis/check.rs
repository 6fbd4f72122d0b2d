//! `ironbloom redis check`: which keys may be in a filter on a server?

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::route::shard_of;
use redis::{Cmd, Value};

use super::TargetArgs;
use super::local::key_hash;
use super::server::{Found, Parts, Server, family_command};
use crate::check::{AnswerArgs, Answers};
use crate::input::{self, InputArgs, Keys};
use crate::{Outcome, file};

/// Print the keys that may be in a filter on a server
///
/// Like `ironbloom check`, with the same options and exit status: 0 if any key may be present, 1 if none is, 2 after an
/// error. Keys are sent to the server in batches.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom redis check new.txt --key seen --url redis://127.0.0.1:6379
  ironbloom redis check --absent new.txt --key seen --url redis://127.0.0.1:6379
  printf %s alice | ironbloom redis check -0 --key users --url redis://127.0.0.1:6379")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// Keys per command: enough to make its cost negligible, few enough to leave the server time for others.
const BATCH: usize = 500;

pub(crate) fn run(args: &CheckArgs) -> Result<Outcome> {
    let mut server = args.target.connect()?;
    let parts = server.parts(&args.target.name()?, args.target.shards)?;
    let input = args.answer.input(&args.input)?;
    let mut answers = Answers::new(&args.answer, &input);
    let shards = parts.shards;
    input::for_each_block(
        &input,
        1,
        move |keys| route(keys, shards),
        |keys, route| {
            let found = ask(&mut server, &parts, keys, &route)?;
            answers.take(keys, &found)
        },
    )?;
    answers.finish()
}

/// The places of the keys of each shard.
fn route(keys: &Keys, shards: Option<u32>) -> Result<Vec<Vec<usize>>> {
    let Some(shards) = shards else { return Ok(vec![(0..keys.len()).collect()]) };
    let mut places = vec![Vec::new(); shards as usize];
    for (place, hash) in file::hashes(keys, key_hash())?.into_iter().enumerate() {
        places[shard_of(hash, shards) as usize].push(place);
    }
    Ok(places)
}

/// A flag for each key. All commands are on their way before the first reply is waited for.
fn ask(server: &mut Server, parts: &Parts, keys: &Keys, route: &[Vec<usize>]) -> Result<Vec<bool>> {
    let bytes: Vec<&[u8]> = keys.iter().collect();
    let shards = || parts.keys.iter().zip(route).filter(|(_, places)| !places.is_empty());
    let mut commands: Vec<Cmd> = Vec::new();
    for (name, places) in shards() {
        for batch in places.chunks(BATCH) {
            let mut command = family_command(parts.family, "MEXISTS", name.key());
            batch.iter().for_each(|&place| {
                command.arg(bytes[place]);
            });
            commands.push(command);
        }
        // A filter that is gone answers "absent" to everything: it must still be there after its last answer.
        let mut still = redis::cmd("TYPE");
        still.arg(name.key());
        commands.push(still);
    }
    let mut replies = server.ask_all(commands)?.into_iter();
    let mut found = vec![false; bytes.len()];
    for (name, places) in shards() {
        for batch in places.chunks(BATCH) {
            let answers: Vec<bool> = reply(replies.next())?;
            if answers.len() != batch.len() {
                return Err(anyhow!(
                    "{}: {} answers for {} keys",
                    name.key(),
                    answers.len(),
                    batch.len()
                ));
            }
            batch.iter().zip(answers).for_each(|(&place, answer)| found[place] = answer);
        }
        if Found::of_type(&reply::<String>(replies.next())?) != Found::Filter(parts.family) {
            return Err(anyhow!("{}: the filter was removed while it was asked", name.key()));
        }
    }
    Ok(found)
}

fn reply<T: redis::FromRedisValue>(value: Option<Value>) -> Result<T> {
    let value =
        value.ok_or_else(|| anyhow!("the server sent fewer replies than it received commands"))?;
    redis::from_redis_value(value)
        .map_err(|error| anyhow!("the server's reply makes no sense: {error}"))
}
