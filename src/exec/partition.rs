//! The run of one partition of a scan.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, BooleanBufferBuilder, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::{DynamicFilterTracker, DynamicFilterTracking};

use super::metrics::ScanMetrics;
use super::rows::{BlockRows, CellColumn, RowMaker};
use super::scan::{BoundScan, Scan};
use crate::dataset::Role;
use crate::planning::{Block, BlockQueue, Condition, Plan, Selection};

/// Cells on which a condition on data is evaluated at once.
const WINDOW: usize = 1 << 16;

/// What is left to do of one partition.
pub(super) struct PartitionScan {
    pub(super) scan: Arc<Scan>,
    pub(super) schema: SchemaRef,
    /// `None` until the conditions have been evaluated.
    pub(super) bound: Option<Arc<BoundScan>>,
    pub(super) partition: usize,
    pub(super) partitions: usize,
    pub(super) maker: RowMaker,
    pub(super) batch_size: usize,
    /// Rows that may still come.
    pub(super) remaining: usize,
    pub(super) reservation: MemoryReservation,
    pub(super) metrics: ScanMetrics,
    pub(super) progress: Option<Progress>,
}

/// Where a partition that runs stands.
pub(super) struct Progress {
    queue: BlockQueue,
    /// The cells that static and dynamic conditions leave.
    selection: Selection,
    dynamic: Vec<DynamicCondition>,
    /// Cells looked at since dynamic conditions were last evaluated on coordinates.
    cells: u64,
    current: Option<BlockRows>,
}

/// A condition that changes, and whether it has.
struct DynamicCondition {
    condition: Condition,
    tracker: Option<DynamicFilterTracker>,
    /// What it is now.
    now: Vec<Condition>,
    /// Whether that has not been evaluated on coordinates.
    is_new: bool,
    trusts_bounds: bool,
}

impl DynamicCondition {
    fn new(condition: &Condition, trusts_bounds: bool) -> Result<Self> {
        let tracker = match DynamicFilterTracking::classify(condition.expr()) {
            DynamicFilterTracking::Watching(tracker) => Some(tracker),
            _ => None,
        };
        Ok(Self {
            now: condition.now(trusts_bounds)?,
            condition: condition.clone(),
            tracker,
            is_new: true,
            trusts_bounds,
        })
    }

    fn follow(&mut self) -> Result<()> {
        if self.tracker.as_mut().is_some_and(DynamicFilterTracker::changed) {
            self.now = self.condition.now(self.trusts_bounds)?;
            self.is_new = true;
        }
        Ok(())
    }
}

