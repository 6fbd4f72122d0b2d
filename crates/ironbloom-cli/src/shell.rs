//! `ironbloom completions` and `ironbloom man`: what a shell and `man` want to know.

use std::ffi::OsStr;

use anyhow::Result;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::{Outcome, Program, output};

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = "\
Example:
  ironbloom completions bash > ~/.local/share/bash-completion/completions/ironbloom")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page
#[derive(Args)]
#[command(after_help = "\
Examples:
  ironbloom man | man -l -
  ironbloom man check | man -l -")]
pub(crate) struct ManArgs {
    /// The page of one command instead of the program's
    command: Option<String>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Program::command(), "ironbloom", &mut text);
    output::write(&text)?;
    Ok(Outcome::Found)
}

pub(crate) fn man(args: &ManArgs) -> Result<Outcome> {
    let mut program = Program::command();
    program.build();
    let page = match &args.command {
        None => program,
        Some(name) => program
            .find_subcommand(name)
            .cloned()
            .map(|command| command.name(format!("ironbloom-{name}").leak() as &str))
            .ok_or_else(|| anyhow::anyhow!("no command {name:?}"))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    output::write(&text)?;
    Ok(Outcome::Found)
}

/// A parser of one of several names, which shells complete.
#[derive(Clone)]
pub(crate) struct Named<T> {
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<&'static str>,
}

/// Names for an option whose values are words of a list.
pub(crate) fn named<T>(
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<&'static str>,
) -> Named<T> {
    Named { parse, names }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}
