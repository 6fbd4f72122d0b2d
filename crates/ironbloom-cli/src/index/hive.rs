//! The flags that say whether names of folders are columns.

use clap::{Args, ValueEnum};
use ironbloom_index::{HiveFolders, HiveOptions};

use super::names::Types;

/// How names of folders are read. An index remembers it.
#[derive(Args)]
#[command(next_help_heading = "Folders")]
pub(super) struct HiveArgs {
    /// Whether folders such as country=SE/day=2026-01-01/ are columns
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    hive: When,

    /// Types of columns in folders: day:date,code:text (bool, int, float, text, date, timestamp). Other types are inferred
    /// from all values: int, date, or else text
    #[arg(long, value_name = "COLUMN:TYPE,…", value_parser = Types::parse)]
    hive_types: Option<Types>,
}

#[derive(Clone, Copy, ValueEnum)]
enum When {
    /// If all tables are in folders of the same columns
    Auto,
    /// Always; other tables are an error
    On,
    /// Never
    Off,
}

impl HiveArgs {
    pub(super) fn options(&self) -> HiveOptions {
        let mut options = HiveOptions::default();
        options.folders = match self.hive {
            When::Auto => HiveFolders::Auto,
            When::On => HiveFolders::On,
            When::Off => HiveFolders::Off,
        };
        if let Some(Types(types)) = &self.hive_types {
            options.types.clone_from(types);
        }
        options
    }
}