impl PartitionScan {
    /// The next rows; `None` after the last.
    ///
    /// # Errors
    /// Whatever keeps chunks from being read and decoded or conditions from being evaluated, and the limit of memory.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut progress = match self.progress.take() {
            Some(progress) => progress,
            None => self.start().await?,
        };
        let batch = self.advance(&mut progress).await?;
        match &batch {
            Some(batch) => {
                self.remaining -= batch.num_rows();
                self.metrics.baseline.record_output(batch.num_rows());
                self.progress = Some(progress);
            }
            None => self.metrics.baseline.done(),
        }
        Ok(batch)
    }

    async fn start(&mut self) -> Result<Progress> {
        let bound = match &self.bound {
            Some(bound) => Arc::clone(bound),
            None => Arc::new(self.scan.load_and_bind().await?),
        };
        self.bound = Some(Arc::clone(&bound));
        if !self.scan.dynamic.is_empty() {
            self.scan.load().await?;
        }
        let dynamic = self.scan.dynamic.iter().map(|c| DynamicCondition::new(c, self.scan.trusts_bounds));
        Ok(Progress {
            queue: bound.blocks.share(self.partition, self.partitions),
            selection: bound.plan.selection.clone(),
            dynamic: dynamic.collect::<Result<_>>()?,
            cells: u64::MAX,
            current: None,
        })
    }

    async fn advance(&mut self, progress: &mut Progress) -> Result<Option<RecordBatch>> {
        let limit = self.batch_size.min(self.remaining);
        if limit == 0 {
            return Ok(None);
        }
        let Some(bound) = self.bound.clone() else { return Ok(None) };
        loop {
            // Blocks without a row may come one after the other, and a query has to end when it is dropped.
            tokio::task::consume_budget().await;
            if let Some(rows) = &mut progress.current
                && let Some(batch) = rows.next_batch(&self.schema, limit)?
            {
                return Ok(Some(batch));
            }
            // The buffers of this Block go back to the pool before the next one takes them.
            progress.current = None;
            self.follow_dynamic(&bound, progress)?;
            let Some(runs) = progress.queue.next() else { return Ok(None) };
            let Some(block) = bound.blocks.block(&runs, &progress.selection) else { continue };
            progress.cells = progress.cells.saturating_add(block.cells());
            self.reservation.try_resize(self.bytes(&block))?;
            let start = Instant::now();
            let rows = self.read(&bound.plan, &progress.dynamic, block).await;
            self.metrics.baseline.elapsed_compute().add_elapsed(start);
            self.metrics.record(&mut self.maker.context.counts);
            progress.current = rows?;
        }
    }

    /// Narrow what is left to what dynamic conditions on coordinates leave now. That costs as much as their dimensions have cells, so it is
    /// not done again before as many have been looked at.
    fn follow_dynamic(&self, bound: &BoundScan, progress: &mut Progress) -> Result<()> {
        for dynamic in &mut progress.dynamic {
            dynamic.follow()?;
        }
        let of_now = |d: &DynamicCondition| self.scan.cells_of(&d.condition, &bound.plan.selection);
        let cost = progress.dynamic.iter().filter(|d| d.is_new).map(of_now).fold(0, u64::saturating_add);
        if progress.cells < cost || !progress.dynamic.iter().any(|d| d.is_new) {
            return Ok(());
        }
        progress.cells = 0;
        let mut conditions = Vec::new();
        for dynamic in &mut progress.dynamic {
            dynamic.is_new = false;
            conditions.extend(dynamic.now.iter().cloned());
        }
        let left = Plan::new(&self.scan.grid.coordinates(), &conditions)?.selection;
        if !left.is_all(&self.scan.grid.sizes) {
            progress.selection = bound.plan.selection.and(&left);
            bound.blocks.narrow(&mut progress.queue, &left);
        }
        Ok(())
    }

    /// The rows of `block`; `None` where no cell satisfies all conditions.
    async fn read(&mut self, plan: &Plan, dynamic: &[DynamicCondition], mut block: Block) -> Result<Option<BlockRows>> {
        for condition in &plan.coordinates {
            if !self.keep(condition, &mut block, &mut HashMap::new()).await? {
                return Ok(None);
            }
            block = block.compact();
        }
        let mut read = HashMap::new();
        let scan = Arc::clone(&self.scan);
        let now = dynamic.iter().flat_map(|d| &d.now);
        let on_data = now.filter(|c| c.columns().iter().any(|c| scan.is_data(*c)));
        for condition in plan.data.iter().chain(on_data) {
            if !self.keep(condition, &mut block, &mut read).await? {
                return Ok(None);
            }
        }
        let compact = if block.kept.is_some() { block.clone().compact() } else { block.clone() };
        Ok(Some(self.maker.rows(&compact, read, &block).await?))
    }

    /// Keep the cells of `block` of which `condition` is true, reading the columns it names unless they have been `read`; `false` where there
    /// is none.
    async fn keep(
        &mut self,
        condition: &Condition,
        block: &mut Block,
        read: &mut HashMap<usize, CellColumn>,
    ) -> Result<bool> {
        let mut columns = Vec::with_capacity(condition.columns().len());
        for number in condition.columns() {
            if let Some(column) = read.get(number) {
                columns.push(column.clone());
                continue;
            }
            let column = self.maker.column(*number, block).await?;
            read.insert(*number, column.clone());
            columns.push(column);
        }
        let holds = evaluate(condition, &columns, block)?;
        let any = holds.count_set_bits() > 0;
        block.kept = Some(holds);
        Ok(any)
    }

    /// Bytes that the columns of a Block need in memory: the cells of data, and for all other columns a tile and the positions that it is made
    /// by.
    fn bytes(&self, block: &Block) -> usize {
        let data = self.scan.data_columns();
        let others = self.scan.projection.iter().copied().filter(|c| !self.scan.is_data(*c));
        let columns = data.into_iter().chain(others).filter_map(|i| self.scan.grid.columns.get(i));
        let cell: u64 = columns.map(|c| c.value_bytes() + if c.role == Role::Data { 0 } else { 8 }).sum();
        // A chunk is decoded whole, however little of it is wanted.
        let chunks = self.scan.data_columns().into_iter().filter_map(|c| self.scan.grid.columns.get(c)?.chunk_bytes());
        let bytes = block.cells().saturating_mul(cell).saturating_add(chunks.max().unwrap_or(0));
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// The wanted cells of `block` of which `condition` is true. It is evaluated on no others.
fn evaluate(condition: &Condition, columns: &[CellColumn], block: &Block) -> Result<BooleanBuffer> {
    let cells = usize::try_from(block.cells()).unwrap_or(usize::MAX);
    let mut holds = BooleanBufferBuilder::new(cells);
    let mut start = 0;
    while start < cells {
        let length = WINDOW.min(cells - start);
        let wanted: Vec<u64> = match &block.kept {
            None => (start..start + length).map(|i| i as u64).collect(),
            Some(kept) => kept.slice(start, length).set_indices().map(|i| (start + i) as u64).collect(),
        };
        let is_all = wanted.len() == length;
        let values = columns.iter().map(|c| if is_all { c.range(start, length) } else { c.pick(&wanted) });
        let values: Vec<ArrayRef> = values.collect::<crate::Result<_>>()?;
        let found =
            if wanted.is_empty() { BooleanBuffer::new_unset(0) } else { condition.evaluate(values, wanted.len())? };
        if is_all {
            holds.append_buffer(&found);
        } else {
            holds.append_n(length, false);
            let true_of = |i: usize| wanted.get(i).and_then(|c| usize::try_from(*c).ok());
            found.set_indices().filter_map(true_of).for_each(|cell| holds.set_bit(cell, true));
        }
        start += length;
    }
    Ok(holds.finish())
}
