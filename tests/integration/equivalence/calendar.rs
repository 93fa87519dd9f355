//! Dates of the CF calendars, by counting days one at a time.

use std::fmt;

/// A moment: the label of its day, and nanoseconds into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    year: i64,
    month: i64,
    day: i64,
    rest: i128,
}

const DAY: i128 = 86_400_000_000_000;

/// Whether dates of the calendar are shown as text.
pub(crate) fn is_text(calendar: &str) -> bool {
    matches!(calendar, "360_day" | "all_leap" | "366_day")
}

/// Nanoseconds of a unit of numpy or of CF.
pub(crate) fn unit_nanoseconds(unit: &str) -> i128 {
    match unit {
        "D" | "days" => DAY,
        "h" | "hours" => DAY / 24,
        "m" | "minutes" => DAY / 1440,
        "s" | "seconds" => 1_000_000_000,
        "ms" | "milliseconds" => 1_000_000,
        "us" | "microseconds" => 1_000,
        "ns" | "nanoseconds" => 1,
        other => panic!("unit {other}"),
    }
}

fn days_of_month(calendar: &str, year: i64, month: i64) -> i64 {
    let gregorian = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leap = match calendar {
        "360_day" => return 30,
        "noleap" | "365_day" => false,
        "all_leap" | "366_day" => true,
        "julian" => year % 4 == 0,
        "standard" | "gregorian" if year < 1582 => year % 4 == 0,
        _ => gregorian,
    };
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

impl Moment {
    /// The next day.
    fn forward(&mut self, calendar: &str) {
        self.day += 1;
        if matches!(calendar, "standard" | "gregorian") && (self.year, self.month, self.day) == (1582, 10, 5) {
            self.day = 15;
        }
        if self.day > days_of_month(calendar, self.year, self.month) {
            (self.month, self.day) = (self.month + 1, 1);
        }
        if self.month > 12 {
            (self.year, self.month) = (self.year + 1, 1);
        }
    }

    /// The day before.
    fn backward(&mut self, calendar: &str) {
        self.day -= 1;
        if matches!(calendar, "standard" | "gregorian") && (self.year, self.month, self.day) == (1582, 10, 14) {
            self.day = 4;
        }
        if self.day < 1 {
            self.month -= 1;
            if self.month < 1 {
                (self.year, self.month) = (self.year - 1, 12);
            }
            self.day = days_of_month(calendar, self.year, self.month);
        }
    }

    /// Whether the Gregorian calendar has this label.
    pub(crate) fn is_gregorian(&self) -> bool {
        self.day <= days_of_month("proleptic_gregorian", self.year, self.month)
    }

    /// Nanoseconds from 1970 to the label, read as a Gregorian one.
    pub(crate) fn nanoseconds(&self) -> i128 {
        let year_days = |year| (1..=12).map(|m| days_of_month("proleptic_gregorian", year, m)).sum::<i64>();
        let mut days = (1970..self.year).map(year_days).sum::<i64>() - (self.year..1970).map(year_days).sum::<i64>();
        days += (1..self.month).map(|m| days_of_month("proleptic_gregorian", self.year, m)).sum::<i64>() + self.day - 1;
        i128::from(days) * DAY + self.rest
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.rest / 1_000_000_000;
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            self.year,
            self.month,
            self.day,
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )?;
        match self.rest % 1_000_000_000 {
            0 => Ok(()),
            fraction => write!(f, ".{}", format!("{fraction:09}").trim_end_matches('0')),
        }
    }
}

/// The moment `offset` eighths of a unit after a reference: `units` is `days since 2000-01-01 12:00:00`.
pub(crate) fn moment_of_eighths(offset: i128, units: &str, calendar: &str) -> Moment {
    let (unit, reference) = units.split_once(" since ").unwrap();
    let (date, clock) = reference.split_once(['T', ' ']).unwrap_or((reference, "00:00:00"));
    let numbers = |text: &str, by: char| text.split(by).map(|n| n.parse().unwrap()).collect::<Vec<i64>>();
    let (date, clock) = (numbers(date, '-'), numbers(clock, ':'));
    let since_midnight = i128::from((clock[0] * 60 + clock[1]) * 60 + clock[2]) * 1_000_000_000;
    let total = offset * unit_nanoseconds(unit) / 8 + since_midnight;
    let mut moment = Moment { year: date[0], month: date[1], day: date[2], rest: total.rem_euclid(DAY) };
    for _ in 0..total.div_euclid(DAY) {
        moment.forward(calendar);
    }
    for _ in total.div_euclid(DAY)..0 {
        moment.backward(calendar);
    }
    moment
}

#[test]
fn known_dates() {
    let text = |days: i128, units: &str, calendar: &str| moment_of_eighths(days * 8, units, calendar).to_string();
    assert_eq!(text(725_738, "days since 0001-01-01", "standard"), "1988-01-01T00:00:00");
    assert_eq!(text(725_738, "days since 0001-01-01", "proleptic_gregorian"), "1988-01-03T00:00:00");
    assert_eq!(text(-1, "days since 1582-10-15", "gregorian"), "1582-10-04T00:00:00");
    assert_eq!(text(59, "days since 2000-01-01", "360_day"), "2000-02-30T00:00:00");
    assert_eq!(text(59, "days since 2001-01-01", "all_leap"), "2001-02-29T00:00:00");
    assert_eq!(text(-1, "hours since 2000-03-01T00:30:00", "noleap"), "2000-02-28T23:30:00");
    assert_eq!(moment_of_eighths(8, "days since 1969-12-31", "standard").nanoseconds(), 0);
}
