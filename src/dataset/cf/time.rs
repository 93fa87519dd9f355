//! CF time: numbers of `<unit> since <reference>` become labels of a calendar, and plain units become durations.
//!
//! 1. The reference is a day number of the calendar and a time of day, together an *origin* in nanoseconds since day 0.
//! 2. A stored number times the unit, plus the origin, is an exact rational number of nanoseconds, rounded once, half to even, to the unit of the
//!    column. That is the *instant*: a count of target units since day 0 of the calendar.
//! 3. Its day, by floor division, becomes the date of a label; what remains is the time of day.
//! 4. The label becomes text, or a timestamp where the same label exists in the proleptic Gregorian calendar.
//!
//! ```text
//! 725738.5 days since 1-1-1 (standard) → day 6574, 12 h → 1988-01-01T12:00:00 → 568 036 800 000 000 µs
//! ```
//!
//! Nothing is lost on the way: a float is taken as the binary fraction that it is, and all products are made in 128 bits.

use super::calendar::{Calendar, Date, FIRST_GREGORIAN_DAY};

pub(super) const SECOND: i64 = 1_000_000_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Unit of a timestamp column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Microseconds: the unit of every CF time, unless its own unit is the nanosecond or an option says otherwise.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
}

impl TimeUnit {
    /// Length of one unit in nanoseconds.
    pub(super) fn nanoseconds(self) -> i64 {
        match self {
            Self::Second => SECOND,
            Self::Millisecond => 1_000_000,
            Self::Microsecond => 1_000,
            Self::Nanosecond => 1,
        }
    }

    /// Units of a day.
    fn per_day(self) -> i64 {
        DAY / self.nanoseconds()
    }

    /// Nanoseconds as a count of units; `None` where it is not whole, or has no `i64`.
    pub(super) fn whole(self, nanoseconds: i128) -> Option<i64> {
        let unit = i128::from(self.nanoseconds());
        if nanoseconds % unit == 0 { i64::try_from(nanoseconds / unit).ok() } else { None }
    }

    /// An instant as day number and units since midnight; `None` where the day has no `i64`.
    pub(super) fn split(self, instant: i128) -> Option<(i64, i64)> {
        let per_day = i128::from(self.per_day());
        let day = i64::try_from(instant.div_euclid(per_day)).ok()?;
        Some((day, i64::try_from(instant.rem_euclid(per_day)).ok()?))
    }
}

/// A label as a count of target units since 1970-01-01T00:00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampLabel {
    /// The count of the same label, read as a proleptic Gregorian date.
    Timestamp(i64),
    /// The proleptic Gregorian calendar has no such label: for example 29 February 1900 of `julian`.
    NotGregorian,
}

/// How the numbers of one array are read as time: its `units` and `calendar`, and the unit of the column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeEncoding {
    calendar: Calendar,
    unit: TimeUnit,
    /// Nanoseconds of one stored unit.
    step: i64,
    /// Nanoseconds from day 0 of the calendar to the reference, in UTC.
    origin: i128,
    /// Whether labels have a year 0 that the calendar lacks, because the reference is written in it.
    adds_year_zero: bool,
    /// Instants from here on are timestamps as they are, since the calendar is the proleptic Gregorian one.
    gregorian_from: i128,
    /// Step and origin in target units, where both are whole: an integer needs no rounding then.
    linear: Option<(i64, i64)>,
}

impl TimeEncoding {
    /// Reads the attributes `units` and `calendar` of an array (`standard` where there is none) for a column of `time_unit`: microseconds where it
    /// is `None`, but nanoseconds for `nanoseconds since`.
    ///
    /// `None` where `units` is not of the form `<unit> since <reference>`, so that the array is no time at all: for example `days`.
    ///
    /// The reference is `YYYY-MM-DD`, optionally with `hh`, `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f` after blanks or `T`, optionally with a zone (`Z`, `UTC`,
    /// `GMT`, `+hh`, `+hhmm`, `+hh:mm`), whose offset is taken off. Numbers need no leading zeros: `1-1-1` will do.
    ///
    /// # Errors
    ///
    /// The reason, as a clause that says what is allowed, where
    /// * the unit has no fixed length (`months since`, `years since`; but a month has 30 days in calendar `360_day`) or is none of time,
    /// * CF does not know the calendar,
    /// * the reference cannot be read, or its date does not exist in the calendar.
    #[must_use]
    pub(crate) fn parse(
        units: &str,
        calendar: Option<&str>,
        time_unit: Option<TimeUnit>,
    ) -> Option<Result<Self, String>> {
        let (unit, reference) = split_since(units)?;
        let encoding = Self::new(unit, reference, calendar, time_unit);
        Some(encoding.map_err(|reason| format!("{reason}; option `decode_times` = `false` reads the raw numbers")))
    }

