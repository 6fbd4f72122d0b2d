//! `-`: a filter from standard input, or to standard output.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use ironbloom::Persist as _;
use ironbloom::any::AnyFilter;

use crate::failure::Advice;
use crate::input::InputArgs;
use crate::output;

/// Returns true for the name of standard input or output. A file of that name is `./-`.
pub(crate) fn is(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an output in messages.
pub(crate) fn output_name(path: &Path) -> String {
    if is(path) { "standard output".to_owned() } else { shown(path) }
}

/// The name of a filter that is read, in messages.
pub(crate) fn input_name(path: &Path) -> String {
    if is(path) { "standard input".to_owned() } else { shown(path) }
}

/// The name of a file, without a secret that it has if it is a URL.
fn shown(path: &Path) -> String {
    crate::output::without_secrets(&path.display().to_string()).into_owned()
}

/// All of standard input.
pub(crate) fn bytes() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
    Ok(bytes)
}

/// The filter on standard input.
pub(crate) fn read() -> Result<AnyFilter> {
    AnyFilter::read_from(io::stdin().lock()).context("standard input")
}

/// The filter to standard output.
pub(crate) fn write(filter: &AnyFilter) -> Result<()> {
    output::write_file(|out| filter.write_to(out))
}

/// Keeps the bytes of a filter off the screen, before any work is done.
pub(crate) fn refuse_terminal() -> Result<()> {
    if io::stdout().is_terminal() {
        return Err(Advice::error(
            "standard output is a terminal, which cannot display a filter",
            "name a file, or redirect the output: > FILE",
        ));
    }
    Ok(())
}

/// Refuses `-`, for this reason, where only a file will do.
pub(crate) fn require_file(path: &Path, why: &str) -> Result<()> {
    if is(path) { Err(Advice::error(why, "a file of the name - is given as ./-")) } else { Ok(()) }
}

/// Standard output can be a filter or a report.
pub(crate) fn refuse_report(output: &Path, json: bool) -> Result<()> {
    if is(output) && json {
        return Err(anyhow!("--json and -o - both write to standard output"));
    }
    Ok(())
}

/// Standard input can be a filter or keys.
pub(crate) fn refuse_both(filter: &Path, input: &InputArgs) -> Result<()> {
    if is(filter) && input.reads_stdin() {
        return Err(Advice::error(
            "standard input cannot be both the filter and the keys",
            "give the keys as a file",
        ));
    }
    Ok(())
}
