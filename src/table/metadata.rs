//! `zarr_metadata`: the variables of a group, a row each.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, ListArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;
use serde_json::{Map, Value};

use crate::dataset::{Dataset, Role, Variable};
use crate::error::Error;
use crate::options::ZarrOptions;
use crate::read::ArrayReader;
use crate::store::codec::CodecMetadata;
use crate::store::data_type::{DataType, NumpyUnit};
use crate::store::{Cuts, ReadableStore};

/// A row of `zarr_metadata`.
#[derive(Debug, Default)]
struct Row {
    name: String,
    role: &'static str,
    dims: Option<String>,
    shape: Option<Lengths>,
    chunks: Option<Lengths>,
    shards: Option<Lengths>,
    dtype: Option<String>,
    column_type: Option<String>,
    codecs: Option<String>,
    units: Option<String>,
    broadcast: bool,
    reason: Option<String>,
}

/// One length a dimension; none where chunks differ in length.
type Lengths = Vec<Option<i64>>;

/// The variables of `dataset`, in the store's order, then those that cannot be read as variables at all.
///
/// The whole group is listed, whatever table of it the options name.
///
/// # Errors
/// A group without any variable.
pub(super) fn table(
    store: &Arc<dyn ReadableStore>,
    dataset: &Dataset,
    options: &ZarrOptions,
) -> Result<Arc<dyn TableProvider>> {
    if dataset.variables.is_empty() && dataset.left_out.is_empty() {
        // Says what else there is, such as groups.
        dataset.grid(options)?;
    }
    let names =
        |variables: &mut dyn Iterator<Item = &Variable>| variables.map(|v| v.name.clone()).collect::<HashSet<_>>();
    let group = Group { dataset, options, grids: dataset.grids(), auxiliary: names(&mut dataset.auxiliary()) };
    let mut rows: Vec<Row> = dataset.variables.iter().map(|v| group.row(store, v)).collect();
    rows.extend(dataset.left_out.iter().map(|l| Row {
        name: l.name.clone(),
        role: LEFT_OUT,
        reason: Some(l.reason.clone()),
        ..Row::default()
    }));
    let batch = batch(&rows)?;
    Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
}

/// Role of a variable that no table has.
const LEFT_OUT: &str = "left out";

struct Group<'a> {
    dataset: &'a Dataset,
    options: &'a ZarrOptions,
    /// A variable of each grid.
    grids: Vec<&'a Variable>,
    auxiliary: HashSet<String>,
}

impl Group<'_> {
    fn row(&self, store: &Arc<dyn ReadableStore>, variable: &Variable) -> Row {
        let array = &variable.array;
        let role = self.role(variable);
        let reader = ArrayReader::try_new(Arc::clone(store), Arc::clone(array));
        let encoding = variable.encoding(role == Some(Role::Dimension), self.options);
        let reason = [reader.as_ref().err(), encoding.as_ref().err()].into_iter().flatten().next().map(reason);
        let lengths = |cuts: &mut dyn Iterator<Item = &Cuts>| {
            let length = |cuts: &Cuts| match cuts {
                Cuts::Regular(length) => Some(signed(*length)),
                Cuts::Irregular(_) => None,
            };
            cuts.take(variable.dims.len()).map(length).collect::<Lengths>()
        };
        let stored = lengths(&mut array.chunk_grid.0.iter().map(|d| &d.cuts));
        let chunks = match &reader {
            Ok(reader) => lengths(&mut reader.chunk_grid().0.iter().map(|d| &d.cuts)),
            Err(_) => stored.clone(),
        };
        Row {
            name: variable.name.clone(),
            role: if reason.is_some() { LEFT_OUT } else { role.map_or("hidden", Role::name) },
            dims: Some(variable.dims.join(",")),
            shape: Some(variable.shape.iter().map(|n| Some(signed(*n))).collect()),
            chunks: Some(chunks),
            shards: array.codecs.iter().any(|c| c.name == "sharding_indexed").then_some(stored),
            dtype: Some(type_name(&array.data_type)),
            column_type: encoding.ok().map(|e| e.arrow_type().to_string()),
            codecs: Some(codec_names(&array.codecs)),
            units: variable.attribute("units").map(str::to_owned),
            broadcast: reason.is_none() && self.is_broadcast(variable, role),
            reason,
        }
    }

    /// `None` for what is no column of any table: bounds and grid mappings.
    fn role(&self, variable: &Variable) -> Option<Role> {
        if variable.is_dimension_coordinate() {
            Some(Role::Dimension)
        } else if self.dataset.is_hidden(&variable.name) {
            None
        } else if self.auxiliary.contains(&variable.name) {
            Some(Role::Auxiliary)
        } else if self.grids.iter().any(|g| self.dataset.is_fixed_in(variable, g)) {
            Some(Role::FixedField)
        } else {
            Some(Role::Data)
        }
    }

    /// Whether it is a column of a table with more dimensions, so that its values repeat there. Of dimension coordinates that goes without saying.
    fn is_broadcast(&self, variable: &Variable, role: Option<Role>) -> bool {
        let repeats_in = |g: &&Variable| {
            variable.dims.len() < g.dims.len()
                && variable.dims.iter().all(|d| g.dims.contains(d))
                && variable.agrees_with(g)
        };
        role == Some(Role::FixedField) || role == Some(Role::Auxiliary) && self.grids.iter().any(repeats_in)
    }
}

