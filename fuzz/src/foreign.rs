//! Filters of other programs: what is read is asked, saved and written again.

use ironbloom::format::foreign::{Format, with_form};
use ironbloom::hash::KeyForm;
use ironbloom::{AnyFilter, Foreign, Persist};

/// Reads bytes as a format. What is accepted keeps its answers through our files, and is written as the same bytes.
pub fn exercise_foreign(format: Format, bytes: &[u8]) {
    match format.read(bytes) {
        Ok(filter) => exercise_read(format, filter, bytes),
        Err(error) => assert!(error.offset <= bytes.len() as u64, "{error}"),
    }
    if let Some(other) = Format::detect(bytes) {
        assert!(other.read(bytes).is_ok() || may_be_damaged(other), "{other}");
    }
}

/// Formats that are recognised by their first bytes, or whose bits after the last one are checked only when all are read.
fn may_be_damaged(format: Format) -> bool {
    let by_magic = matches!(format, Format::Dcso | Format::RedisBloom);
    by_magic || matches!(format, Format::BitsAndBlooms | Format::DataSketches)
}

fn exercise_read(format: Format, filter: AnyFilter, bytes: &[u8]) {
    assert!(filter.estimate_rate() >= 0.0 && filter.estimate_rate() <= 1.0);
    let _ = filter.estimate_len();
    let again = AnyFilter::from_bytes(&filter.to_bytes()).expect("what is read can be saved");
    assert_eq!(again, filter);
    if let Ok(written) = format.write(&filter) {
        assert_eq!(format.read(&written).as_ref(), Ok(&filter), "{} bytes", bytes.len());
    }
    let AnyFilter::Foreign(filter) = filter else { return };
    for form in filter.rule().forms().collect::<Vec<KeyForm>>() {
        let known = filter.clone().with_form(form).expect("a form of this rule");
        exercise_form(known);
    }
    let _ = with_form(filter.into(), Some(KeyForm::Int));
}

fn exercise_form(mut filter: Foreign) {
    let keys = ["0x00ff", "7", "-0", "", "alice", "0xdac17f958d2ee523a2206206994597c13d831ec7"];
    for key in keys {
        let Ok(found) = filter.contains(key) else { continue };
        let mut batch = [!found; 3];
        filter.contains_keys(&[key; 3], &mut batch).expect("asked before");
        assert_eq!(batch, [found; 3]);
        if filter.insert(key).is_ok() && !key.is_empty() {
            assert_eq!(filter.contains(key), Ok(true));
        }
    }
}
