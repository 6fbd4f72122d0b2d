//! Filters of other programs as the commands use them: recognised by content, asked by key.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use ironbloom::any::{AnyFilter, KeyError, KeyHash, Refused};
use ironbloom::format::foreign::{Format, with_form};
use ironbloom::format::{dump, parquet_file};
use ironbloom::hash::KeyForm;
use ironbloom::{DecodeError, FileError, Persist as _};

use crate::failure::Advice;
use crate::input::{self, BadKey, InputArgs, Keys};
use crate::secret::SecretArgs;
use crate::shell::{self, Named};
use crate::{dash, file};

/// Properties that another program's file does not record.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct ForeignArgs {
    /// Format of a filter of another program [default: recognised by content]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true)]
    pub(crate) format: Option<Format>,

    /// What keys are, where the filter does not say it: text or long (integers); of another program's filter also chars, int,
    /// double or hex
    #[arg(long, value_name = "FORM", value_parser = forms(), hide_possible_values = true)]
    pub(crate) keys: Option<KeyForm>,
}

/// The names of all formats.
pub(crate) fn format_names() -> String {
    Format::all().map(Format::name).collect::<Vec<_>>().join(", ")
}

/// For an option that takes the name of a format.
pub(crate) fn formats() -> Named<Format> {
    shell::named(parse_format, || Format::all().map(Format::name).collect())
}

/// For an option that takes what keys are.
pub(crate) fn forms() -> Named<KeyForm> {
    shell::named(parse_form, || KeyForm::ALL.map(KeyForm::name).to_vec())
}

pub(crate) fn parse_format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| format!("not a format; use one of {}", format_names()))
}

fn parse_form(text: &str) -> Result<KeyForm, String> {
    let name = if matches!(text, "bytes" | "string") { "text" } else { text };
    let forms = KeyForm::ALL.map(KeyForm::name).join(", ");
    let form = KeyForm::ALL.into_iter().find(|form| form.name() == name);
    form.ok_or_else(|| format!("not a form of keys; use one of {forms}"))
}

/// Reads a filter: one of ours, or of any other program.
pub(crate) fn load(path: &Path, args: ForeignArgs, secret: &SecretArgs) -> Result<AnyFilter> {
    let filter = match (args.format, own(path, secret)?) {
        (None, Own::Filter(filter)) => *filter,
        (Some(format), Own::Filter(_)) => {
            return Err(anyhow!("{}: is an .ibf file, not {format}", dash::input_name(path)));
        }
        (format, Own::Other(bytes)) => {
            let bytes = unpacked(bytes).with_context(|| dash::input_name(path))?;
            read(path, format, &bytes)?
        }
    };
    if !is_foreign(&filter) {
        file::key_type(args.keys)?;
        return Ok(filter);
    }
    with_form(filter, args.keys).map_err(|mismatch| {
        Advice::error(
            format!("{}: its keys are not {}", dash::input_name(path), mismatch.right),
            format!("they can be: {}", mismatch.left),
        )
    })
}

/// A file that is one of ours, or the bytes of another.
enum Own {
    Filter(Box<AnyFilter>),
    Other(Vec<u8>),
}

fn own(path: &Path, secret: &SecretArgs) -> Result<Own> {
    let key = secret.key()?;
    if dash::is(path) {
        let bytes = dash::bytes()?;
        let read = match key {
            Some(key) => AnyFilter::from_bytes_with_key(&bytes, key),
            None => AnyFilter::from_bytes(&bytes),
        };
        return match read {
            Err(DecodeError::NotAFilter) => Ok(Own::Other(bytes)),
            read => Ok(Own::Filter(read.context("standard input")?.into())),
        };
    }
    let read = match key {
        Some(key) => AnyFilter::load_with_key(path, key),
        None => AnyFilter::load(path),
    };
    match read {
        Err(FileError::Decode { error: DecodeError::NotAFilter, .. }) => {
            let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
            Ok(Own::Other(bytes))
        }
        read => Ok(Own::Filter(read?.into())),
    }
}

