//! Parts of labels, and what they are rounded down to, in every calendar.

use super::Label;
use super::calendar::{Calendar, Date};
use super::time::{DAY, HOUR, MINUTE, SECOND};

/// A part of a date or a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Year.
    Year,
    /// 1 to 4.
    Quarter,
    /// 1 to 12.
    Month,
    /// Day of the month.
    Day,
    /// 0 to 23.
    Hour,
    /// 0 to 59.
    Minute,
    /// 0 to 59.
    Second,
    /// Day of the year, from 1.
    DayOfYear,
    /// Day of the week, Sunday 0.
    DayOfWeek,
    /// Day of the week, Monday 1 to Sunday 7.
    IsoDayOfWeek,
    /// `DJF`, `MAM`, `JJA`, `SON`: months by their initials.
    Season,
    /// Days of the month that the date lies in.
    DaysInMonth,
    /// Days of the year that the date lies in.
    DaysInYear,
}

/// The names of [`Part`]s that people know, for messages.
pub(crate) const PARTS: &str =
    "year, quarter, month, day, hour, minute, second, doy, dow, isodow, season, days_in_month, days_in_year";

impl Part {
    /// The part of a name, in any letter case; `None` for a name that is none.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "year" | "years" => Self::Year,
            "quarter" | "quarters" | "qtr" => Self::Quarter,
            "month" | "months" => Self::Month,
            "day" | "days" => Self::Day,
            "hour" | "hours" => Self::Hour,
            "minute" | "minutes" => Self::Minute,
            "second" | "seconds" => Self::Second,
            "doy" | "dayofyear" => Self::DayOfYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "season" => Self::Season,
            "days_in_month" => Self::DaysInMonth,
            "days_in_year" => Self::DaysInYear,
            _ => return None,
        })
    }

    /// Whether dates of `calendar` have such a part: those without weeks have no days of the week.
    #[must_use]
    pub(crate) fn exists_in(self, calendar: Calendar) -> bool {
        calendar.has_weeks() || !matches!(self, Self::DayOfWeek | Self::IsoDayOfWeek)
    }

    /// The part of a label, for [`Self::Season`] the month; `None` where `calendar` lacks the date, or the number has no `i32`.
    ///
    /// For example, the `DayOfYear` of 1 March 2000 is 60 in `NoLeap` and 61 in `Standard`.
    #[must_use]
    pub(crate) fn of(self, label: Label, calendar: Calendar) -> Option<i32> {
        let Date { year, month, day } = label.date;
        let number = match self {
            Self::Year => year,
            Self::Quarter => i64::from(month.saturating_sub(1) / 3 + 1),
            Self::Month | Self::Season => i64::from(month),
            Self::Day => i64::from(day),
            Self::Hour => label.nanoseconds / HOUR,
            Self::Minute => label.nanoseconds / MINUTE % 60,
            Self::Second => label.nanoseconds / SECOND % 60,
            Self::DayOfYear => calendar.day_number(label.date)? - first_day(calendar, year)? + 1,
            // Day 0 is a Thursday.
            Self::DayOfWeek => (calendar.day_number(label.date)? + 4).rem_euclid(7),
            Self::IsoDayOfWeek => (calendar.day_number(label.date)? + 3).rem_euclid(7) + 1,
            Self::DaysInMonth => i64::from(calendar.days_in_month(year, month)),
            Self::DaysInYear => {
                let january = Date { year, month: 1, day: 1 };
                let next = calendar.date_in_month(calendar.month_number(january).checked_add(12)?, 1)?;
                calendar.day_number(next)? - first_day(calendar, year)?
            }
        };
        i32::try_from(number).ok()
    }
}

fn first_day(calendar: Calendar, year: i64) -> Option<i64> {
    calendar.day_number(Date { year, month: 1, day: 1 })
}

/// The season of a month, by the initials of its three months.
#[must_use]
pub(crate) fn season(month: i32) -> &'static str {
    match month {
        3..=5 => "MAM",
        6..=8 => "JJA",
        9..=11 => "SON",
        _ => "DJF",
    }
}

