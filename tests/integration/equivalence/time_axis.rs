//! Random time axes in units and calendars of CF.

use fastrand::Rng;

use super::element::{Element, Type, chance, pick};

/// Units, calendar, and the offsets that suit them.
///
/// Without `anywhere` no date is one that Gregorian lacks (in those calendars that become timestamps).
pub(crate) fn cf_time(rng: &mut Rng, anywhere: bool) -> (String, Option<&'static str>, Offsets) {
    let calendars = [
        "standard",
        "gregorian",
        "proleptic_gregorian",
        "julian",
        "noleap",
        "365_day",
        "all_leap",
        "366_day",
        "360_day",
        "NoLeap",
    ];
    let calendar = (!chance(rng, 15)).then(|| pick(rng, &calendars));
    let units = [
        ("days", 1),
        ("hours", 24),
        ("minutes", 1440),
        ("seconds", 86_400),
        ("milliseconds", 86_400_000),
        ("microseconds", 86_400_000_000),
        ("nanoseconds", 86_400_000_000_000i64),
    ];
    let (unit, a_day) = pick(rng, &units);
    let years: &[u16] = match (unit, anywhere) {
        ("nanoseconds", _) => &[1970, 2000],
        (_, true) => &[1, 850, 1500, 1582, 1850, 1900, 1970, 2000, 2262, 3000],
        (_, false) => &[1905, 1950, 1970, 2000],
    };
    let year = pick(rng, years);
    let month = if year == 1582 { rng.u8(1..=9) } else { rng.u8(1..=12) };
    let clock = pick(rng, &["", " 00:00:00", "T06:30:00", " 12:00:15"]);
    let since = format!("{unit} since {year:04}-{month:02}-{:02}{clock}", rng.u8(1..=28));
    let mut data_type = pick(
        rng,
        &[
            Type::Int { bytes: 2, signed: true },
            Type::Int { bytes: 4, signed: true },
            Type::Int { bytes: 8, signed: true },
            Type::Int { bytes: 4, signed: false },
            Type::Float(4),
            Type::Float(8),
        ],
    );
    if matches!(data_type, Type::Float(_)) && matches!(unit, "microseconds" | "nanoseconds") {
        data_type = Type::Int { bytes: 8, signed: true };
    }
    let room = match data_type {
        Type::Int { bytes: 2, .. } => 30_000,
        Type::Int { bytes: 4, .. } => 2_000_000_000,
        // Eighths are exact below this.
        Type::Float(4) => 1 << 20,
        _ => i64::MAX,
    };
    let most = (18_000 * i128::from(a_day)).min(i128::from(room));
    let signed = anywhere && year > 100 && data_type != Type::Int { bytes: 4, signed: false };
    (since, calendar, Offsets { data_type, most: i64::try_from(most).unwrap(), signed, a_day })
}

/// Offsets of a time axis.
pub(crate) struct Offsets {
    pub(crate) data_type: Type,
    most: i64,
    signed: bool,
    a_day: i64,
}

impl Offsets {
    /// `size` offsets that go up: by days or by less, floats by eighths of the unit.
    pub(crate) fn line(&self, rng: &mut Rng, size: usize) -> Vec<Element> {
        let steps = i64::try_from(size.max(1)).unwrap();
        let step = (if rng.bool() { rng.i64(1..=40).saturating_mul(self.a_day) } else { rng.i64(1..=13) })
            .clamp(1, (self.most / (2 * steps)).max(1));
        let start =
            rng.i64(if self.signed { -self.most..=self.most - step * steps } else { 0..=self.most - step * steps });
        let eighths = rng.bool();
        (0..steps)
            .map(|i| match self.data_type {
                #[expect(clippy::cast_precision_loss, reason = "small enough")]
                Type::Float(_) => Element::Float((start + step * i) as f64 / if eighths { 8.0 } else { 1.0 }),
                _ => Element::Int(start + step * i),
            })
            .take(size)
            .collect()
    }
}