/// The bytes without gzip around them.
fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).context("gzip")?;
    Ok(unpacked)
}

fn read(path: &Path, format: Option<Format>, bytes: &[u8]) -> Result<AnyFilter> {
    let name = || dash::input_name(path);
    if let Some(format) = format.or_else(|| Format::detect(bytes)) {
        return format.read(bytes).with_context(name);
    }
    if parquet_file::is_parquet(bytes) {
        return Err(Advice::error(
            format!("{}: is a Parquet file, which may have many filters", name()),
            "`ironbloom parquet blooms` lists them, `ironbloom parquet check` asks them",
        ));
    }
    if bytes.starts_with(&dump::MAGIC) {
        return Err(Advice::error(
            format!("{}: is a dump of several filters, or of one in our layout", name()),
            "`ironbloom redis load` loads it into a server",
        ));
    }
    if bytes.starts_with(&ironbloom::ethereum::MAGIC) {
        return Err(Advice::error(
            format!("{}: is an index of logs blooms", name()),
            "`ironbloom eth find` asks it",
        ));
    }
    Err(Advice::error(
        format!("{}: not an Ironbloom filter, nor recognised as one of another program", name()),
        format!(
            "if it is a filter, say of which program, and what is wrong with it is said in return: --format with one of {} \
             (LevelDB's must be named always). Filters are named before the files of keys",
            format_names()
        ),
    ))
}

/// The format of a file that a command wanted to be one of ours.
pub(crate) fn format_of(path: &Path) -> Option<Format> {
    /// More than this is not read only to improve a message.
    const MOST: u64 = 1 << 28;
    let length = std::fs::metadata(path).ok()?.len();
    let bytes = (length <= MOST).then(|| std::fs::read(path).ok()).flatten()?;
    Format::detect(&unpacked(bytes).ok()?)
}

/// Returns true if a filter hashes keys as another program does, and is asked by key.
pub(crate) fn is_foreign(filter: &AnyFilter) -> bool {
    matches!(filter.key_hash(), KeyHash::Foreign(_))
}

/// Refuses to ask a filter whose key type is unknown.
pub(crate) fn require_form(path: &Path, filter: &AnyFilter) -> Result<()> {
    let AnyFilter::Foreign(filter) = filter else { return Ok(()) };
    if filter.form().is_some() {
        return Ok(());
    }
    let forms: Vec<&str> = filter.rule().forms().map(KeyForm::name).collect();
    Err(Advice::error(
        format!("{}: the file does not say what its keys are", dash::input_name(path)),
        format!("say it: --keys with one of {}", forms.join(", ")),
    ))
}

/// Asks for all keys of the input, and hands on the answers in order.
pub(crate) fn for_each_answer(
    input: &InputArgs,
    threads: usize,
    filter: AnyFilter,
    consume: impl FnMut(&Keys, Vec<bool>) -> Result<()>,
) -> Result<()> {
    let filter = Arc::new(filter);
    input::for_each_block(input, threads, move |keys| answers(&filter, keys), consume)
}

fn answers(filter: &AnyFilter, keys: &Keys) -> Result<Vec<bool>> {
    let keys: Vec<&[u8]> = keys.iter().collect();
    let mut found = vec![false; keys.len()];
    filter.try_contains_keys(&keys, &mut found).map_err(|(place, error)| bad_key(place, error))?;
    Ok(found)
}

/// Inserts all keys of the input; how many there were.
pub(crate) fn insert_all(input: &InputArgs, filter: &mut AnyFilter) -> Result<u64> {
    let mut read = 0;
    input::for_each_block(
        input,
        1,
        |_| Ok(()),
        |keys, ()| {
            for (place, key) in keys.iter().enumerate() {
                filter.insert(key).map_err(|refused| match refused {
                    Refused::Key(error) => bad_key(place, error),
                    other => other.into(),
                })?;
                read += 1;
            }
            Ok(())
        },
    )?;
    Ok(read)
}

fn bad_key(place: usize, error: KeyError) -> anyhow::Error {
    BadKey::error(place, file::shortened(error))
}
