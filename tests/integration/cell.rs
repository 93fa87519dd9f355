//! Results of queries as plain values.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType, UInt64Type};

/// A value that is not NULL.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// Nanoseconds since 1970.
    Time(i128),
}

/// The values of one row; `None` is NULL.
pub(crate) type Row = Vec<Option<Cell>>;

impl Cell {
    /// The order of SQL among values of one type, `None` across types.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) | (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(a.total_cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// The number, where it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            #[expect(clippy::cast_precision_loss, reason = "compared within a tolerance")]
            Self::Int(i) => Some(*i as f64),
            _ => None,
        }
    }
}

/// All rows of `batches`.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Option<Cell>>> = batch.columns().iter().map(cells).collect();
        rows.extend((0..batch.num_rows()).map(|i| columns.iter().map(|c| c[i].clone()).collect::<Row>()));
    }
    rows
}

fn cells(array: &ArrayRef) -> Vec<Option<Cell>> {
    let by = |value: &dyn Fn(usize) -> Cell| (0..array.len()).map(|i| array.is_valid(i).then(|| value(i))).collect();
    let to = |t: &DataType| cast(array, t).unwrap();
    match array.data_type() {
        DataType::Null => vec![None; array.len()],
        DataType::Boolean => by(&|i| Cell::Bool(array.as_boolean().value(i))),
        DataType::UInt64 => by(&|i| Cell::Int(array.as_primitive::<UInt64Type>().value(i).into())),
        t if t.is_integer() => {
            let wide = to(&DataType::Int64);
            by(&|i| Cell::Int(wide.as_primitive::<Int64Type>().value(i).into()))
        }
        t if t.is_floating() => {
            let wide = to(&DataType::Float64);
            by(&|i| Cell::Float(wide.as_primitive::<Float64Type>().value(i)))
        }
        DataType::Timestamp(unit, None) => {
            let scale = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            let ticks = to(&DataType::Int64);
            by(&|i| Cell::Time(i128::from(ticks.as_primitive::<Int64Type>().value(i)) * scale))
        }
        DataType::Date32 | DataType::Date64 => {
            let wide = to(&DataType::Timestamp(TimeUnit::Nanosecond, None));
            by(&|i| Cell::Time(wide.as_primitive::<TimestampNanosecondType>().value(i).into()))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            let text = to(&DataType::Utf8);
            by(&|i| Cell::Text(text.as_string::<i32>().value(i).to_owned()))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = to(&DataType::Binary);
            let hex = |b: &[u8]| b.iter().fold(String::new(), |text, x| text + &format!("{x:02x}"));
            by(&|i| Cell::Text(hex(bytes.as_binary::<i32>().value(i))))
        }
        t => panic!("a column of type {t}"),
    }
}
