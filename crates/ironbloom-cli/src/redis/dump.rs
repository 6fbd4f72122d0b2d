//! `ironbloom redis dump`: a filter from a server to a file.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;
use ironbloom::format::dump::{DumpWriter, Family};
use ironbloom::format::native::replace_file;
use ironbloom::format::redis_chunks::{ChunkHeader, ChunkSum, FIRST};

use super::TargetArgs;
use super::names::Name;
use super::scan::Scan;
use super::server::{Parts, Server};
use super::survey;
use crate::failure::Advice;
use crate::progress::Progress;
use crate::report::{self, Cell};
use crate::{Outcome, dash, file, number, output};

/// Save a filter from a server to a file
///
/// A filter in one of Ironbloom's layouts is saved as a filter file, for `ironbloom check` and the other commands. A filter in
/// RedisBloom's layout, a sharded one, or a cuckoo filter that grows is saved as a dump, for `ironbloom redis load`. Dumps of
/// RedisBloom's layout can be loaded into any server whose module knows it: that is how filters move from RedisBloom to
/// Valkey. With --dry-run, nothing is saved: all filters of the server are listed, with what would become of them, and the keys
/// of RedisBloom's other types, which move in other ways. The exit status is 1 if something cannot.
#[derive(Args)]
#[command(
    mut_arg("key", |arg| arg
        .required(false)
        .required_unless_present("dry_run")
        .default_value_if("dry_run", "true", "*")
        .help("The key of the filter; with --dry-run a pattern of keys: ? is any character, * any number of characters")),
    after_help = "\
Examples:
  ironbloom redis dump --dry-run --url redis://old:6379
  ironbloom redis dump -o seen.ibf --key seen --url redis://127.0.0.1:6379
  ironbloom redis dump -o seen.ibd --key seen --url redis://old:6379
  ironbloom redis load seen.ibd --key seen --url redis://new:6379"
)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Where to write
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value_if("dry_run", "true", "-"),
        required = false,
        required_unless_present = "dry_run"
    )]
    output: PathBuf,

    /// Save nothing: say of every filter whether it can move to another server
    #[arg(long, conflicts_with_all = ["output", "shards"])]
    dry_run: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A filter that is written to all the time cannot be read consistently in pieces.
const TRIES: u32 = 3;

/// The filter was changed while it was read. The copy may lack keys of pieces that came early.
#[derive(Debug)]
struct Changed;

impl Error for Changed {}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the filter was changed while it was read")
    }
}

pub(crate) fn run(args: &DumpArgs) -> Result<Outcome> {
    if args.dry_run {
        return survey::run(&mut args.target.connect()?, &args.target.key, args.json);
    }
    dash::require_file(
        &args.output,
        "a dump needs a file: it starts again if the filter changes meanwhile",
    )?;
    file::refuse_unwritable(&args.output)?;
    if std::fs::metadata(&args.output).is_ok_and(|found| !found.is_file()) {
        return Err(anyhow!("{}: is not a file", args.output.display()));
    }
    let mut server = args.target.connect()?;
    for _ in 0..TRIES {
        match save(args, &mut server) {
            Err(error) if error.is::<Changed>() => {}
            Err(error) => return Err(error),
            Ok(bytes) => {
                let name = args.output.display().to_string();
                if args.json {
                    let key = Cell::text(args.target.key.clone());
                    let record = vec![
                        ("key", key),
                        ("file", Cell::text(name)),
                        ("size", Cell::bytes(bytes)),
                    ];
                    output::print(&report::show_record(&record, true))?;
                } else {
                    output::note(&format!("{name}: {}", number::bytes(bytes)));
                }
                return Ok(Outcome::Found);
            }
        }
    }
    Err(Advice::error(
        format!("{}: {Changed}, {TRIES} times", args.target.key),
        "stop its writers meanwhile, or copy it and dump the copy: COPY key copy",
    ))
}

