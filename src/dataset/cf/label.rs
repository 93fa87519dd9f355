//! Labels: a date and a time of day as they are written, which a calendar gives a place in time.
//!
//! Timestamp columns hold the labels of every calendar as if they were proleptic Gregorian, text columns hold them as ISO 8601. What counts days
//! between labels (bins, days of the year, distances) goes through the *instant*: nanoseconds since day 0 of the label's own calendar.

use super::calendar::{Calendar, Date};
use super::time::{DAY, Scanner, TimeUnit, iso_text, parse_zone, split_since};

/// A date and the nanoseconds since its midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Label {
    /// The date, of whatever calendar.
    pub(crate) date: Date,
    /// Nanoseconds since midnight, less than a day has.
    pub(crate) nanoseconds: i64,
}

impl Label {
    /// The label of a timestamp.
    ///
    /// For example, 1 second is 1970-01-01T00:00:01; `None` where the year is beyond what a [`Calendar`] counts, which no timestamp's is.
    #[must_use]
    pub(crate) fn of_timestamp(value: i64, unit: TimeUnit) -> Option<Self> {
        let (day, rest) = unit.split(i128::from(value))?;
        Some(Self { date: Calendar::ProlepticGregorian.date(day)?, nanoseconds: rest * unit.nanoseconds() })
    }

    /// The label as a timestamp of `unit`.
    ///
    /// `None` where the proleptic Gregorian calendar lacks the date, where the count of units is not whole, or has no `i64`.
    #[must_use]
    pub(crate) fn timestamp(self, unit: TimeUnit) -> Option<i64> {
        unit.whole(self.instant(Calendar::ProlepticGregorian)?)
    }

    /// The label rounded down to whole units.
    #[must_use]
    pub(crate) fn floor(self, unit: TimeUnit) -> Self {
        Self { nanoseconds: self.nanoseconds - self.nanoseconds % unit.nanoseconds(), ..self }
    }

    /// Nanoseconds since day 0 of `calendar`; `None` where the calendar lacks the date.
    #[must_use]
    pub(crate) fn instant(self, calendar: Calendar) -> Option<i128> {
        Some(i128::from(calendar.day_number(self.date)?) * i128::from(DAY) + i128::from(self.nanoseconds))
    }

    /// The label of an instant of `calendar`; `None` where it is beyond the years that the calendar counts.
    #[must_use]
    pub(crate) fn at(instant: i128, calendar: Calendar) -> Option<Self> {
        let (day, nanoseconds) = TimeUnit::Nanosecond.split(instant)?;
        Some(Self { date: calendar.date(day)?, nanoseconds })
    }

    /// `YYYY-MM-DDTHH:MM:SS`, with a fraction only where there is one: as text columns hold it.
    #[must_use]
    pub(crate) fn text(self) -> String {
        iso_text(self.date, self.nanoseconds, TimeUnit::Nanosecond)
    }
}

/// A date or a part of one, perhaps with a time of day and a zone, as people write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    date: Date,
    /// From midnight of the date to the instant in UTC, which the zone may move out of the day.
    nanoseconds: i64,
}

impl Written {
    /// Reads `YYYY`, `YYYY-MM` and `YYYY-MM-DD`, and after the last blanks or `T` and `hh`, `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f`, perhaps with a
    /// zone (`Z`, `UTC`, `GMT`, `+hh`, `+hhmm`, `+hh:mm`). What is left out is first: January, day 1, midnight.
    ///
    /// Leading zeros may be missing. A year of more than four digits needs a sign. `None` for anything else.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let upper = text.trim().to_ascii_uppercase();
        let mut scanner = Scanner(&upper);
        let negative = scanner.eat('-');
        let signed = negative || scanner.eat('+');
        let digits = scanner.digits().filter(|d| if signed { (4..=12).contains(&d.len()) } else { d.len() <= 4 })?;
        let year: i64 = digits.parse().ok()?;
        let mut date = Date { year: if negative { -year } else { year }, month: 1, day: 1 };
        for part in [&mut date.month, &mut date.day] {
            if scanner.0.is_empty() {
                break;
            }
            *part = scanner.after('-').filter(|d| d.len() <= 2)?.parse().ok()?;
        }
        if scanner.0.is_empty() {
            return Some(Self { date, nanoseconds: 0 });
        }
        let after_date = scanner.0;
        if !after_date.starts_with(|c: char| c == 'T' || c.is_whitespace()) {
            return None;
        }
        let time = scanner.time_of_day().filter(|_| scanner.0 != after_date)?;
        let zone = parse_zone(scanner.0.trim_start())?;
        Some(Self { date, nanoseconds: time - zone })
    }

    /// The label in UTC; `None` where `calendar` lacks the date.
    #[must_use]
    pub(crate) fn label(self, calendar: Calendar) -> Option<Label> {
        let midnight = Label { date: self.date, nanoseconds: 0 }.instant(calendar)?;
        if (0..DAY).contains(&self.nanoseconds) {
            // The date stays as it is written, also in a year 0 that the calendar lacks.
            return Some(Label { date: self.date, nanoseconds: self.nanoseconds });
        }
        Label::at(midnight + i128::from(self.nanoseconds), calendar)
    }
}

