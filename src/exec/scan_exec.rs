//! The row scan.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use super::rows::{BlockRows, RowMaker};
use crate::planning::{BlockGrid, share};
use crate::read::GridReader;

/// Reads the rows of a grid, Block by Block, in C order of the Blocks.
///
/// Partition `p` of `n` reads the `p`-th run of Blocks: running one partition alone, or one plan twice, gives the same rows.
#[derive(Debug, Clone)]
pub struct ZarrScanExec {
    grid: Arc<GridReader>,
    projection: Arc<[usize]>,
    schema: SchemaRef,
    blocks: BlockGrid,
    partitions: usize,
    fetch: Option<usize>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ZarrScanExec {
    /// A scan of the columns `projection` of `grid` in at most `partitions` partitions, each of at most `fetch` rows.
    ///
    /// # Errors
    /// A projection of columns that the grid does not have.
    pub(crate) fn try_new(
        grid: Arc<GridReader>,
        projection: Vec<usize>,
        partitions: usize,
        fetch: Option<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(grid.schema.project(&projection)?);
        let blocks = grid.chunks(&projection).map_or_else(|| BlockGrid::of_shape(&grid.sizes), BlockGrid::following);
        let partitions = usize::try_from(blocks.count()).unwrap_or(usize::MAX).clamp(1, partitions.max(1));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            grid,
            projection: projection.into(),
            schema,
            blocks,
            partitions,
            fetch,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// Rows of the whole scan, all partitions together.
    fn rows(&self) -> usize {
        let rows = usize::try_from(self.grid.rows()).unwrap_or(usize::MAX);
        self.fetch.map_or(rows, |fetch| rows.min(fetch.saturating_mul(self.partitions)))
    }
}

impl DisplayAs for ZarrScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
        match format {
            DisplayFormatType::TreeRender => {
                writeln!(f, "columns={columns}")?;
                write!(f, "blocks={}", self.blocks.count())?;
            }
            _ => write!(
                f,
                "ZarrScanExec: columns=[{columns}], blocks={}, partitions={}",
                self.blocks.count(),
                self.partitions
            )?,
        }
        match (self.fetch, format) {
            (None, _) => Ok(()),
            (Some(fetch), DisplayFormatType::TreeRender) => write!(f, "\nfetch={fetch}"),
            (Some(fetch), _) => write!(f, ", fetch={fetch}"),
        }
    }
}

impl ExecutionPlan for ZarrScanExec {
    fn name(&self) -> &'static str {
        "ZarrScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _inputs: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if args.partition().is_none() {
            // With a fetch a partition may have fewer rows than that.
            statistics.num_rows =
                if self.fetch.is_none() { Precision::Exact(self.rows()) } else { Precision::Inexact(self.rows()) };
        }
        Ok(Arc::new(statistics))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let mut scan = self.clone();
        scan.fetch = limit;
        scan.metrics = ExecutionPlanMetricsSet::new();
        Some(Arc::new(scan))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch_size = context.session_config().batch_size().max(1);
        let fetch = self.fetch.unwrap_or(usize::MAX);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        if self.projection.is_empty() {
            let rows = share(self.grid.rows(), partition, self.partitions);
            let rows = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX).min(fetch);
            let batches = counted_rows(Arc::clone(&self.schema), rows, batch_size, metrics);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(
                Arc::clone(&self.schema),
                futures::stream::iter(batches),
            )));
        }
        let scan = PartitionScan {
            schema: Arc::clone(&self.schema),
            blocks: self.blocks.clone(),
            todo: share(self.blocks.count(), partition, self.partitions),
            maker: RowMaker::new(Arc::clone(&self.grid), Arc::clone(&self.projection), batch_size),
            current: None,
            batch_size,
            remaining: fetch,
            reservation: MemoryConsumer::new(format!("ZarrScanExec[{partition}]")).register(context.memory_pool()),
            metrics,
        };
        let batches =
            futures::stream::try_unfold(
                scan,
                |mut scan| async move { Ok(scan.next().await?.map(|batch| (batch, scan))) },
            );
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches)))
    }
}

/// Batches without columns.
fn counted_rows(
    schema: SchemaRef,
    rows: usize,
    batch_size: usize,
    metrics: BaselineMetrics,
) -> impl Iterator<Item = Result<RecordBatch>> {
    use arrow::array::RecordBatchOptions;
    let mut remaining = rows;
    std::iter::from_fn(move || {
        let count = remaining.min(batch_size);
        remaining -= count;
        metrics.record_output(count);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        (count > 0).then(|| Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)?))
    })
}

/// What is left to do of one partition.
struct PartitionScan {
    schema: SchemaRef,
    blocks: BlockGrid,
    todo: Range<u64>,
    maker: RowMaker,
    current: Option<BlockRows>,
    batch_size: usize,
    remaining: usize,
    reservation: MemoryReservation,
    metrics: BaselineMetrics,
}

impl PartitionScan {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let limit = self.batch_size.min(self.remaining);
        if limit == 0 {
            self.current = None;
            return Ok(None);
        }
        loop {
            if let Some(rows) = &mut self.current
                && let Some(batch) = rows.next_batch(&self.schema, limit)?
            {
                self.remaining -= batch.num_rows();
                self.metrics.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
            // The buffers of this Block go back to the pool before the next one takes them.
            self.current = None;
            let Some(index) = self.todo.next() else {
                self.metrics.done();
                return Ok(None);
            };
            let block = self.blocks.block(index);
            self.reservation.try_resize(self.maker.bytes(&block))?;
            let timer = self.metrics.elapsed_compute().timer();
            let rows = self.maker.read(&block).await;
            timer.done();
            self.current = Some(rows?);
        }
    }
}
