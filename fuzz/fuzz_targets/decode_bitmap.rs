//! A bitmap: the capacity is the bound, the payload its bits. Exact, so everything is compared with its members.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{Bitmap, Kind};
use ironbloom_fuzz::{Forged, exercise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let forged = Forged { hash: 2, seed: 0, ..forged };
    let Some((bitmap, file)) = forged.decode::<Bitmap>(Kind::Bitmap, 0) else { return };
    exercise(AnyFilter::Bitmap(bitmap.clone()), &file);
    let members: Vec<u64> = bitmap.iter().collect();
    assert!(members.iter().all(|&index| index < bitmap.bound() && bitmap.contains(index)));
    let ranks = bitmap.ranks();
    for (rank, &member) in members.iter().enumerate().step_by(members.len() / 16 + 1) {
        assert_eq!(ranks.select(rank as u64), Some(member));
        assert_eq!((ranks.rank(member), bitmap.rank(member)), (rank as u64, rank as u64));
    }
    assert_eq!(ranks.rank(u64::MAX), members.len() as u64);
    assert_eq!(ranks.select(members.len() as u64), None);
    let mut other = bitmap.clone();
    other.difference_with(&bitmap).unwrap();
    assert!(other.is_empty() && other.iter().next().is_none());
    other.symmetric_difference_with(&bitmap).unwrap();
    assert!(other.iter().eq(members));
    other.clear();
    assert_eq!(other.rank(u64::MAX), 0);
});
