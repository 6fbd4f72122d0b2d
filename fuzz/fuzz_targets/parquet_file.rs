//! Bytes as a Parquet file, and as the footer of one: its filters are found or refused.
#![no_main]

use std::io::Cursor;

use ironbloom::format::parquet_file::ParquetFile;
use libfuzzer_sys::fuzz_target;

fn exercise(bytes: &[u8]) {
    let Ok(mut file) = ParquetFile::open(Cursor::new(bytes)) else { return };
    for column in 0..file.columns.len().min(8) {
        for group in 0..file.groups.len().min(8) {
            let _ = file.filter(group, column);
        }
        for value in ["7", "-1.5", "2026-11-18", "text", "0x00"] {
            if let Ok(groups) = file.may_hold(column, value) {
                assert_eq!(groups.len(), file.groups.len());
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    exercise(bytes);
    let footer = [bytes, &(bytes.len() as u32).to_le_bytes(), b"PAR1"].concat();
    exercise(&footer);
});
