//! Which tables are meant by what is typed; `-` stands for a list on standard input.

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, Result};
use ironbloom_index::{Location, PathError, tables_at};

use crate::failure::Advice;

/// The tables that are meant, as [`tables_at`]; and for `-` what standard input lists, one per line. Each is named once.
pub(super) fn tables(given: &[Location]) -> Result<Vec<Location>> {
    let mut all = Vec::new();
    for location in given {
        if location.as_file() == Some(Path::new("-")) {
            all.extend(listed(std::io::stdin().lock())?);
        } else {
            all.push(location.clone());
        }
    }
    tables_at(&all).map_err(|error| match &error {
        PathError::Followed { format, .. } => {
            let flag = format.to_string().to_lowercase();
            let hint = format!("index it with --{flag}, or name its files");
            Advice::error(error.to_string(), hint)
        }
        _ => error.into(),
    })
}

fn listed(input: impl Read) -> Result<Vec<Location>> {
    let lines = BufReader::new(input).lines().collect::<Result<Vec<_>, _>>();
    let lines = lines.context("standard input")?;
    let lines = lines.iter().map(|line| line.strip_suffix('\r').unwrap_or(line));
    Ok(lines.filter(|line| !line.is_empty()).map(Location::from).collect())
}
