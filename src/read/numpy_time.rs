//! numpy's `datetime64` ticks as timestamps.

use crate::dataset::cf::{Calendar, Date, TimeUnit};
use crate::store::data_type::NumpyUnit;

const DAY: i128 = 86_400_000_000_000;

/// Ticks of `scale` units since 1970 in `target` units; finer ticks are floored, as numpy's casts do.
///
/// # Errors
/// A clause, where the target cannot hold the instant.
pub(crate) fn timestamp(ticks: i64, unit: NumpyUnit, scale: u32, target: TimeUnit) -> Result<i64, String> {
    let units = i128::from(ticks) * i128::from(scale);
    instant(units, unit, target).ok_or_else(|| {
        format!("datetime64 value {ticks} is outside the range of its timestamps; choose another option `time_unit`")
    })
}

fn instant(units: i128, unit: NumpyUnit, target: TimeUnit) -> Option<i64> {
    let per_target: i128 = match target {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let nanoseconds = match unit {
        NumpyUnit::Year => first_of(units, 0)?.checked_mul(DAY)?,
        NumpyUnit::Month => first_of(units.div_euclid(12), units.rem_euclid(12))?.checked_mul(DAY)?,
        NumpyUnit::Week => units.checked_mul(7 * DAY)?,
        NumpyUnit::Day => units.checked_mul(DAY)?,
        NumpyUnit::Hour => units.checked_mul(3_600_000_000_000)?,
        NumpyUnit::Minute => units.checked_mul(60_000_000_000)?,
        NumpyUnit::Second => units.checked_mul(1_000_000_000)?,
        NumpyUnit::Millisecond => units.checked_mul(1_000_000)?,
        NumpyUnit::Microsecond => units.checked_mul(1_000)?,
        NumpyUnit::Nanosecond | NumpyUnit::Generic => units,
        NumpyUnit::Picosecond => units.div_euclid(1_000),
        NumpyUnit::Femtosecond => units.div_euclid(1_000_000),
        NumpyUnit::Attosecond => units.div_euclid(1_000_000_000),
    };
    i64::try_from(nanoseconds.div_euclid(per_target)).ok()
}

/// Days from 1970-01-01 to the first of a month, `years` after 1970 and `months` (0…11) after January.
fn first_of(years: i128, months: i128) -> Option<i128> {
    let day = |year: i64, month: u32| Calendar::ProlepticGregorian.day_number(Date { year, month, day: 1 });
    let year = i64::try_from(years.checked_add(1970)?).ok()?;
    let month = u32::try_from(months).ok()? + 1;
    Some(i128::from(day(year, month)?) - i128::from(day(1970, 1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_scales() {
        let us = |t, u, s| timestamp(t, u, s, TimeUnit::Microsecond).unwrap();
        assert_eq!(us(-1, NumpyUnit::Month, 1), -31 * 86_400_000_000);
        assert_eq!(us(30, NumpyUnit::Year, 1), 946_684_800_000_000);
        assert_eq!(us(2, NumpyUnit::Hour, 6), 12 * 3_600_000_000);
        assert_eq!(us(-1, NumpyUnit::Nanosecond, 1), -1);
        assert!(timestamp(i64::MAX, NumpyUnit::Day, 1, TimeUnit::Nanosecond).is_err());
    }
}
