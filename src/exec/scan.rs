//! What a scan does: its conditions, the cells that they leave, and the Blocks of those.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::Result;

use crate::dataset::Role;
use crate::planning::{BlockGrid, Condition, Plan, Selection, When};
use crate::read::{ColumnReader, GridReader};

/// The columns and conditions of a scan.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    pub(super) grid: Arc<GridReader>,
    /// The columns of its rows.
    pub(super) projection: Arc<[usize]>,
    /// What its rows satisfy, except for dynamic conditions.
    pub(super) conditions: Vec<Condition>,
    /// Rows of a batch, and of a Block no fewer where chunks are small.
    pub(super) batch_size: usize,
    /// Whether dynamic conditions that are bounds alone hold for all rows that are needed.
    pub(super) trusts_bounds: bool,
    /// Conditions that change while it runs; rows that do not satisfy them may be left out.
    pub(super) dynamic: Vec<Condition>,
}

/// A scan whose conditions have been evaluated on coordinates.
#[derive(Debug, Clone)]
pub(super) struct BoundScan {
    /// What is selected, and the conditions that are left.
    pub(super) plan: Plan,
    /// The Blocks of what is selected.
    pub(super) blocks: BlockGrid,
}

impl Scan {
    /// Whether the conditions have to wait until the plan runs: for subqueries, or for coordinates that nobody has read yet.
    pub(super) fn is_late(&self) -> bool {
        let missing = |column: &usize| self.grid.columns.get(*column).is_some_and(ColumnReader::is_missing);
        let waits = |c: &Condition| c.when() == When::Running || c.columns().iter().any(missing);
        self.conditions.iter().any(waits)
    }

    /// Evaluate the conditions on the coordinates in memory.
    ///
    /// # Errors
    /// Conditions that cannot be read.
    pub(super) fn bind(&self) -> Result<BoundScan> {
        Ok(self.bound(Plan::new(&self.grid.coordinates(), &self.conditions)?))
    }

    /// The same with the conditions evaluated before.
    pub(super) fn bound(&self, plan: Plan) -> BoundScan {
        let least = self.batch_size as u64;
        let blocks = match self.grid.chunks(&self.data_columns()) {
            Some(chunks) => BlockGrid::following(&chunks, &plan.selection, least),
            None => BlockGrid::of_cells(&self.grid.sizes, &plan.selection, least),
        };
        BoundScan { plan, blocks }
    }

    /// Cells of `selection` that `condition` has to be evaluated on, where it is about coordinates alone; saturated.
    pub(super) fn cells_of(&self, condition: &Condition, selection: &Selection) -> u64 {
        let columns = condition.columns().iter().filter_map(|c| self.grid.columns.get(*c));
        let axes: BTreeSet<usize> = columns.flat_map(|c| c.axes.iter().copied()).collect();
        axes.iter().filter_map(|a| selection.dims.get(*a)).fold(1, |n, set| n.saturating_mul(set.len()))
    }

    /// Read the coordinates that conditions name.
    ///
    /// # Errors
    /// Whatever keeps them from being read.
    pub(super) async fn load(&self) -> Result<()> {
        let conditions = self.conditions.iter().chain(&self.dynamic);
        let named: Vec<usize> = conditions.flat_map(|c| c.columns().to_vec()).collect();
        Ok(self.grid.load(&named).await?)
    }

    /// Read the coordinates that conditions name, then evaluate those.
    ///
    /// # Errors
    /// Whatever keeps coordinates from being read, and conditions too.
    pub(super) async fn load_and_bind(&self) -> Result<BoundScan> {
        self.load().await?;
        self.bind()
    }

    /// Whether `column` is a data variable.
    pub(super) fn is_data(&self, column: usize) -> bool {
        self.grid.columns.get(column).is_some_and(|c| c.role == Role::Data)
    }

    /// The data variables that rows or conditions need, ascending.
    pub(super) fn data_columns(&self) -> Vec<usize> {
        let conditions = self.conditions.iter().chain(&self.dynamic).flat_map(Condition::columns);
        let named = self.projection.iter().chain(conditions).copied();
        let mut columns: Vec<usize> = named.filter(|c| self.is_data(*c)).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Chunks of the data variables, and how many of them hold a cell of `selection`.
    pub(super) fn chunks(&self, selection: &Selection) -> (u64, u64) {
        let (mut total, mut matched) = (0u64, 0u64);
        for chunks in self.data_columns().iter().filter_map(|c| self.grid.columns.get(*c)?.chunks()) {
            total = total.saturating_add(chunks.iter().fold(1, |n, d| n.saturating_mul(d.count())));
            let products = selection.chunks(&chunks);
            matched = products.iter().fold(matched, |n, p| n.saturating_add(crate::planning::cells(p)));
        }
        (total, matched)
    }
}

impl BoundScan {
    /// Number of rows, if that takes no reading.
    pub(super) fn rows(&self) -> Option<u64> {
        self.plan.selection.rows().filter(|_| self.plan.is_exact())
    }
}
