//! The row scan.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use super::metrics::ScanMetrics;
use super::partition::PartitionScan;
use super::rows::RowMaker;
use super::scan::{BoundScan, Scan};
use super::{display, properties};
use crate::options::ZarrConfig;
use crate::planning::{Condition, Selection, When, share, statistics};
use crate::read::GridReader;

/// Reads the rows of a grid that satisfy its conditions, Block by Block.
///
/// Conditions on coordinates are evaluated on those when the plan is made, and only Blocks with a selected cell are read. Partition `p` of `n`
/// reads the `p`-th run of them: running one partition alone, or one plan twice, gives the same rows.
#[derive(Debug, Clone)]
pub struct ZarrScanExec {
    scan: Arc<Scan>,
    /// `None` where conditions have to wait until the plan runs.
    bound: Option<Arc<BoundScan>>,
    schema: SchemaRef,
    /// Partitions asked for.
    wanted_partitions: usize,
    partitions: usize,
    fetch: Option<usize>,
    /// Whether filters are taken, and statistics and order told.
    pruning: bool,
    statistics: Arc<OnceLock<Statistics>>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl ZarrScanExec {
    /// A scan of the columns `projection` of `grid` where all `conditions` hold, in at most `partitions` partitions, each of at most `fetch` rows, for
    /// batches of `batch_size`.
    ///
    /// With `pruning` it takes filters later too, and tells the order of its rows and what it knows of them.
    ///
    /// # Errors
    /// A projection of columns that the grid does not have, and conditions that cannot be read.
    pub(crate) fn try_new(
        grid: Arc<GridReader>,
        projection: &[usize],
        conditions: Vec<Condition>,
        (partitions, batch_size): (usize, usize),
        fetch: Option<usize>,
        pruning: bool,
    ) -> Result<Self> {
        let schema = Arc::new(grid.schema.project(projection)?);
        let dynamic = Vec::new();
        let scan = Scan { grid, projection: projection.into(), conditions, batch_size, trusts_bounds: false, dynamic };
        let bound = if scan.is_late() { None } else { Some(scan.bind()?) };
        Self::new(scan, bound, schema, partitions, fetch, pruning)
    }

    /// Why no row can satisfy the conditions, where one of them leaves no index of its dimension: the condition, and how far its coordinates reach.
    #[must_use]
    pub fn selects_nothing(&self) -> Option<String> {
        let condition = self.bound.as_ref()?.plan.emptied_by.as_ref()?;
        let coordinates = self.scan.grid.coordinates();
        let all = Selection::all(&self.scan.grid.sizes);
        let range = |column: &usize| {
            let statistics = statistics::of_column(&coordinates, &all, *column).ok()?;
            let (low, high) = (statistics.min_value.get_value()?.clone(), statistics.max_value.get_value()?.clone());
            Some(format!("{} runs {low} … {high}", self.scan.grid.schema.field(*column).name()))
        };
        let ranges: Vec<String> = condition.columns().iter().filter_map(range).collect();
        Some(format!("no cell satisfies `{condition}`: {}", ranges.join(", ")))
    }

    fn new(
        scan: Scan,
        bound: Option<BoundScan>,
        schema: SchemaRef,
        wanted: usize,
        fetch: Option<usize>,
        pruning: bool,
    ) -> Result<Self> {
        let bound = bound.map(Arc::new);
        let most = bound.as_ref().map_or(u64::MAX, |b| b.blocks.count());
        let partitions = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, wanted.max(1));
        let equivalences = match &bound {
            Some(bound) if pruning => properties::equivalences(&scan, bound, &schema)?,
            _ => EquivalenceProperties::new(Arc::clone(&schema)),
        };
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            scan: Arc::new(scan),
            bound,
            schema,
            wanted_partitions: wanted,
            partitions,
            fetch,
            pruning,
            statistics: Arc::default(),
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        })
    }

    /// Add `filter`, an expression over the columns of this plan, to what `scan` has to satisfy; false where it cannot be evaluated there.
    fn take_filter(scan: &mut Scan, filter: &Arc<dyn PhysicalExpr>) -> bool {
        let Some(conditions) = Condition::all_of(filter, &scan.grid.schema).ok().filter(|_| !is_volatile(filter))
        else {
            return false;
        };
        for condition in conditions {
            if condition.when() == When::Dynamic {
                scan.dynamic.push(condition);
            } else {
                scan.conditions.push(condition);
            }
        }
        true
    }

    /// Whether rows can be counted without reading anything.
    fn counted(&self) -> Option<u64> {
        let bound = self.bound.as_ref()?;
        bound.rows().filter(|_| self.scan.projection.is_empty() && self.scan.dynamic.is_empty())
    }
}

