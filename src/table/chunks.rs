//! `zarr_chunks`: the stored chunks of a group, a row each.

use std::sync::Arc;

use arrow::array::{Int64Array, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;

use crate::dataset::Dataset;
use crate::store::{ArrayMetadata, ReadableStore};

/// The stored chunks (the shards, where there are any) of all arrays of `dataset`, in the order of the store, each with its indices, the key of
/// its object and the bytes of that. Chunks that were never written have no row.
///
/// # Errors
/// Failures of the store, and stores that cannot list.
pub(super) async fn table(store: Arc<dyn ReadableStore>, dataset: &Dataset) -> Result<Arc<dyn TableProvider>> {
    let (mut arrays, mut chunks, mut keys, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for variable in &dataset.variables {
        let array = &variable.array;
        for (key, size) in store.list_objects(&array.path).await? {
            let Some(chunk) = chunk(array, &key) else { continue };
            arrays.push(variable.name.clone());
            chunks.push(Some(chunk.into_iter().map(|i| i64::try_from(i).ok()).collect::<Vec<_>>()));
            keys.push(key);
            bytes.push(i64::try_from(size).ok());
        }
    }
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("array", Arc::new(StringArray::from(arrays)) as _, false),
        ("chunk", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(chunks)) as _, false),
        ("key", Arc::new(StringArray::from(keys)) as _, false),
        ("bytes", Arc::new(Int64Array::from(bytes)) as _, true),
    ])?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}

/// The chunk that `key` is of; `None` where it is another object, or a chunk outside of the array.
fn chunk(array: &ArrayMetadata, key: &str) -> Option<Vec<u64>> {
    let own = key.strip_prefix(&array.path)?.trim_start_matches('/');
    let (dims, keys) = (&array.chunk_grid.0, array.chunk_keys);
    let indices = if keys.prefixed { own.strip_prefix('c')?.trim_start_matches(keys.separator) } else { own };
    let indices: Vec<u64> = if dims.is_empty() {
        Vec::new()
    } else {
        indices.split(keys.separator).map(|i| i.parse().ok()).collect::<Option<_>>()?
    };
    let is_inside = indices.len() == dims.len() && indices.iter().zip(dims).all(|(i, d)| *i < d.count());
    (is_inside && keys.key(&indices) == own).then_some(indices)
}
