//! Days of the Gregorian calendar, even before it was in use.
//!
//! Years begin in March here, so that the leap day is the last of its year: day y of such a year is
//! (153 m + 2) / 5 + d - 1 with m months since March. An era of 400 years has 146097 days.

const DAYS_PER_ERA: i64 = 146_097;
/// From the first of March of year 0 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Days since 1970-01-01.
pub(crate) fn days_from_civil(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(if month <= 2 { year - 1 } else { year });
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let since_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * since_march + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970
}

/// Year, month and day of a number of days since 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let since_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * since_march + 2) / 5 + 1;
    let month = if since_march < 10 { since_march + 3 } else { since_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// `2024-01-31`, of a number of days since 1970-01-01.
pub fn show_date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    let (sign, year) = if year < 0 { ("-", -year) } else { ("", year) };
    format!("{sign}{year:04}-{month:02}-{day:02}")
}

pub(crate) fn days_in(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_days_of_many_years_follow_one_another() {
        let mut expected = days_from_civil(-400, 1, 1);
        for year in -400..2600 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    assert_eq!(days_from_civil(year, month, day), expected);
                    assert_eq!(civil_from_days(expected), (year.into(), month, day));
                    expected += 1;
                }
            }
        }
    }
}