fn batch(rows: &[Row]) -> Result<RecordBatch> {
    let text = |value: fn(&Row) -> Option<&str>| Arc::new(rows.iter().map(value).collect::<StringArray>()) as ArrayRef;
    let lengths = |value: fn(&Row) -> &Option<Lengths>| {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows.iter().map(|r| value(r).clone()))) as ArrayRef
    };
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("name", text(|r| Some(&r.name)), false),
        ("role", text(|r| Some(r.role)), false),
        ("dims", text(|r| r.dims.as_deref()), true),
        ("shape", lengths(|r| &r.shape), true),
        ("chunks", lengths(|r| &r.chunks), true),
        ("shards", lengths(|r| &r.shards), true),
        ("dtype", text(|r| r.dtype.as_deref()), true),
        ("column_type", text(|r| r.column_type.as_deref()), true),
        ("codecs", text(|r| r.codecs.as_deref()), true),
        ("units", text(|r| r.units.as_deref()), true),
        ("broadcast", Arc::new(rows.iter().map(|r| Some(r.broadcast)).collect::<BooleanArray>()), false),
        ("reason", text(|r| r.reason.as_deref()), true),
    ])?)
}

/// The reason alone: the row names the array.
fn reason(error: &Error) -> String {
    match error {
        Error::Unsupported { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

fn signed(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// `transpose, bytes, blosc`; the codecs inside shards in parentheses.
fn codec_names(codecs: &[CodecMetadata]) -> String {
    codecs.iter().map(|c| codec_name(&c.name, Some(&c.configuration))).collect::<Vec<_>>().join(", ")
}

fn codec_name(name: &str, configuration: Option<&Map<String, Value>>) -> String {
    let Some(inner) = configuration.and_then(|c| c.get("codecs")).and_then(Value::as_array) else {
        return name.to_owned();
    };
    let inner = inner.iter().map(|codec| match codec {
        Value::String(name) => name.clone(),
        codec => codec_name(
            codec.get("name").and_then(Value::as_str).unwrap_or_default(),
            codec.get("configuration").and_then(Value::as_object),
        ),
    });
    format!("{name}({})", inner.collect::<Vec<_>>().join(", "))
}

/// Format 3's name of a data type, and of those that have none there zarr-python's.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::BFloat16 => "bfloat16".into(),
        DataType::FixedBytes(n) => format!("null_terminated_bytes({n})"),
        DataType::FixedUtf32(n) => format!("fixed_length_utf32({n})"),
        DataType::Raw(n) => format!("raw_bytes({n})"),
        DataType::Bytes => "variable_length_bytes".into(),
        DataType::DateTime64 { unit, scale } => format!("numpy.datetime64{}", tick(*unit, *scale)),
        DataType::TimeDelta64 { unit, scale } => format!("numpy.timedelta64{}", tick(*unit, *scale)),
        DataType::Struct(fields, _) => {
            let fields: Vec<String> =
                fields.iter().map(|f| format!("{}: {}", f.name, type_name(&f.data_type))).collect();
            format!("struct({})", fields.join(", "))
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

/// `[25ns]`, as numpy writes it.
fn tick(unit: NumpyUnit, scale: u32) -> String {
    let unit = match unit {
        NumpyUnit::Year => "Y",
        NumpyUnit::Month => "M",
        NumpyUnit::Week => "W",
        NumpyUnit::Day => "D",
        NumpyUnit::Hour => "h",
        NumpyUnit::Minute => "m",
        NumpyUnit::Second => "s",
        NumpyUnit::Millisecond => "ms",
        NumpyUnit::Microsecond => "us",
        NumpyUnit::Nanosecond => "ns",
        NumpyUnit::Picosecond => "ps",
        NumpyUnit::Femtosecond => "fs",
        NumpyUnit::Attosecond => "as",
        NumpyUnit::Generic => return String::new(),
    };
    if scale == 1 { format!("[{unit}]") } else { format!("[{scale}{unit}]") }
}