/// Returns the size of the file.
fn save(args: &DumpArgs, server: &mut Server) -> Result<u64> {
    let parts = server.parts(&args.target.name()?, args.target.shards)?;
    replace(&args.output, |out| match parts.keys.as_slice() {
        [key] if parts.shards.is_none() => save_one(server, parts.family, key, out),
        _ => save_shards(server, &parts, out),
    })?;
    Ok(std::fs::metadata(&args.output)?.len())
}

/// Writes a complete file, or leaves the old one.
fn replace(path: &Path, write: impl FnOnce(&mut Output<'_>) -> Result<()>) -> Result<()> {
    let mut failure = None;
    let written = file::replacing(path, || {
        let written = replace_file(path, |file| {
            let mut out = Output {
                file: BufWriter::new(file),
                path,
                progress: Progress::new(None),
                bytes: 0,
            };
            let result = write(&mut out).and_then(|()| Ok(out.file.flush()?));
            result.map_err(|error| {
                failure = Some(error);
                io::Error::other("not written")
            })
        });
        written.map_err(|error| file::named(path, error))
    });
    failure.map_or(written, Err)
}

/// The file that is being written.
struct Output<'f> {
    file: BufWriter<&'f File>,
    path: &'f Path,
    progress: Progress,
    bytes: u64,
}

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })?;
        self.bytes += written as u64;
        self.progress.update_bytes(self.bytes);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A filter under one key: its file if it is in one of our layouts, else a dump.
fn save_one(server: &mut Server, family: Family, name: &Name, out: &mut Output<'_>) -> Result<()> {
    let mut scan = Scan::new(family, name.key());
    let header = first_chunk(server, &mut scan, name)?;
    let ChunkHeader::File(announcement) = ChunkHeader::parse(&header) else {
        let mut dump = DumpWriter::new(out, None)?;
        return save_chunks(server, family, name, &header, scan, &mut dump);
    };
    let mut sum = ChunkSum::default();
    while let Some((_, bytes)) = scan.next(server)? {
        sum.take(&bytes);
        out.write_all(&bytes)?;
    }
    if sum.announcement() == announcement { Ok(()) } else { Err(Changed.into()) }
}

fn save_shards(server: &mut Server, parts: &Parts, out: &mut Output<'_>) -> Result<()> {
    let mut dump = DumpWriter::new(out, parts.shards)?;
    for name in &parts.keys {
        let mut scan = Scan::new(parts.family, name.key());
        let header = first_chunk(server, &mut scan, name)?;
        save_chunks(server, parts.family, name, &header, scan, &mut dump)?;
    }
    Ok(())
}

fn first_chunk(server: &mut Server, scan: &mut Scan<'_>, name: &Name) -> Result<Vec<u8>> {
    let first = scan.next(server)?;
    first.map(|(_, header)| header).ok_or_else(|| {
        Advice::error(
            format!("{}: the server gives nothing of this filter", name.key()),
            "RedisBloom does not dump cuckoo filters that are empty; CF.RESERVE makes one",
        )
    })
}

/// The chunks after the first, as they come.
fn save_chunks(
    server: &mut Server,
    family: Family,
    name: &Name,
    header: &[u8],
    mut scan: Scan<'_>,
    dump: &mut DumpWriter<&mut Output<'_>>,
) -> Result<()> {
    dump.chunk(family, FIRST, header)?;
    let mut sum = ChunkSum::default();
    while let Some((iterator, bytes)) = scan.next(server)? {
        sum.take(&bytes);
        dump.chunk(family, iterator, &bytes)?;
    }
    dump.end_filter(family)?;
    let is_same = match ChunkHeader::parse(header) {
        ChunkHeader::File(announced) | ChunkHeader::Files(announced) => {
            announced == sum.announcement()
        }
        ChunkHeader::RedisBloom => {
            first_chunk(server, &mut Scan::new(family, name.key()), name)? == header
        }
    };
    if is_same { Ok(()) } else { Err(Changed.into()) }
}