/// The calendar of a column of timestamps, by its attributes `units` and `calendar`: the proleptic Gregorian one where it is no CF time.
#[must_use]
pub(crate) fn calendar_of_timestamps(units: Option<&str>, calendar: Option<&str>) -> Calendar {
    if units.is_none_or(|u| split_since(u).is_none()) {
        return Calendar::ProlepticGregorian;
    }
    calendar.and_then(Calendar::parse).unwrap_or(Calendar::Standard)
}

/// The calendar of a column of text, by the same attributes; `None` where the text is no CF time.
#[must_use]
pub(crate) fn calendar_of_text(units: Option<&str>, calendar: Option<&str>) -> Option<Calendar> {
    units.and_then(split_since)?;
    calendar.and_then(Calendar::parse).filter(|c| c.is_text() || *c == Calendar::Julian)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, calendar: Calendar) -> Option<String> {
        Written::parse(text)?.label(calendar).map(Label::text)
    }

    #[test]
    fn parts_left_out_are_first() {
        for (text, label) in [
            ("2000", "2000-01-01T00:00:00"),
            ("2000-02", "2000-02-01T00:00:00"),
            ("2000-02-29", "2000-02-29T00:00:00"),
            (" 2000-2-9 ", "2000-02-09T00:00:00"),
            ("2000-02-29T12", "2000-02-29T12:00:00"),
            ("2000-02-29 12:30", "2000-02-29T12:30:00"),
            ("2000-02-29t12:30:05.250z", "2000-02-29T12:30:05.25"),
            ("2000-02-29T00:30:00+01:00", "2000-02-28T23:30:00"),
            ("2000-02-29T23:30:00-0100", "2000-03-01T00:30:00"),
            ("850", "0850-01-01T00:00:00"),
            ("-0044-03-15", "-0044-03-15T00:00:00"),
            ("+12000-01-01", "12000-01-01T00:00:00"),
        ] {
            assert_eq!(read(text, Calendar::ProlepticGregorian).as_deref(), Some(label), "{text}");
        }
        assert_eq!(read("2000-02-30T23:30-01", Calendar::Day360).as_deref(), Some("2000-03-01T00:30:00"));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "abc",
            "20000101",
            "2000-",
            "2000-060",
            "2000-01-",
            "2000-01-01-12",
            "2000-01-01T",
            "2000 12",
            "2000-01-01x",
            "2000-01-01T25",
            "2000-01-01T12:00 CET",
            "+1-1-1",
            "٢٠٠٠",
            "-",
            "99999",
        ] {
            assert_eq!(Written::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_dates_of_the_calendar_have_labels() {
        for (text, calendar, exists) in [
            ("2000-02-30", Calendar::Day360, true),
            ("2000-01-31", Calendar::Day360, false),
            ("2000-02-29", Calendar::NoLeap, false),
            ("2001-02-29", Calendar::AllLeap, true),
            ("1900-02-29", Calendar::Julian, true),
            ("1582-10-10", Calendar::Standard, false),
            ("1582-10-10", Calendar::ProlepticGregorian, true),
            ("2000-13-01", Calendar::Standard, false),
        ] {
            assert_eq!(read(text, calendar).is_some(), exists, "{text} {calendar:?}");
        }
    }

    #[test]
    fn timestamps_of_every_unit() {
        let label = |text: &str| Written::parse(text).unwrap().label(Calendar::ProlepticGregorian).unwrap();
        assert_eq!(label("2300-01-01").timestamp(TimeUnit::Second), Some(10_413_792_000));
        assert_eq!(label("2300-01-01").timestamp(TimeUnit::Nanosecond), None);
        assert_eq!(label("1969-12-31T23:59:59.5").timestamp(TimeUnit::Second), None);
        assert_eq!(label("1969-12-31T23:59:59.5").timestamp(TimeUnit::Millisecond), Some(-500));
        assert_eq!(
            Label { date: Date { year: 2000, month: 2, day: 30 }, nanoseconds: 0 }.timestamp(TimeUnit::Second),
            None
        );
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            for value in [i64::MIN, -1, 0, 1, i64::MAX] {
                assert_eq!(Label::of_timestamp(value, unit).and_then(|l| l.timestamp(unit)), Some(value), "{unit:?}");
            }
        }
    }

    #[test]
    fn calendars_of_columns() {
        let since = Some("days since 1850-01-01");
        assert_eq!(calendar_of_timestamps(since, Some("NoLeap")), Calendar::NoLeap);
        assert_eq!(calendar_of_timestamps(since, None), Calendar::Standard);
        assert_eq!(calendar_of_timestamps(None, Some("noleap")), Calendar::ProlepticGregorian);
        assert_eq!(calendar_of_text(since, Some("360_day")), Some(Calendar::Day360));
        assert_eq!(calendar_of_text(since, Some("noleap")), None);
        assert_eq!(calendar_of_text(Some("1"), Some("360_day")), None);
    }
}
