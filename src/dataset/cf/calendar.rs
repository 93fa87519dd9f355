//! The calendars of CF: which dates exist, and how many days lie between them.
//!
//! A date is a label. Each calendar counts its days without gaps ([`Calendar::day_number`]), so that adding days is integer arithmetic in every
//! calendar, and turns a count back into its label ([`Calendar::date`]). The year of a day is estimated from the mean length of a year, which is
//! never off by more than one, and then corrected by the exact first day of that year.

use std::fmt::{self, Display, Formatter};

/// A calendar of the CF conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calendar {
    /// Julian up to 4 October 1582, Gregorian from 15 October 1582, which is the next day. The default of CF.
    Standard,
    /// The Gregorian calendar, also for the years before it was introduced.
    ProlepticGregorian,
    /// A leap year every four years.
    Julian,
    /// No leap years: 365 days a year.
    NoLeap,
    /// Only leap years: 366 days a year.
    AllLeap,
    /// Twelve months of 30 days.
    Day360,
}

/// A date as a label: whether it exists, and on which day it falls, only a [`Calendar`] can say.
///
/// Dates of one calendar sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    /// Year; negative before our era, see [`Calendar::has_year_zero`].
    pub(crate) year: i64,
    /// Month, from 1.
    pub(crate) month: u32,
    /// Day of the month, from 1.
    pub(crate) day: u32,
}

/// `YYYY-MM-DD`, as in ISO 8601: at least four digits of the year, after its sign if it is negative.
impl Display for Date {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.year < 0 { "-" } else { "" };
        write!(f, "{sign}{:04}-{:02}-{:02}", self.year.unsigned_abs(), self.month, self.day)
    }
}

/// First Gregorian date of [`Calendar::Standard`].
const FIRST_GREGORIAN: Date = Date { year: 1582, month: 10, day: 15 };

/// Last Julian date of [`Calendar::Standard`]: the day before [`FIRST_GREGORIAN`].
const LAST_JULIAN: Date = Date { year: 1582, month: 10, day: 4 };

/// Day number of [`FIRST_GREGORIAN`]. From here on, [`Calendar::Standard`] and [`Calendar::ProlepticGregorian`] agree in dates and day numbers.
pub(super) const FIRST_GREGORIAN_DAY: i64 = -141_427;

/// Years beyond this have no day numbers. It is 170 times what a timestamp in seconds can hold, and keeps every product below inside of an `i64`.
const MAX_YEAR: i64 = 50_000_000_000_000;

/// Days beyond this are beyond [`MAX_YEAR`] in every calendar.
const MAX_DAY: i64 = MAX_YEAR * 367;

