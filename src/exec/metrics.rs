//! What `EXPLAIN ANALYZE` counts.

use datafusion::physical_plan::metrics::{BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, Time};

use crate::read::ReadCounts;

/// The counters of one partition.
#[derive(Debug)]
pub(super) struct ScanMetrics {
    /// Rows, and the time of all work.
    pub(super) baseline: BaselineMetrics,
    chunks: Count,
    bytes: Count,
    requests: Count,
    decode: Time,
}

impl ScanMetrics {
    /// Counters of `partition` in `set`.
    pub(super) fn new(set: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(set, partition),
            chunks: MetricBuilder::new(set).counter("chunks_read", partition),
            bytes: MetricBuilder::new(set).counter("bytes_read", partition),
            requests: MetricBuilder::new(set).counter("requests", partition),
            decode: MetricBuilder::new(set).subset_time("decode_time", partition),
        }
    }

    /// Add `counts`, and set them back.
    pub(super) fn record(&self, counts: &mut ReadCounts) {
        let counts = std::mem::take(counts);
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        self.chunks.add(count(counts.data_chunks));
        self.bytes.add(count(counts.bytes));
        self.requests.add(count(counts.requests));
        self.decode.add_duration(counts.decode);
    }
}
