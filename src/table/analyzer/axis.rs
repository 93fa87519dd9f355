//! The value of an axis that is nearest to a number.

use std::ops::Sub;

/// The nearest value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Nearest<T> {
    /// There is no value at all.
    Nothing,
    /// This one, at a distance.
    Value {
        /// Its position.
        index: usize,
        /// Its distance from the target.
        distance: T,
        /// Whether the target lies more than one step outside of the axis.
        outside: bool,
        /// Positions of the least and of the greatest value.
        range: (usize, usize),
    },
}

/// The value nearest to `target`; of two equally near the larger. `None` among the values is missing.
///
/// `period`: values so far apart are the same place, as on a circle of longitudes.
pub(super) fn nearest<T>(values: &[Option<T>], target: T, period: Option<T>) -> Nearest<T>
where
    T: Copy + PartialOrd + Sub<Output = T> + Remainder,
{
    let mut best: Option<(usize, T, T)> = None;
    let (mut low, mut high): (Option<Edge<T>>, Option<Edge<T>>) = (None, None);
    for (index, value) in values.iter().enumerate() {
        let Some(value) = *value else { continue };
        let distance = distance(value, target, period);
        if best.is_none_or(|(_, v, d)| distance < d || (distance == d && value > v)) {
            best = Some((index, value, distance));
        }
        low = Some(low.map_or_else(|| Edge::new(index, value), |e| e.with(index, value, |a, b| a < b)));
        high = Some(high.map_or_else(|| Edge::new(index, value), |e| e.with(index, value, |a, b| a > b)));
    }
    let (Some((index, _, distance)), Some(low), Some(high)) = (best, low, high) else { return Nearest::Nothing };
    let outside = is_outside(&low, &high, target, period);
    Nearest::Value { index, distance, outside, range: (low.index, high.index) }
}

/// What the remainder of a division by a period is, never negative.
pub(super) trait Remainder {
    /// `self` modulo `period`.
    fn modulo(self, period: Self) -> Self;
}

impl Remainder for f64 {
    fn modulo(self, period: Self) -> Self {
        self.rem_euclid(period)
    }
}

impl Remainder for i128 {
    fn modulo(self, period: Self) -> Self {
        self.checked_rem_euclid(period).unwrap_or(self)
    }
}

fn distance<T: Copy + PartialOrd + Sub<Output = T> + Remainder>(a: T, b: T, period: Option<T>) -> T {
    let apart = if a > b { a - b } else { b - a };
    let Some(period) = period else { return apart };
    let one_way = apart.modulo(period);
    let other_way = period - one_way;
    if other_way < one_way { other_way } else { one_way }
}

/// One end of an axis, and the value next to it.
#[derive(Debug, Clone, Copy)]
struct Edge<T> {
    index: usize,
    value: T,
    next: Option<T>,
}

impl<T: Copy + PartialOrd> Edge<T> {
    fn new(index: usize, value: T) -> Self {
        Self { index, value, next: None }
    }

    /// The same with one more value of the axis; `beyond` says which of two lies further out.
    fn with(self, index: usize, value: T, beyond: impl Fn(T, T) -> bool) -> Self {
        if beyond(value, self.value) {
            Self { index, value, next: Some(self.value) }
        } else if beyond(self.value, value) && self.next.is_none_or(|next| beyond(value, next)) {
            Self { next: Some(value), ..self }
        } else {
            self
        }
    }
}

/// Whether the target lies further from both ends than the next value inside does. An axis of one value has no steps, and no outside.
fn is_outside<T>(low: &Edge<T>, high: &Edge<T>, target: T, period: Option<T>) -> bool
where
    T: Copy + PartialOrd + Sub<Output = T> + Remainder,
{
    let (Some(second), Some(last)) = (low.next, high.next) else { return false };
    let beyond = |edge: T, step: T| distance(edge, target, period) > step;
    let inside = match period {
        None => target >= low.value && target <= high.value,
        Some(period) => (target - low.value).modulo(period) <= high.value - low.value,
    };
    !inside && beyond(low.value, second - low.value) && beyond(high.value, high.value - last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(values: &[f64], target: f64, period: Option<f64>) -> (f64, bool) {
        let values: Vec<Option<f64>> = values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect();
        match nearest(&values, target, period) {
            Nearest::Value { index, outside, .. } => (values[index].unwrap(), outside),
            Nearest::Nothing => panic!("no value"),
        }
    }

    #[test]
    fn the_larger_of_two_equally_near() {
        for axis in [[75.0, 42.5, 40.0, 15.0], [15.0, 40.0, 42.5, 75.0], [40.0, 75.0, 15.0, 42.5]] {
            assert_eq!(at(&axis, 41.25, None), (42.5, false));
            assert_eq!(at(&axis, 41.2, None), (40.0, false));
        }
        assert_eq!(at(&[f64::NAN, 5.0, f64::NAN], 1e300, None), (5.0, false));
    }

    #[test]
    fn one_step_outside_and_no_more() {
        let axis = [15.0, 17.5, 72.5, 75.0];
        assert_eq!(at(&axis, 77.5, None), (75.0, false));
        assert_eq!(at(&axis, 77.6, None), (75.0, true));
        assert_eq!(at(&axis, 12.4, None), (15.0, true));
    }

    #[test]
    fn a_circle_has_no_seam() {
        let globe: Vec<f64> = (0..36).map(|i| f64::from(i) * 10.0).collect();
        for (target, value) in [(358.0, 0.0), (-174.0, 190.0), (-5.1, 350.0), (725.0, 10.0), (355.0, 350.0)] {
            assert_eq!(at(&globe, target, Some(360.0)), (value, false), "{target}");
        }
        let america = [200.0, 202.5, 327.5, 330.0];
        assert_eq!(at(&america, -30.0, Some(360.0)), (330.0, false));
        assert_eq!(at(&america, 20.0, Some(360.0)), (330.0, true));
        assert_eq!(at(&america, 198.0, Some(360.0)), (200.0, false));
    }

    #[test]
    fn integers_are_exact_and_nothing_is_near_nothing() {
        let big = 1_i128 << 62;
        let values = [Some(big), None, Some(big + 1)];
        assert!(matches!(nearest(&values, big + 1, None), Nearest::Value { index: 2, distance: 0, .. }));
        assert_eq!(nearest::<i128>(&[None, None], 3, None), Nearest::Nothing);
        assert_eq!(nearest::<f64>(&[], 3.0, None), Nearest::Nothing);
    }
}