/// What a label is rounded down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Nanoseconds of a unit that divides a day.
    Clock(i64),
    /// Monday.
    Week,
    /// The first of so many months, which divide a year.
    Months(u32),
}

impl Precision {
    /// The precision of a name of `date_trunc`, in any letter case; `None` for a name that is none.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.trim().to_ascii_lowercase().as_str() {
            "microsecond" => Self::Clock(1_000),
            "millisecond" => Self::Clock(1_000_000),
            "second" => Self::Clock(SECOND),
            "minute" => Self::Clock(MINUTE),
            "hour" => Self::Clock(HOUR),
            "day" => Self::Clock(DAY),
            "week" => Self::Week,
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            _ => return None,
        })
    }

    /// The label rounded down; `None` where `calendar` lacks the date, or has no weeks.
    #[must_use]
    pub(crate) fn truncate(self, label: Label, calendar: Calendar) -> Option<Label> {
        let Date { year, month, .. } = label.date;
        Some(match self {
            Self::Clock(unit) => Label { nanoseconds: label.nanoseconds - label.nanoseconds % unit.max(1), ..label },
            Self::Week if calendar.has_weeks() => {
                let day = calendar.day_number(label.date)?;
                Label { date: calendar.date(day - (day + 3).rem_euclid(7))?, nanoseconds: 0 }
            }
            Self::Week => return None,
            Self::Months(months) => {
                let month = month - month.saturating_sub(1) % months.max(1);
                Label { date: Date { year, month, day: 1 }, nanoseconds: 0 }
            }
        })
    }
}

/// The width of a bin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stride {
    /// Nanoseconds, more than 0.
    Nanoseconds(i128),
    /// Months, more than 0.
    Months(i64),
}

