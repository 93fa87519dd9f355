//! Which part of the work a partition does.

use std::ops::Range;

/// The share of `partition` in `total` items cut into `partitions` runs of nearly one length: the shares cover all items, each once, in order.
pub(crate) fn share(total: u64, partition: usize, partitions: usize) -> Range<u64> {
    let cut = |p: usize| -> u64 {
        let cut = u128::from(total) * p as u128 / partitions.max(1) as u128;
        u64::try_from(cut).unwrap_or(total).min(total)
    };
    cut(partition)..cut(partition.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_cover_everything_once() {
        for total in [0, 1, 5, 7, 1000, u64::MAX] {
            for n in [1, 2, 7] {
                let shares: Vec<_> = (0..n).map(|p| share(total, p, n)).collect();
                assert_eq!((shares[0].start, shares[n - 1].end), (0, total));
                assert!(shares.windows(2).all(|w| w[0].end == w[1].start));
            }
        }
    }
}