impl DisplayAs for ZarrScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = display::parts(&self.scan, self.bound.as_deref());
        if let Some(bound) = self.bound.as_ref().filter(|_| self.pruning) {
            let order = properties::ordering(&self.scan, bound, &self.schema);
            if !order.is_empty() {
                let order: Vec<String> = order.iter().map(ToString::to_string).collect();
                parts.push(("ordering", format!("[{}]", order.join(", "))));
            }
        }
        parts.push(("partitions", self.partitions.to_string()));
        if let Some(fetch) = self.fetch {
            parts.push(("fetch", fetch.to_string()));
        }
        let is_tree = matches!(format, DisplayFormatType::TreeRender);
        if !is_tree {
            write!(f, "ZarrScanExec:")?;
        }
        display::write(&parts, is_tree, f)
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(self.scan.conditions.iter().chain(&self.scan.dynamic).map(Condition::expr), f)
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
        let (Some(bound), None) = (&self.bound, args.partition()) else {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
        };
        let mut statistics = match self.statistics.get() {
            Some(known) => known.clone(),
            None if self.pruning => {
                let known = properties::of_rows(&self.scan, bound, &self.schema)?;
                self.statistics.get_or_init(|| known).clone()
            }
            None => Statistics {
                num_rows: usize::try_from(self.scan.grid.rows()).map_or(Precision::Absent, Precision::Exact),
                ..Statistics::new_unknown(&self.schema)
            },
        };
        if let Some(fetch) = self.fetch {
            // Which rows those are is not known, and a partition may have fewer.
            let is_exact = self.partitions == 1 && matches!(statistics.num_rows, Precision::Exact(_));
            let rows = statistics.num_rows.get_value().map(|n| (*n).min(fetch.saturating_mul(self.partitions)));
            statistics = statistics.to_inexact();
            statistics.num_rows = match rows {
                Some(rows) if is_exact => Precision::Exact(rows),
                Some(rows) => Precision::Inexact(rows),
                None => Precision::Absent,
            };
        }
        Ok(Arc::new(statistics))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(Self { fetch: limit, metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        offered: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = &offered.parent_filters;
        // A fetch counts rows of the filters before it: another filter would have to come after it.
        if filters.is_empty() || self.fetch.is_some() || !self.pruning || !ZarrConfig::of(config).pruning {
            return Ok(FilterPushdownPropagation::with_parent_pushdown_result(vec![PushedDown::No; filters.len()]));
        }
        let mut scan = self.scan.as_ref().clone();
        scan.trusts_bounds = !config.optimizer.enable_aggregate_dynamic_filter_pushdown;
        let answer = |taken| if taken { PushedDown::Yes } else { PushedDown::No };
        let answers: Vec<PushedDown> =
            filters.iter().map(|f| answer(Self::take_filter(&mut scan, &f.filter))).collect();
        let bound = match &self.bound {
            // Dynamic conditions leave the others as they are.
            Some(bound) if scan.conditions.len() == self.scan.conditions.len() => Some(scan.bound(bound.plan.clone())),
            _ if scan.is_late() => None,
            _ => Some(scan.bind()?),
        };
        let scan = Self::new(scan, bound, Arc::clone(&self.schema), self.wanted_partitions, None, true)?;
        let updated: Arc<dyn ExecutionPlan> = Arc::new(scan);
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(answers).with_updated_node(updated))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batch_size = context.session_config().batch_size().max(1);
        let fetch = self.fetch.unwrap_or(usize::MAX);
        let metrics = ScanMetrics::new(&self.metrics, partition);
        let schema = Arc::clone(&self.schema);
        if let Some(rows) = self.counted() {
            let rows = share(rows, partition, self.partitions);
            let rows = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX).min(fetch);
            let batches = counted_rows(Arc::clone(&schema), rows, batch_size, metrics);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(batches))));
        }
        let grid = Arc::clone(&self.scan.grid);
        let scan = PartitionScan {
            scan: Arc::clone(&self.scan),
            schema: Arc::clone(&schema),
            bound: self.bound.clone(),
            partition,
            partitions: self.partitions,
            maker: RowMaker::new(grid, Arc::clone(&self.scan.projection), batch_size),
            batch_size,
            remaining: fetch,
            reservation: MemoryConsumer::new(format!("ZarrScanExec[{partition}]")).register(context.memory_pool()),
            metrics,
            progress: None,
        };
        let batches =
            futures::stream::try_unfold(
                scan,
                |mut scan| async move { Ok(scan.next().await?.map(|batch| (batch, scan))) },
            );
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// Batches without columns.
fn counted_rows(
    schema: SchemaRef,
    rows: usize,
    batch_size: usize,
    metrics: ScanMetrics,
) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut remaining = rows;
    std::iter::from_fn(move || {
        let count = remaining.min(batch_size);
        remaining -= count;
        metrics.baseline.record_output(count);
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        (count > 0).then(|| Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)?))
    })
}