impl Calendar {
    /// The calendar of a CF `calendar` attribute, in any letter case; `None` for a name that CF does not define or that stands for no calendar.
    ///
    /// For example, `NoLeap` for both `noleap` and `365_DAY`, and `None` for `none`.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "standard" | "gregorian" => Self::Standard,
            "proleptic_gregorian" => Self::ProlepticGregorian,
            "julian" => Self::Julian,
            "noleap" | "365_day" => Self::NoLeap,
            "all_leap" | "366_day" => Self::AllLeap,
            "360_day" => Self::Day360,
            _ => return None,
        })
    }

    /// The name that CF prefers, for example `standard` for what may be written `gregorian`.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::ProlepticGregorian => "proleptic_gregorian",
            Self::Julian => "julian",
            Self::NoLeap => "noleap",
            Self::AllLeap => "all_leap",
            Self::Day360 => "360_day",
        }
    }

    /// Whether labels are always ISO text, since every year has dates that the Gregorian calendar lacks: `true` for [`Self::Day360`] and
    /// [`Self::AllLeap`].
    #[must_use]
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Day360 | Self::AllLeap)
    }

    /// Whether year 0 comes before year 1, as in astronomy and ISO 8601.
    ///
    /// [`Self::Standard`] and [`Self::Julian`] have no such year, as in cftime: 31 December -1 is followed by 1 January 1. Year 0 is understood
    /// there as another spelling of year -1, but never given back.
    #[must_use]
    pub(crate) fn has_year_zero(self) -> bool {
        !matches!(self, Self::Standard | Self::Julian)
    }

    /// Day count of a date, without gaps inside of the calendar.
    ///
    /// Day 0 is 1970-01-01, but in [`Self::Julian`], which counts the same days as the Gregorian calendar and calls day 0 1969-12-19.
    ///
    /// `None` where the calendar has no such date, or its year is beyond ±50 000 000 000 000. For example, 1 March 1970 is day 59 in most
    /// calendars and day 60 in `Day360` and `AllLeap`; 30 February exists in `Day360` only, and 10 October 1582 not in `Standard`.
    #[must_use]
    pub(crate) fn day_number(self, date: Date) -> Option<i64> {
        let known = (-MAX_YEAR..=MAX_YEAR).contains(&date.year)
            && (1..=self.days_in_month(date.year, date.month)).contains(&date.day);
        let lost = self == Self::Standard && date > LAST_JULIAN && date < FIRST_GREGORIAN;
        if !known || lost {
            return None;
        }
        let rule = self.rule(date >= FIRST_GREGORIAN);
        let earlier_months: u32 = (1..date.month).map(|month| rule.days_in_month(date.year, month)).sum();
        Some(rule.first_day(rule.counted_year(date.year)) + i64::from(earlier_months) + i64::from(date.day) - 1)
    }

    /// Date of a day count: the inverse of [`Self::day_number`].
    ///
    /// `None` where the year is beyond ±50 000 000 000 000. For example, day -141 428 is 1582-10-04 in `Standard`, and 1582-10-14 in `ProlepticGregorian`.
    #[must_use]
    pub(crate) fn date(self, day_number: i64) -> Option<Date> {
        if !(-MAX_DAY..=MAX_DAY).contains(&day_number) {
            return None;
        }
        let rule = self.rule(day_number >= FIRST_GREGORIAN_DAY);
        let counted = rule.year_of(day_number);
        let year = if counted <= 0 && !rule.has_year_zero() { counted - 1 } else { counted };
        if !(-MAX_YEAR..=MAX_YEAR).contains(&year) {
            return None;
        }
        let mut day = u32::try_from(day_number - rule.first_day(counted)).ok()?;
        for month in 1..=12 {
            let length = rule.days_in_month(year, month);
            if day < length {
                return Some(Date { year, month, day: day + 1 });
            }
            day -= length;
        }
        None
    }

    /// Length of a month in days, 0 for a month outside of 1 to 12: for example 28 for February 2000 in [`Self::NoLeap`].
    ///
    /// October 1582 of [`Self::Standard`] counts 31, as in cftime, though ten of its days do not exist.
    #[must_use]
    pub(crate) fn days_in_month(self, year: i64, month: u32) -> u32 {
        match month {
            1..=12 if self == Self::Day360 => 30,
            2 if self.is_leap(year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        }
    }

    /// Months from the beginning of year 0 to the month of `date`, without a gap at the beginning of our era.
    #[must_use]
    pub(crate) fn month_number(self, date: Date) -> i64 {
        self.counted_year(date.year).saturating_mul(12).saturating_add(i64::from(date.month) - 1)
    }

    /// The `day` of the month with this number, or the last one of a month that is too short: the inverse of [`Self::month_number`].
    ///
    /// `None` where the year is beyond ±50 000 000 000 000.
    #[must_use]
    pub(crate) fn date_in_month(self, month_number: i64, day: u32) -> Option<Date> {
        let counted = month_number.div_euclid(12);
        let year = if counted <= 0 && !self.has_year_zero() { counted - 1 } else { counted };
        let month = u32::try_from(month_number.rem_euclid(12)).ok()? + 1;
        let date = Date { year, month, day: day.min(self.days_in_month(year, month)) };
        (-MAX_YEAR..=MAX_YEAR).contains(&year).then_some(date)
    }

    /// Whether every seventh of its days falls on the same day of the week, as history counts them.
    #[must_use]
    pub(crate) fn has_weeks(self) -> bool {
        matches!(self, Self::Standard | Self::ProlepticGregorian | Self::Julian)
    }

    /// Whether its dates are those of the proleptic Gregorian calendar, from 1582-10-15 on.
    #[must_use]
    pub(crate) fn is_gregorian(self) -> bool {
        matches!(self, Self::Standard | Self::ProlepticGregorian)
    }

    /// The calendar that rules before (`gregorian` = `false`) or after the reform of 1582: another one only for [`Self::Standard`].
    fn rule(self, gregorian: bool) -> Self {
        match self {
            Self::Standard if gregorian => Self::ProlepticGregorian,
            Self::Standard => Self::Julian,
            other => other,
        }
    }

    /// Whether February has 29 days.
    fn is_leap(self, year: i64) -> bool {
        let rule = self.rule(year > FIRST_GREGORIAN.year);
        let year = rule.counted_year(year);
        match rule {
            Self::NoLeap | Self::Day360 => false,
            Self::AllLeap => true,
            Self::Julian => year % 4 == 0,
            Self::ProlepticGregorian | Self::Standard => year % 4 == 0 && (year % 100 != 0 || year % 400 == 0),
        }
    }

    /// A year of a label in a count that has year 0, so that differences are right across the beginning of our era.
    fn counted_year(self, year: i64) -> i64 {
        if year < 0 && !self.has_year_zero() { year + 1 } else { year }
    }

    /// Day number of 1 January of a counted year.
    fn first_day(self, year: i64) -> i64 {
        let past = year - 1;
        let fourth = past.div_euclid(4);
        match self {
            Self::NoLeap => 365 * (year - 1970),
            Self::AllLeap => 366 * (year - 1970),
            Self::Day360 => 360 * (year - 1970),
            // 1 January 1 is two days earlier than in the Gregorian calendar.
            Self::Julian => 365 * past + fourth - 719_164,
            Self::ProlepticGregorian | Self::Standard => {
                365 * past + fourth - past.div_euclid(100) + past.div_euclid(400) - 719_162
            }
        }
    }

    /// Counted year of a day number.
    fn year_of(self, day: i64) -> i64 {
        let (years, days) = match self {
            Self::NoLeap => (1, 365),
            Self::AllLeap => (1, 366),
            Self::Day360 => (1, 360),
            Self::Julian => (4, 1_461),
            Self::ProlepticGregorian | Self::Standard => (400, 146_097),
        };
        let guess = 1970 + (day * years).div_euclid(days);
        if day < self.first_day(guess) {
            guess - 1
        } else if day >= self.first_day(guess + 1) {
            guess + 1
        } else {
            guess
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Calendar; 6] = [
        Calendar::Standard,
        Calendar::ProlepticGregorian,
        Calendar::Julian,
        Calendar::NoLeap,
        Calendar::AllLeap,
        Calendar::Day360,
    ];

    fn date(year: i64, month: u32, day: u32) -> Date {
        Date { year, month, day }
    }

    /// The date after another one, found without day numbers.
    fn next(calendar: Calendar, date: Date) -> Date {
        let Date { year, month, day } = date;
        if calendar == Calendar::Standard && date == LAST_JULIAN {
            FIRST_GREGORIAN
        } else if day < calendar.days_in_month(year, month) {
            Date { day: day + 1, ..date }
        } else if month < 12 {
            Date { year, month: month + 1, day: 1 }
        } else if year == -1 && !calendar.has_year_zero() {
            Date { year: 1, month: 1, day: 1 }
        } else {
            Date { year: year + 1, month: 1, day: 1 }
        }
    }

    #[test]
    fn names_in_any_case() {
        for calendar in ALL {
            assert_eq!(Calendar::parse(calendar.name()), Some(calendar));
            assert_eq!(Calendar::parse(&calendar.name().to_uppercase()), Some(calendar));
        }
        assert_eq!(Calendar::parse("Gregorian"), Some(Calendar::Standard));
        assert_eq!(Calendar::parse("365_day"), Some(Calendar::NoLeap));
        assert_eq!(Calendar::parse("366_Day"), Some(Calendar::AllLeap));
        for name in ["none", "", "utc", "noleap "] {
            assert_eq!(Calendar::parse(name), None, "{name}");
        }
    }

    #[test]
    fn only_calendars_without_a_gregorian_february_are_text() {
        assert_eq!(ALL.map(Calendar::is_text), [false, false, false, false, true, true]);
    }

    #[test]
    fn days_follow_each_other_from_year_minus_900_to_2500() {
        for calendar in ALL {
            let mut expected = date(-900, 1, 1);
            let mut day = calendar.day_number(expected).unwrap();
            while expected.year < 2500 {
                assert_eq!(calendar.date(day), Some(expected), "{calendar:?} {day}");
                assert_eq!(calendar.day_number(expected), Some(day), "{calendar:?} {expected:?}");
                expected = next(calendar, expected);
                day += 1;
            }
        }
    }

    #[test]
    fn far_days_come_back_or_have_no_date() {
        for calendar in ALL {
            let first = calendar.day_number(date(-MAX_YEAR, 1, 1)).unwrap();
            let last =
                calendar.day_number(date(MAX_YEAR, 12, if calendar == Calendar::Day360 { 30 } else { 31 })).unwrap();
            for day in [first, first / 3, -106_751_991_167_300, 106_751_991_167_300, last / 3, last] {
                assert_eq!(
                    calendar.date(day).and_then(|date| calendar.day_number(date)),
                    Some(day),
                    "{calendar:?} {day}"
                );
            }
            for day in [i64::MIN, -MAX_DAY - 1, -MAX_DAY, first - 1, last + 1, MAX_DAY, MAX_DAY + 1, i64::MAX] {
                assert_eq!(calendar.date(day), None);
            }
            for year in [i64::MIN, -MAX_YEAR - 1, MAX_YEAR + 1, i64::MAX] {
                assert_eq!(calendar.day_number(date(year, 1, 1)), None);
            }
        }
    }

    #[test]
    fn day_zero() {
        for calendar in ALL {
            let expected = if calendar == Calendar::Julian { date(1969, 12, 19) } else { date(1970, 1, 1) };
            assert_eq!(calendar.date(0), Some(expected));
        }
        assert_eq!(ALL.map(|calendar| calendar.day_number(date(1970, 3, 1))), [59, 59, 72, 59, 60, 60].map(Some));
    }

    #[test]
    fn the_reform_of_1582() {
        assert_eq!(Calendar::Standard.day_number(FIRST_GREGORIAN), Some(FIRST_GREGORIAN_DAY));
        assert_eq!(Calendar::ProlepticGregorian.day_number(FIRST_GREGORIAN), Some(FIRST_GREGORIAN_DAY));
        assert_eq!(Calendar::Standard.day_number(LAST_JULIAN), Some(FIRST_GREGORIAN_DAY - 1));
        assert_eq!(Calendar::ProlepticGregorian.date(FIRST_GREGORIAN_DAY - 1), Some(date(1582, 10, 14)));
        for day in 5..15 {
            assert_eq!(
                ALL.map(|calendar| calendar.day_number(date(1582, 10, day)).is_some()),
                [false, true, true, true, true, true]
            );
        }
    }

    /// Measured with cftime 1.6.6: `cftime.datetime(...)` and its `daysinmonth`.
    #[test]
    fn leap_days_are_those_of_cftime() {
        let years = [-5, -4, -1, 1, 4, 1500, 1582, 1900, 2000];
        let leap = |calendar: Calendar| years.map(|year| calendar.days_in_month(year, 2) == 29);
        let mixed = [true, false, true, false, true, true, false, false, true];
        assert_eq!(leap(Calendar::Standard), mixed);
        assert_eq!(leap(Calendar::Julian), [true, false, true, false, true, true, false, true, true]);
        assert_eq!(leap(Calendar::ProlepticGregorian), [false, true, false, false, true, false, false, false, true]);
        assert_eq!(leap(Calendar::NoLeap), [false; 9]);
        assert_eq!(leap(Calendar::AllLeap), [true; 9]);
        assert_eq!(ALL.map(|calendar| calendar.days_in_month(1582, 10)), [31, 31, 31, 31, 31, 30]);
    }

    #[test]
    fn dates_that_do_not_exist() {
        for calendar in ALL {
            for (month, day) in [(0, 1), (13, 1), (1, 0), (1, 32), (4, 31), (2, 31), (u32::MAX, 1), (1, u32::MAX)] {
                assert_eq!(calendar.day_number(date(2001, month, day)), None, "{calendar:?} {month} {day}");
            }
            assert_eq!(calendar.day_number(date(2000, 2, 30)).is_some(), calendar == Calendar::Day360);
            assert_eq!(calendar.days_in_month(i64::MIN, 0) + calendar.days_in_month(i64::MAX, 13), 0);
        }
        assert_eq!(Calendar::NoLeap.day_number(date(2000, 2, 29)), None);
        assert_eq!(Calendar::Day360.day_number(date(2000, 1, 31)), None);
    }

    #[test]
    fn dates_are_written_as_in_iso_8601() {
        for (date, text) in
            [(date(-1, 2, 3), "-0001-02-03"), (date(0, 12, 31), "0000-12-31"), (date(12345, 1, 1), "12345-01-01")]
        {
            assert_eq!(date.to_string(), text);
        }
    }

    #[test]
    fn year_zero_is_the_year_before_year_one() {
        for calendar in ALL {
            let new_year = calendar.day_number(date(1, 1, 1)).unwrap();
            let last = calendar.date(new_year - 1).unwrap();
            assert_eq!(last.year, if calendar.has_year_zero() { 0 } else { -1 });
            assert_eq!(calendar.day_number(Date { year: 0, ..last }), Some(new_year - 1));
        }
    }
}