    fn new(unit: &str, reference: &str, calendar: Option<&str>, time_unit: Option<TimeUnit>) -> Result<Self, String> {
        let calendar = parse_calendar(calendar)?;
        let step = parse_step(unit, calendar)?;
        let Some(Reference { date, nanoseconds }) = Reference::parse(reference) else {
            return Err(format!(
                "reference `{reference}` is not of the form `YYYY-MM-DD hh:mm:ss.f +hh:mm`, of which the date is enough"
            ));
        };
        let Some(day) = calendar.day_number(date) else {
            return Err(format!(
                "reference `{reference}` is not a date of calendar `{}`, and only its dates are allowed",
                calendar.name()
            ));
        };
        let unit = time_unit.unwrap_or(if step == 1 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond });
        let origin = i128::from(day) * i128::from(DAY) + i128::from(nanoseconds);
        Ok(Self {
            calendar,
            unit,
            step,
            origin,
            adds_year_zero: date.year == 0 && !calendar.has_year_zero(),
            gregorian_from: match calendar {
                Calendar::ProlepticGregorian => i128::MIN,
                Calendar::Standard => i128::from(FIRST_GREGORIAN_DAY) * i128::from(unit.per_day()),
                _ => i128::MAX,
            },
            linear: unit.whole(i128::from(step)).zip(unit.whole(origin)),
        })
    }

    /// Calendar of the labels.
    #[must_use]
    pub(crate) fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// Unit of the timestamps, and the finest unit that text shows.
    #[must_use]
    pub(crate) fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Label of a stored integer, as a count of [`Self::unit`]; `None` where that count has no `i64`.
    ///
    /// For example, 59 `days since 2000-01-01` is 2000-02-29 in calendar `standard`, and 2000-03-01 in `noleap`: 951 868 800 000 000 µs.
    #[must_use]
    pub(crate) fn timestamp_from_int(&self, value: i128) -> Option<TimestampLabel> {
        if let Some(timestamp) = self.linear_timestamp(value) {
            return Some(TimestampLabel::Timestamp(timestamp));
        }
        self.timestamp(self.instant_from_int(value)?)
    }

    /// Label of a stored float, as a count of [`Self::unit`]; `None` where that count has no `i64`, or the float is not finite.
    ///
    /// For example, 0.1 `days since 1970-01-01` is 02:24:00: the f64 is a little more than a tenth, by less than half a microsecond.
    #[must_use]
    pub(crate) fn timestamp_from_float(&self, value: f64) -> Option<TimestampLabel> {
        self.timestamp(self.instant_from_float(value)?)
    }

    /// Label of a stored integer as ISO text, `YYYY-MM-DDTHH:MM:SS` with a fraction only where there is one; `None` where it has no date.
    ///
    /// For example, 59 `days since 2000-01-01` is `2000-02-30T00:00:00` in calendar `360_day`.
    #[must_use]
    pub(crate) fn text_from_int(&self, value: i128) -> Option<String> {
        self.text(self.instant_from_int(value)?)
    }

    /// Label of a stored float as ISO text, as [`Self::text_from_int`]; `None` also where the float is not finite.
    ///
    /// For example, 0.000001 `days since 2000-01-01` is `2000-01-01T00:00:00.0864`.
    #[must_use]
    pub(crate) fn text_from_float(&self, value: f64) -> Option<String> {
        self.text(self.instant_from_float(value)?)
    }

    /// The timestamp of an integer that needs neither rounding nor another date; `None` where it may need them.
    fn linear_timestamp(&self, value: i128) -> Option<i64> {
        let (step, origin) = self.linear?;
        let instant = i64::try_from(value).ok()?.checked_mul(step)?.checked_add(origin)?;
        (i128::from(instant) >= self.gregorian_from).then_some(instant)
    }

    fn instant_from_int(&self, value: i128) -> Option<i128> {
        let halves = value.checked_mul(i128::from(self.step))?.checked_mul(2)?;
        self.instant(Halves { floor: halves, more: false })
    }

    fn instant_from_float(&self, value: f64) -> Option<i128> {
        self.instant(Halves::of_product(value, self.step)?)
    }

    /// The instant at an offset from the reference.
    fn instant(&self, offset: Halves) -> Option<i128> {
        let floor = offset.floor.checked_add(self.origin.checked_mul(2)?)?;
        Some(Halves { floor, ..offset }.round(self.unit))
    }

    fn timestamp(&self, instant: i128) -> Option<TimestampLabel> {
        if instant >= self.gregorian_from {
            return Some(TimestampLabel::Timestamp(i64::try_from(instant).ok()?));
        }
        let (day, time) = self.unit.split(instant)?;
        let date = self.date(day)?;
        if date.day > Calendar::ProlepticGregorian.days_in_month(date.year, date.month) {
            return Some(TimestampLabel::NotGregorian);
        }
        // The midnight before the smallest timestamps has no i64, though they do.
        let midnight = i128::from(Calendar::ProlepticGregorian.day_number(date)?) * i128::from(self.unit.per_day());
        Some(TimestampLabel::Timestamp(i64::try_from(midnight + i128::from(time)).ok()?))
    }

    fn text(&self, instant: i128) -> Option<String> {
        let (day, time) = self.unit.split(instant)?;
        Some(iso_text(self.date(day)?, time, self.unit))
    }

    /// Date of a day number, with the year 0 that the reference may have added.
    fn date(&self, day: i64) -> Option<Date> {
        let date = self.calendar.date(day)?;
        Some(if self.adds_year_zero && date.year < 0 { Date { year: date.year + 1, ..date } } else { date })
    }
}

/// An exact number of nanoseconds, as far as rounding to a unit needs it: in half nanoseconds, since half a nanosecond is the smallest tie.
#[derive(Debug, Clone, Copy)]
struct Halves {
    /// Half nanoseconds, rounded down.
    floor: i128,
    /// Whether that has lost anything.
    more: bool,
}

impl Halves {
    /// `value * step` nanoseconds. A finite float is `significand * 2^exponent`, so that the product is an integer that is only shifted.
    fn of_product(value: f64, step: i64) -> Option<Self> {
        let (significand, exponent) = significand_and_exponent(value)?;
        // Below 2^53 · 2^63 · 2.
        let doubled = i128::from(significand) * i128::from(step) * 2;
        if exponent > 0 {
            let power = 1_i128.checked_shl(exponent.unsigned_abs()).filter(|power| *power > 0)?;
            return Some(Self { floor: doubled.checked_mul(power)?, more: false });
        }
        // Shifts beyond the width give what the largest shift gives: 0 or -1.
        let shift = exponent.unsigned_abs().min(i128::BITS - 1);
        let floor = doubled >> shift;
        Some(Self { floor, more: floor << shift != doubled })
    }

    /// The nearest count of `unit`s, the even one of two.
    fn round(self, unit: TimeUnit) -> i128 {
        // Half a unit has as many half nanoseconds as the unit has nanoseconds.
        let half = i128::from(unit.nanoseconds());
        let count = self.floor.div_euclid(2 * half);
        let rest = self.floor.rem_euclid(2 * half);
        let up = rest > half || (rest == half && (self.more || count % 2 != 0));
        count + i128::from(up)
    }
}