impl Stride {
    /// The beginning of the bin that holds `label`, where one begins at `origin`; `None` where `calendar` lacks a date, or there is none so far away.
    ///
    /// For example, of the bins of 10 days from 2000-01-01 in `NoLeap`, one begins on 20 February 2000 and the next on 2 March.
    #[must_use]
    pub(crate) fn bin(self, label: Label, origin: Label, calendar: Calendar) -> Option<Label> {
        match self {
            Self::Nanoseconds(stride) => {
                let from = origin.instant(calendar)?;
                let past = label.instant(calendar)?.checked_sub(from)?.checked_rem_euclid(stride)?;
                Label::at(label.instant(calendar)? - past, calendar)
            }
            Self::Months(stride) => {
                let from = calendar.month_number(origin.date);
                let apart = calendar.month_number(label.date).checked_sub(from)?;
                let begin = |bins: i64| {
                    let month = from.checked_add(bins.checked_mul(stride)?)?;
                    let date = calendar.date_in_month(month, origin.date.day)?;
                    Some(Label { date, nanoseconds: origin.nanoseconds })
                };
                let bins = apart.checked_div_euclid(stride)?;
                // A bin may begin late in the month that the label lies early in.
                begin(bins).filter(|b| *b <= label).or_else(|| begin(bins.checked_sub(1)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Written;
    use super::*;

    fn label(text: &str, calendar: Calendar) -> Label {
        Written::parse(text).unwrap().label(calendar).unwrap()
    }

    /// Measured with cftime 1.6.6: `dayofyr`, `dayofwk` (Monday 0), `daysinmonth`, and the days between two first days of January.
    #[test]
    fn parts_are_those_of_cftime() {
        let parts = [Part::DayOfYear, Part::DaysInMonth, Part::DaysInYear, Part::Quarter, Part::Season];
        for (text, calendar, expected) in [
            ("2000-03-01", Calendar::Standard, [61, 31, 366, 1, 3]),
            ("2000-03-01", Calendar::NoLeap, [60, 31, 365, 1, 3]),
            ("2001-03-01", Calendar::AllLeap, [61, 31, 366, 1, 3]),
            ("2000-12-30", Calendar::Day360, [360, 30, 360, 4, 12]),
            ("1900-12-31", Calendar::Julian, [366, 31, 366, 4, 12]),
            ("1900-12-31", Calendar::Standard, [365, 31, 365, 4, 12]),
        ] {
            let label = label(text, calendar);
            assert_eq!(parts.map(|p| p.of(label, calendar)), expected.map(Some), "{text} {calendar:?}");
        }
        let weekday = |text, calendar| Part::DayOfWeek.of(label(text, calendar), calendar);
        assert_eq!(weekday("2000-01-01", Calendar::Standard), Some(6));
        assert_eq!(weekday("1969-12-19", Calendar::Julian), Some(4));
        assert_eq!(weekday("1582-10-04", Calendar::Standard), Some(4));
        assert_eq!(weekday("1582-10-15", Calendar::Standard), Some(5));
        assert!(!Part::DayOfWeek.exists_in(Calendar::NoLeap));
        let noon = label("2000-01-01T13:14:15.9", Calendar::NoLeap);
        assert_eq!(
            [Part::Hour, Part::Minute, Part::Second].map(|p| p.of(noon, Calendar::NoLeap)),
            [13, 14, 15].map(Some)
        );
        assert_eq!([12, 1, 3, 6, 11].map(season), ["DJF", "DJF", "MAM", "JJA", "SON"]);
    }

    #[test]
    fn truncation() {
        for (precision, text, calendar, expected) in [
            ("year", "2000-02-30T12", Calendar::Day360, "2000-01-01T00:00:00"),
            ("quarter", "2000-12-30", Calendar::Day360, "2000-10-01T00:00:00"),
            ("Month", "1900-02-29", Calendar::Julian, "1900-02-01T00:00:00"),
            ("week", "2000-01-01", Calendar::Standard, "1999-12-27T00:00:00"),
            ("day", "1969-12-31T23:59:59.5", Calendar::Standard, "1969-12-31T00:00:00"),
            ("second", "1969-12-31T23:59:59.5", Calendar::Standard, "1969-12-31T23:59:59"),
        ] {
            let truncated = Precision::parse(precision).unwrap().truncate(label(text, calendar), calendar);
            assert_eq!(truncated.map(Label::text).as_deref(), Some(expected), "{precision} {text}");
        }
        assert_eq!(Precision::Week.truncate(label("2000-01-01", Calendar::NoLeap), Calendar::NoLeap), None);
        assert_eq!(Precision::parse("decade"), None);
    }

    #[test]
    fn bins() {
        let days = |n: i64| Stride::Nanoseconds(i128::from(n * DAY));
        for (stride, text, origin, calendar, expected) in [
            (days(10), "2000-03-01", "2000-01-01", Calendar::NoLeap, "2000-02-20T00:00:00"),
            (days(10), "2000-03-02", "2000-01-01", Calendar::NoLeap, "2000-03-02T00:00:00"),
            (days(10), "1999-12-31", "2000-01-01", Calendar::NoLeap, "1999-12-22T00:00:00"),
            (days(7), "2000-02-30", "2000-02-29", Calendar::Day360, "2000-02-29T00:00:00"),
            (Stride::Months(3), "2000-02-10", "2000-01-15", Calendar::Day360, "2000-01-15T00:00:00"),
            (Stride::Months(3), "2000-01-10", "2000-01-15", Calendar::Day360, "1999-10-15T00:00:00"),
            (Stride::Months(1), "2001-03-01", "2001-01-31", Calendar::NoLeap, "2001-02-28T00:00:00"),
            (Stride::Months(12), "-0001-05-01", "0001-01-01", Calendar::Standard, "-0001-01-01T00:00:00"),
        ] {
            let begin = stride.bin(label(text, calendar), label(origin, calendar), calendar);
            assert_eq!(begin.map(Label::text).as_deref(), Some(expected), "{stride:?} {text}");
        }
        assert_eq!(
            Stride::Months(0).bin(label("2000", Calendar::NoLeap), label("2000", Calendar::NoLeap), Calendar::NoLeap),
            None
        );
    }
}