/// The two numbers of `value = significand * 2^exponent`; `None` for NaN and infinities.
fn significand_and_exponent(value: f64) -> Option<(i64, i32)> {
    if !value.is_finite() {
        return None;
    }
    // IEEE 754: 52 bits of fraction below 11 of an exponent that is biased by 1023, here by 52 more since the significand is an integer.
    let magnitude = i64::try_from(value.abs().to_bits()).ok()?;
    let (biased, fraction) = (magnitude >> 52, magnitude & ((1 << 52) - 1));
    // A subnormal number lacks the leading bit, and has the exponent of the smallest normal one.
    let significand = if biased == 0 { fraction } else { fraction | (1 << 52) };
    let exponent = i32::try_from(biased.max(1)).ok()? - 1075;
    Some((if value.is_sign_negative() { -significand } else { significand }, exponent))
}

/// Unit and reference of `<unit> since <reference>`, in any letter case.
pub(super) fn split_since(units: &str) -> Option<(&str, &str)> {
    const SINCE: &str = "since";
    let lower = units.to_ascii_lowercase();
    lower.match_indices(SINCE).find_map(|(at, _)| {
        let (unit, reference) = (units.get(..at)?, units.get(at + SINCE.len()..)?);
        let apart = unit.ends_with(char::is_whitespace) && reference.starts_with(char::is_whitespace);
        (apart && !unit.trim().is_empty()).then(|| (unit.trim(), reference.trim()))
    })
}

/// The calendar of an attribute; CF's default where there is none.
fn parse_calendar(name: Option<&str>) -> Result<Calendar, String> {
    const ALLOWED: &str = "`standard`, `gregorian`, `proleptic_gregorian`, `julian`, `noleap`, `365_day`, `all_leap`, `366_day` and `360_day`";
    let name = name.filter(|name| !name.is_empty()).unwrap_or("standard");
    Calendar::parse(name).ok_or_else(|| format!("calendar `{name}` is not one of {ALLOWED}"))
}

/// Nanoseconds of the unit before "since".
fn parse_step(unit: &str, calendar: Calendar) -> Result<i64, String> {
    const ALLOWED: &str = "`days`, `hours`, `minutes`, `seconds`, `milliseconds`, `microseconds`, `nanoseconds`, and `months` in calendar `360_day`";
    let month = ["month", "months"].iter().any(|name| unit.eq_ignore_ascii_case(name));
    let step = if month && calendar == Calendar::Day360 { Some(30 * DAY) } else { duration_step(unit) };
    step.ok_or_else(|| {
        format!("`{unit}` is no unit of fixed length in calendar `{}`, allowed are {ALLOWED}", calendar.name())
    })
}

/// What follows "since": a date, and nanoseconds from its midnight to the instant in UTC, which the zone may move out of the day.
struct Reference {
    date: Date,
    nanoseconds: i64,
}

impl Reference {
    fn parse(text: &str) -> Option<Self> {
        let mut scanner = Scanner(text.trim());
        let negative = scanner.eat('-');
        let year: i64 = scanner.digits()?.parse().ok()?;
        let month = scanner.after('-')?.parse().ok()?;
        let day = scanner.after('-')?.parse().ok()?;
        let time = scanner.time_of_day()?;
        let zone = parse_zone(scanner.0.trim_start())?;
        let date = Date { year: if negative { -year } else { year }, month, day };
        Some(Self { date, nanoseconds: time - zone })
    }
}

/// What is left to read of a reference.
pub(super) struct Scanner<'a>(pub(super) &'a str);

impl<'a> Scanner<'a> {
    /// Whether the next character is this one; it is taken then.
    pub(super) fn eat(&mut self, expected: char) -> bool {
        let rest = self.0.strip_prefix(expected);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// The next digits, at least one.
    pub(super) fn digits(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = self.0.strip_suffix(rest).filter(|digits| !digits.is_empty())?;
        self.0 = rest;
        Some(digits)
    }

    /// The digits after a separator.
    pub(super) fn after(&mut self, separator: char) -> Option<&'a str> {
        if self.eat(separator) { self.digits() } else { None }
    }

    /// Nanoseconds of `hh`, `hh:mm`, `hh:mm:ss` or `hh:mm:ss.f` after blanks or `T`; 0 where no number follows those.
    pub(super) fn time_of_day(&mut self) -> Option<i64> {
        let start = self.0.trim_start_matches(|c: char| c == 'T' || c.is_whitespace());
        if !start.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(0);
        }
        self.0 = start;
        let hours = number_below(24, self.digits()?)?;
        let mut time = hours * HOUR;
        if !self.eat(':') {
            return Some(time);
        }
        time += number_below(60, self.digits()?)? * MINUTE;
        if self.eat(':') {
            time += number_below(60, self.digits()?)? * SECOND;
            if self.eat('.') {
                let fraction: f64 = format!("0.{}", self.digits()?).parse().ok()?;
                time += nearest(fraction * 1e9)?;
            }
        }
        Some(time)
    }
}

/// Offset of a zone from UTC in nanoseconds; 0 where there is none.
pub(super) fn parse_zone(text: &str) -> Option<i64> {
    if ["", "Z", "UTC", "GMT"].iter().any(|utc| text.eq_ignore_ascii_case(utc)) {
        return Some(0);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "00"),
    };
    let known = hours.len() <= 2 && minutes.len() == 2;
    known.then_some(sign * (number_below(24, hours)? * HOUR + number_below(60, minutes)? * MINUTE))
}

/// The number that these digits write, if it is below a limit.
fn number_below(limit: i64, digits: &str) -> Option<i64> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|number| plain && *number < limit)
}

/// Nanoseconds of a plain unit, in any letter case; `None` for a unit without fixed length or of something else.
///
/// For example, 3 600 000 000 000 for `hours`, `hour`, `hrs`, `hr` and `h`, and `None` for `months`.
#[must_use]
pub(crate) fn duration_step(units: &str) -> Option<i64> {
    Some(match units.to_ascii_lowercase().as_str() {
        "nanosecond" | "nanoseconds" | "ns" => 1,
        "microsecond" | "microseconds" | "us" => 1_000,
        "millisecond" | "milliseconds" | "ms" => 1_000_000,
        "second" | "seconds" | "sec" | "secs" | "s" => SECOND,
        "minute" | "minutes" | "min" | "mins" => MINUTE,
        "hour" | "hours" | "hr" | "hrs" | "h" => HOUR,
        "day" | "days" | "d" => DAY,
        _ => return None,
    })
}

/// A duration of `value` steps in nanoseconds: their product as an f64, rounded half to even; `None` for NaN, or where it has no `i64`.
///
/// For example, 0.1 hours (a `step` of 3 600 000 000 000) are 360 000 000 000.
#[must_use]
pub(crate) fn duration_from_float(value: f64, step: i64) -> Option<i64> {
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53, where the steps of `duration_step` are")]
    let step = step as f64;
    nearest(value * step)
}

/// ISO text of a date and the units since its midnight.
pub(super) fn iso_text(date: Date, time: i64, unit: TimeUnit) -> String {
    let nanoseconds = time * unit.nanoseconds();
    let (hours, minutes, seconds) = (nanoseconds / HOUR, nanoseconds / MINUTE % 60, nanoseconds / SECOND % 60);
    let mut text = format!("{date}T{hours:02}:{minutes:02}:{seconds:02}");
    if nanoseconds % SECOND != 0 {
        let fraction = format!(".{:09}", nanoseconds % SECOND);
        text += fraction.trim_end_matches('0');
    }
    text
}

/// The nearest integer, the even one of two; `None` for NaN, or where it has no `i64`.
fn nearest(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let nearest = value.round_ties_even();
    #[expect(clippy::cast_possible_truncation, reason = "an integer inside of the range of i64")]
    (-LIMIT..LIMIT).contains(&nearest).then_some(nearest as i64)
}

#[cfg(test)]
mod tests {
    use Value::{Float, Int};

    use super::TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Value {
        Int(i128),
        Float(f64),
    }

    fn encoding(units: &str, calendar: &str, unit: Option<TimeUnit>) -> TimeEncoding {
        TimeEncoding::parse(units, Some(calendar), unit).unwrap().unwrap()
    }

    fn reason(units: &str, calendar: &str) -> String {
        TimeEncoding::parse(units, Some(calendar), None).unwrap().unwrap_err()
    }

    impl Value {
        fn timestamp(self, encoding: &TimeEncoding) -> Option<TimestampLabel> {
            match self {
                Int(value) => encoding.timestamp_from_int(value),
                Float(value) => encoding.timestamp_from_float(value),
            }
        }

        fn text(self, encoding: &TimeEncoding) -> Option<String> {
            match self {
                Int(value) => encoding.text_from_int(value),
                Float(value) => encoding.text_from_float(value),
            }
        }
    }

    /// Units, calendar, unit of the column, stored value and label ("" where the timestamp has no i64), made by the `decode_time` of the fixtures'
    /// reference decoder (cftime 1.6.6, numpy 2.4, exact fractions). Some are float32 tenths, widened.
    #[rustfmt::skip]
    #[expect(clippy::unreadable_literal, reason = "floats as Python prints them")]
    const LABELS: &[(&str, &str, Option<TimeUnit>, Value, &str)] = &[
        ("days since 2000-01-01", "standard", None, Int(59), "2000-02-29T00:00:00"),
        ("days since 2000-01-01", "standard", None, Int(60), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "standard", None, Int(365), "2000-12-31T00:00:00"),
        ("days since 2000-01-01", "standard", None, Int(-1), "1999-12-31T00:00:00"),
        ("days since 2000-01-01", "proleptic_gregorian", None, Int(59), "2000-02-29T00:00:00"),
        ("days since 2000-01-01", "proleptic_gregorian", None, Int(60), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "proleptic_gregorian", None, Int(365), "2000-12-31T00:00:00"),
        ("days since 2000-01-01", "proleptic_gregorian", None, Int(-1), "1999-12-31T00:00:00"),
        ("days since 2000-01-01", "julian", None, Int(59), "2000-02-29T00:00:00"),
        ("days since 2000-01-01", "julian", None, Int(60), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "julian", None, Int(365), "2000-12-31T00:00:00"),
        ("days since 2000-01-01", "julian", None, Int(-1), "1999-12-31T00:00:00"),
        ("days since 2000-01-01", "noleap", None, Int(59), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "noleap", None, Int(60), "2000-03-02T00:00:00"),
        ("days since 2000-01-01", "noleap", None, Int(365), "2001-01-01T00:00:00"),
        ("days since 2000-01-01", "noleap", None, Int(-1), "1999-12-31T00:00:00"),
        ("days since 2000-01-01", "all_leap", None, Int(59), "2000-02-29T00:00:00"),
        ("days since 2000-01-01", "all_leap", None, Int(60), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "all_leap", None, Int(365), "2000-12-31T00:00:00"),
        ("days since 2000-01-01", "all_leap", None, Int(-1), "1999-12-31T00:00:00"),
        ("days since 2000-01-01", "360_day", None, Int(59), "2000-02-30T00:00:00"),
        ("days since 2000-01-01", "360_day", None, Int(60), "2000-03-01T00:00:00"),
        ("days since 2000-01-01", "360_day", None, Int(365), "2001-01-06T00:00:00"),
        ("days since 2000-01-01", "360_day", None, Int(-1), "1999-12-30T00:00:00"),
        ("days since 1-1-1", "", None, Int(725_738), "1988-01-01T00:00:00"),
        ("days since 1-1-1", "proleptic_gregorian", None, Int(725_738), "1988-01-03T00:00:00"),
        ("days since 1-1-1", "julian", None, Int(725_738), "1987-12-19T00:00:00"),
        ("days since 1-1-1", "noleap", None, Int(725_738), "1989-04-29T00:00:00"),
        ("days since 1-1-1", "all_leap", None, Int(725_738), "1983-11-22T00:00:00"),
        ("days since 1-1-1", "360_day", None, Int(725_738), "2016-12-09T00:00:00"),
        ("days since 1-1-1", "standard", None, Int(577_735), "1582-10-03T00:00:00"),
        ("days since 1-1-1", "standard", None, Int(577_736), "1582-10-04T00:00:00"),
        ("days since 1-1-1", "standard", None, Int(-1), "-0001-12-31T00:00:00"),
        ("days since 1582-10-15", "standard", None, Int(-1), "1582-10-04T00:00:00"),
        ("days since 1582-10-15", "standard", None, Int(0), "1582-10-15T00:00:00"),
        ("days since 1582-10-15", "proleptic_gregorian", None, Int(-1), "1582-10-14T00:00:00"),
        ("days since 1582-10-15", "proleptic_gregorian", None, Int(0), "1582-10-15T00:00:00"),
        ("days since 1582-10-15", "julian", None, Int(-1), "1582-10-14T00:00:00"),
        ("days since 1582-10-15", "julian", None, Int(0), "1582-10-15T00:00:00"),
        ("days since 1582-10-15", "360_day", None, Int(-1), "1582-10-14T00:00:00"),
        ("days since 1582-10-15", "360_day", None, Int(0), "1582-10-15T00:00:00"),
        ("hours since 1582-10-04 18:00", "Gregorian", None, Int(5), "1582-10-04T23:00:00"),
        ("hours since 1582-10-04 18:00", "Gregorian", None, Int(6), "1582-10-15T00:00:00"),
        ("hours since 1582-10-04 18:00", "Gregorian", None, Float(7.5), "1582-10-15T01:30:00"),
        ("hours since 1900-02-28 12:00:00", "standard", None, Int(11), "1900-02-28T23:00:00"),
        ("hours since 1900-02-28 12:00:00", "standard", None, Float(12.0), "1900-03-01T00:00:00"),
        ("hours since 1900-02-28 12:00:00", "standard", None, Float(36.25), "1900-03-02T00:15:00"),
        ("hours since 1900-02-28 12:00:00", "julian", None, Int(11), "1900-02-28T23:00:00"),
        ("hours since 1900-02-28 12:00:00", "julian", None, Float(36.25), "1900-03-01T00:15:00"),
        ("hours since 1900-02-28 12:00:00", "360_day", None, Int(11), "1900-02-28T23:00:00"),
        ("hours since 1900-02-28 12:00:00", "360_day", None, Float(12.0), "1900-02-29T00:00:00"),
        ("hours since 1900-02-28 12:00:00", "360_day", None, Float(36.25), "1900-02-30T00:15:00"),
        ("days since 0-1-1", "", None, Int(-1), "-0001-12-31T00:00:00"),
        ("days since 0-1-1", "", None, Float(59.75), "0000-02-29T18:00:00"),
        ("days since 0-1-1", "", None, Int(366), "0001-01-01T00:00:00"),
        ("days since 0-1-1", "julian", None, Int(-1), "-0001-12-31T00:00:00"),
        ("days since 0-1-1", "julian", None, Float(59.75), "0000-02-29T18:00:00"),
        ("days since 0-1-1", "julian", None, Int(366), "0001-01-01T00:00:00"),
        ("days since 0-1-1", "noleap", None, Int(-1), "-0001-12-31T00:00:00"),
        ("days since 0-1-1", "noleap", None, Float(59.75), "0000-03-01T18:00:00"),
        ("days since 0-1-1", "noleap", None, Int(366), "0001-01-02T00:00:00"),
        ("days since 0-1-1", "360_day", None, Int(-1), "-0001-12-30T00:00:00"),
        ("days since 0-1-1", "360_day", None, Float(59.75), "0000-02-30T18:00:00"),
        ("days since 0-1-1", "360_day", None, Int(366), "0001-01-07T00:00:00"),
        ("days since -1-12-31", "standard", None, Int(0), "-0001-12-31T00:00:00"),
        ("days since -1-12-31", "standard", None, Int(1), "0001-01-01T00:00:00"),
        ("days since -1-12-31", "proleptic_gregorian", None, Int(0), "-0001-12-31T00:00:00"),
        ("days since -1-12-31", "proleptic_gregorian", None, Int(1), "0000-01-01T00:00:00"),
        ("days since -1-12-30", "360_day", None, Int(0), "-0001-12-30T00:00:00"),
        ("days since -1-12-30", "360_day", None, Int(1), "0000-01-01T00:00:00"),
        ("days since 1850-01-01", "standard", None, Int(164_375), "2300-01-17T00:00:00"),
        ("days since 1850-01-01", "standard", None, Float(164374.99999), "2300-01-16T23:59:59.136001"),
        ("days since 1850-01-01", "noleap", None, Int(164_375), "2300-05-06T00:00:00"),
        ("days since 1850-01-01", "noleap", None, Float(164374.99999), "2300-05-05T23:59:59.136001"),
        ("days since 1850-01-01", "360_day", None, Int(164_375), "2306-08-06T00:00:00"),
        ("days since 1850-01-01", "360_day", None, Float(164374.99999), "2306-08-05T23:59:59.136001"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Int(4_000_000_000), "2096-10-02T07:06:40"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Int(10_000_000_000_000), ""),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Int(-1), "1969-12-31T23:59:59"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(-0.5), "1969-12-31T23:59:59.5"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(0.1), "1970-01-01T00:00:00.1"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(0.10000000149011612), "1970-01-01T00:00:00.1"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(1000000000.0), "2001-09-09T01:46:40"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(1e300), ""),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(5e-324), "1970-01-01T00:00:00"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(-5e-324), "1970-01-01T00:00:00"),
        ("seconds since 1970-01-01", "proleptic_gregorian", None, Float(-1e-06), "1969-12-31T23:59:59.999999"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Int(-9_223_372_036_854_775_807), "-292277022657-01-27T08:29:53"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Int(9_223_372_036_854_775_807), "292277026596-12-04T15:30:07"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Float(0.5), "1970-01-01T00:00:00"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Float(1.5), "1970-01-01T00:00:02"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Float(-0.5), "1970-01-01T00:00:00"),
        ("seconds since 1970-01-01", "proleptic_gregorian", Some(Second), Float(-1.5), "1969-12-31T23:59:58"),
        ("microseconds since 2000-01-01", "standard", Some(Millisecond), Int(500), "2000-01-01T00:00:00"),
        ("microseconds since 2000-01-01", "standard", Some(Millisecond), Int(1_500), "2000-01-01T00:00:00.002"),
        ("microseconds since 2000-01-01", "standard", Some(Millisecond), Int(-500), "2000-01-01T00:00:00"),
        ("microseconds since 2000-01-01", "standard", Some(Millisecond), Int(-1_500), "1999-12-31T23:59:59.998"),
        ("microseconds since 2000-01-01", "standard", Some(Millisecond), Int(1_501), "2000-01-01T00:00:00.002"),
        ("nanoseconds since 2000-01-01", "360_day", None, Int(1), "2000-01-01T00:00:00.000000001"),
        ("nanoseconds since 2000-01-01", "360_day", None, Int(-1), "1999-12-30T23:59:59.999999999"),
        ("nanoseconds since 2000-01-01", "360_day", None, Int(123_456_789_000), "2000-01-01T00:02:03.456789"),
        ("ns since 1970-01-01", "standard", None, Int(9_223_372_036_854_775_807), "2262-04-11T23:47:16.854775807"),
        ("ns since 1970-01-01", "standard", None, Float(0.5), "1970-01-01T00:00:00"),
        ("ns since 1970-01-01", "standard", None, Float(1.5), "1970-01-01T00:00:00.000000002"),
        ("ns since 1970-01-01", "standard", None, Float(2.5000000000000004), "1970-01-01T00:00:00.000000003"),
        ("ns since 1970-01-01", "standard", None, Float(-2.5), "1969-12-31T23:59:59.999999998"),
        ("ns since 1970-01-01", "standard", Some(Microsecond), Int(500), "1970-01-01T00:00:00"),
        ("ns since 1970-01-01", "standard", Some(Microsecond), Int(1_500), "1970-01-01T00:00:00.000002"),
        ("ns since 1970-01-01", "standard", Some(Microsecond), Float(500.0000000000001), "1970-01-01T00:00:00.000001"),
        ("ns since 1677-09-21 00:12:43", "noleap", None, Int(-145_224_192), ""),
        ("ms since 1960-02-29T23:59:59.9995", "proleptic_gregorian", None, Int(0), "1960-02-29T23:59:59.9995"),
        ("ms since 1960-02-29T23:59:59.9995", "proleptic_gregorian", None, Int(1), "1960-03-01T00:00:00.0005"),
        ("ms since 1960-02-29T23:59:59.9995", "proleptic_gregorian", None, Float(0.25), "1960-02-29T23:59:59.99975"),
        ("hours since 2000-01-01", "standard", None, Int(250), "2000-01-11T10:00:00"),
        ("hours since 2000-01-01", "standard", None, Float(0.1), "2000-01-01T00:06:00"),
        ("hours since 2000-01-01", "standard", None, Float(0.10000000149011612), "2000-01-01T00:06:00.000005"),
        ("hours since 2000-01-01", "standard", None, Float(1048576.125), "2119-08-15T16:07:30"),
        ("minutes since 2300-02-28 23:00 UTC", "standard", None, Int(60), "2300-03-01T00:00:00"),
        ("minutes since 2300-02-28 23:00 UTC", "standard", None, Float(59.5), "2300-02-28T23:59:30"),
        ("minutes since 2300-02-28 23:00 UTC", "julian", None, Float(59.5), "2300-02-28T23:59:30"),
        ("minutes since 2300-02-28 23:00 UTC", "noleap", None, Int(60), "2300-03-01T00:00:00"),
        ("minutes since 2300-02-28 23:00 UTC", "noleap", None, Float(59.5), "2300-02-28T23:59:30"),
        ("minutes since 2300-02-28 23:00 UTC", "all_leap", None, Int(60), "2300-02-29T00:00:00"),
        ("minutes since 2300-02-28 23:00 UTC", "all_leap", None, Float(59.5), "2300-02-28T23:59:30"),
        ("hours since 2000-01-01 12:00:00 +05:30", "standard", None, Int(0), "2000-01-01T06:30:00"),
        ("hours since 2000-01-01 12:00:00 +05:30", "360_day", None, Int(0), "2000-01-01T06:30:00"),
        ("h since 2000-01-01 -3", "proleptic_gregorian", None, Int(0), "2000-01-01T03:00:00"),
        ("h since 2000-01-01 -3", "proleptic_gregorian", None, Float(0.3333333333333333), "2000-01-01T03:20:00"),
        ("Days Since 1999-12-31T23:59:59.999999999Z", "NOLEAP", None, Int(0), "2000-01-01T00:00:00"),
        ("months since 2000-01-01", "360_day", None, Int(1), "2000-02-01T00:00:00"),
        ("months since 2000-01-01", "360_day", None, Int(-1), "1999-12-01T00:00:00"),
        ("months since 2000-01-01", "360_day", None, Float(1.5), "2000-02-16T00:00:00"),
        ("months since 2000-01-01", "360_day", None, Float(0.10000000149011612), "2000-01-04T00:00:00.003862"),
        ("days since 1970-01-01", "proleptic_gregorian", None, Int(106_751_991), "294247-01-10T00:00:00"),
        ("days since 1970-01-01", "proleptic_gregorian", None, Int(106_751_992), ""),
        ("days since 1970-01-01", "proleptic_gregorian", None, Int(-106_751_991), "-290308-12-22T00:00:00"),
        ("days since 1970-01-01", "proleptic_gregorian", None, Float(16800.30078125), "2015-12-31T07:13:07.5"),
        ("days since 1970-01-01", "proleptic_gregorian", None, Float(1e-06), "1970-01-01T00:00:00.0864"),
        ("days since 2262-04-11 23:47:16", "366_day", Some(Nanosecond), Float(0.1), "2262-04-12T02:11:16"),
    ];

    #[test]
    fn labels_are_those_of_the_reference_decoder() {
        for &(units, calendar, unit, value, label) in LABELS {
            let encoding = encoding(units, calendar, unit);
            let timestamp = match value.timestamp(&encoding) {
                Some(TimestampLabel::Timestamp(timestamp)) => format_timestamp(timestamp, encoding.unit()).unwrap(),
                Some(TimestampLabel::NotGregorian) => "not Gregorian".to_owned(),
                None => String::new(),
            };
            if !encoding.calendar().is_text() {
                assert_eq!(timestamp, label, "{value:?} {units} {calendar}");
            }
            if !label.is_empty() {
                assert_eq!(value.text(&encoding).as_deref(), Some(label), "{value:?} {units} {calendar}");
            }
        }
    }

    #[test]
    fn timestamps_are_those_of_numpy() {
        let cases = [
            (951_782_400_123, Second, "32130-10-14T00:02:03"),
            (951_782_400_123, Millisecond, "2000-02-29T00:00:00.123"),
            (951_782_400_123, Microsecond, "1970-01-12T00:23:02.400123"),
            (951_782_400_123, Nanosecond, "1970-01-01T00:15:51.782400123"),
            (-1, Second, "1969-12-31T23:59:59"),
            (-100, Millisecond, "1969-12-31T23:59:59.9"),
            (i64::MAX, Second, "292277026596-12-04T15:30:07"),
            (i64::MAX, Microsecond, "294247-01-10T04:00:54.775807"),
            (i64::MAX, Nanosecond, "2262-04-11T23:47:16.854775807"),
            (-i64::MAX, Second, "-292277022657-01-27T08:29:53"),
            (-i64::MAX, Millisecond, "-292275055-05-16T16:47:04.193"),
            (i64::MIN, Nanosecond, "1677-09-21T00:12:43.145224192"),
        ];
        for (value, unit, text) in cases {
            assert_eq!(format_timestamp(value, unit).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_label_that_gregorian_lacks_is_text_only() {
        let julian = encoding("hours since 1900-02-28 12:00", "julian", None);
        assert_eq!(julian.timestamp_from_int(12), Some(TimestampLabel::NotGregorian));
        assert_eq!(julian.timestamp_from_float(12.25), Some(TimestampLabel::NotGregorian));
        assert_eq!(julian.text_from_float(12.25).as_deref(), Some("1900-02-29T00:15:00"));
        assert_eq!(
            encoding("days since 2001-02-01", "360_day", None).timestamp_from_int(28),
            Some(TimestampLabel::NotGregorian)
        );
    }

    #[test]
    fn the_unit_is_microseconds_but_for_nanoseconds() {
        for (units, unit) in [("days", Microsecond), ("S", Microsecond), ("NS", Nanosecond), ("nanosecond", Nanosecond)]
        {
            let units = format!("{units} since 2000-01-01");
            assert_eq!(encoding(&units, "", None).unit(), unit);
            assert_eq!(encoding(&units, "", Some(Millisecond)).unit(), Millisecond);
        }
        assert_eq!(TimeEncoding::parse("d since 1-1-1", None, None).unwrap().unwrap().calendar(), Calendar::Standard);
    }

    #[test]
    fn what_is_no_time() {
        for units in [
            "days",
            "",
            "K",
            "since 2000-01-01",
            " since 2000-01-01",
            "days since",
            "dayssince 2000-01-01",
            "é since",
            "days sincere 1",
        ] {
            assert_eq!(TimeEncoding::parse(units, None, None), None, "{units}");
        }
    }

    #[test]
    fn references() {
        let at = |reference: &str| encoding(&format!("ns\tsince  {reference} "), "", None).timestamp_from_int(0);
        let noon = Some(TimestampLabel::Timestamp(946_728_000_000_000_000));
        for reference in [
            "2000-01-01 12",
            "2000-01-01 12:00",
            "2000-1-1T12:0:0",
            "2000-01-01 T 12:00:00.000Z",
            "2000-01-01 12:00 utc",
            "2000-01-01 12:00GMT",
            "2000-01-01-12",
            "2000-01-01 -1200",
            "2000-01-02 +12:00",
            "2000-01-01T17:30+5:30",
            "2000-01-01 17:30 +530",
            "2000-01-01 11:59:59.9999999996",
        ] {
            assert_eq!(at(reference), noon, "{reference}");
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        assert_eq!(
            reason("months since 2000-01-01", "standard"),
            "`months` is no unit of fixed length in calendar `standard`, allowed are `days`, `hours`, `minutes`, `seconds`, `milliseconds`, \
             `microseconds`, `nanoseconds`, and `months` in calendar `360_day`; option `decode_times` = `false` reads the raw numbers"
        );
        for units in ["years since 2000-01-01", "kg m-2 since 2000-01-01", "fortnights since 2000-01-01"] {
            assert!(reason(units, "360_day").contains("allowed are `days`"), "{units}");
        }
        assert!(reason("days since 2000-01-01", "none").starts_with("calendar `none` is not one of `standard`"));
        for (reference, calendar) in
            [("1582-10-10", "standard"), ("2000-02-30", "julian"), ("2000-02-29", "noleap"), ("2000-01-31", "360_day")]
        {
            assert!(
                reason(&format!("days since {reference}"), calendar).contains("is not a date of calendar"),
                "{reference}"
            );
        }
        for reference in [
            "",
            "2000",
            "2000-01",
            "today",
            "2000-01-01T",
            "2000-01-01 1200",
            "2000-01-01 24:00",
            "2000-01-01 12:60",
            "2000-01-01 12:00:60",
            "+2000-01-01",
            "2000-01-01 12:00:00.",
            "2000-01-01 +",
            "2000-01-01 +12345",
            "2000-01-01 +05:",
            "2000-01-01 +5:3",
            "2000-01-01 ++5",
            "2000-01-01 CET",
            "2000-01-01 -24",
            "99999999999999999999-01-01",
            "2000-01-01 +0é",
            "٢٠٠٠-01-01",
        ] {
            assert!(reason(&format!("days since {reference}"), "").contains("is not of the form"), "{reference}");
        }
    }

    /// Some values around those that matter, far ones and none.
    fn values() -> impl Iterator<Item = i128> {
        let centers = [
            0,
            -141_427,
            577_736,
            951_782_400,
            9_223_372_036_854_775,
            i128::from(i64::MAX),
            i128::from(i64::MIN),
            i128::from(u64::MAX),
        ];
        centers.into_iter().flat_map(|center| (-50..50).map(move |offset| center + offset)).chain([
            i128::MAX,
            i128::MIN,
            1 << 100,
        ])
    }

    fn encodings() -> impl Iterator<Item = TimeEncoding> {
        let units = ["ns", "us", "ms", "s", "min", "h", "d"].into_iter();
        let calendars = ["standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"];
        let references =
            ["0-1-1", "1582-10-04 23:59:59.5Z", "1900-02-28", "1970-01-01 00:00:00.000000001", "50000000000000-12-30"];
        units.flat_map(move |unit| {
            calendars.into_iter().flat_map(move |calendar| {
                references.into_iter().flat_map(move |reference| {
                    [None, Some(Second), Some(Nanosecond)]
                        .map(|to| encoding(&format!("{unit} since {reference}"), calendar, to))
                })
            })
        })
    }

    #[test]
    fn shortcuts_give_what_dates_give() {
        for encoding in encodings() {
            let general = TimeEncoding { linear: None, gregorian_from: i128::MAX, ..encoding.clone() };
            for value in values() {
                assert_eq!(
                    encoding.timestamp_from_int(value),
                    general.timestamp_from_int(value),
                    "{value} {encoding:?}"
                );
            }
        }
    }

    #[test]
    fn whole_floats_give_what_integers_give() {
        for encoding in encodings() {
            for value in values().filter(|value| value.unsigned_abs() < 1 << 53) {
                #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
                let float = value as f64;
                assert_eq!(
                    encoding.timestamp_from_float(float),
                    encoding.timestamp_from_int(value),
                    "{value} {encoding:?}"
                );
                assert_eq!(encoding.text_from_float(float), encoding.text_from_int(value), "{value} {encoding:?}");
            }
        }
    }

    #[test]
    fn values_out_of_range_have_no_label() {
        for encoding in encodings() {
            for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN] {
                assert_eq!((encoding.timestamp_from_float(value), encoding.text_from_float(value)), (None, None));
            }
            for value in [i128::MAX, i128::MIN] {
                assert_eq!((encoding.timestamp_from_int(value), encoding.text_from_int(value)), (None, None));
            }
            for value in [f64::MIN_POSITIVE, -f64::MIN_POSITIVE, -0.0, 5e-324, -5e-324] {
                assert!(encoding.text_from_float(value).is_some());
            }
        }
    }

    #[test]
    fn halves_go_to_the_even_count_unless_there_is_more() {
        let encoding = encoding("ns since 1970-01-01", "", Some(Microsecond));
        let count = |value| encoding.timestamp_from_float(value);
        let cases = [
            (500.0, 0),
            (1500.0, 2),
            (-500.0, 0),
            (-1500.0, -2),
            (2500.0, 2),
            (500.000_000_000_000_1, 1),
            (-500.000_000_000_000_1, -1),
        ];
        for (value, expected) in cases {
            assert_eq!(count(value), Some(TimestampLabel::Timestamp(expected)), "{value}");
        }
        // Whatever lies beyond the tie decides, however little it is.
        let half =
            |value: f64| self::encoding("s since 1970-01-01 00:00:00.5", "", Some(Second)).timestamp_from_float(value);
        assert_eq!(
            [0.0, 5e-324, -5e-324, 2.0, 1.0].map(half),
            [0, 1, 0, 2, 2].map(|count| Some(TimestampLabel::Timestamp(count)))
        );
        assert_eq!(count(499.999_999_999_999_94), Some(TimestampLabel::Timestamp(0)));
    }

    #[test]
    fn durations() {
        assert_eq!(
            ["d", "HRS", "mins", "sec", "ms", "Microseconds", "ns"].map(duration_step),
            [DAY, HOUR, MINUTE, SECOND, 1_000_000, 1_000, 1].map(Some)
        );
        assert_eq!(["", "months", "ss", "dayss", "K", "days "].map(duration_step), [None; 6]);
        assert_eq!([0.5, 1.5, -2.5, -0.1].map(|value| duration_from_float(value, 1)), [0, 2, -2, 0].map(Some));
        assert_eq!(duration_from_float(0.1, HOUR), Some(360_000_000_000));
        assert_eq!(duration_from_float(1.0 / 3.0, DAY), Some(28_800_000_000_000));
        assert_eq!(duration_from_float(-9_223_372_036_854_775_808.0, 1), Some(i64::MIN));
        for value in [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -1e300] {
            assert_eq!(duration_from_float(value, 1), None);
        }
    }

    /// ISO text of a proleptic Gregorian timestamp.
    fn format_timestamp(value: i64, unit: TimeUnit) -> Option<String> {
        let (day, time) = unit.split(i128::from(value))?;
        Some(iso_text(Calendar::ProlepticGregorian.date(day)?, time, unit))
    }
}
