//! The table of a store the slow way: whole arrays through zarrs, every cell decoded by itself, every row built.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "numbers are cast and compared exactly as the rules of stores say"
)]

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use base64::Engine as _;
use half::f16;
use serde_json::Value;
use zarrs::array::{Array, ArrayBytes};
use zarrs::storage::store::MemoryStore;

use super::calendar::{self, Moment};
use super::element::Type;
use super::generate::{Dataset, Role, Variable};
use crate::cell::{Cell, Row};

/// A table as rows.
pub(crate) struct Table {
    /// Name and type of each column.
    pub(crate) columns: Vec<(String, DataType)>,
    /// So many of the columns are dimensions.
    pub(crate) dims: usize,
    pub(crate) rows: Vec<Row>,
}

/// The values of a column along its own axes.
struct Column {
    name: String,
    axes: Vec<usize>,
    data_type: DataType,
    values: Vec<Option<Cell>>,
}

/// The table of `dataset`.
pub(crate) fn table(dataset: &Dataset) -> Table {
    let index = |name: String, axis: usize| {
        let values = (0..dataset.dims[axis].1).map(|i| Some(Cell::Int(i.into()))).collect();
        Column { name, axes: vec![axis], data_type: DataType::Int64, values }
    };
    let mut columns: Vec<Column> = Vec::new();
    for (axis, (name, _)) in dataset.dims.iter().enumerate() {
        let coordinate = dataset.variables.iter().find(|v| v.role == Role::Dimension && v.name == *name);
        columns.push(coordinate.map_or_else(|| index(name.clone(), axis), |v| column(dataset, v)));
    }
    for role in [Role::Auxiliary, Role::Data] {
        columns.extend(dataset.variables.iter().filter(|v| v.role == role).map(|v| column(dataset, v)));
    }
    if dataset.options.contains(&("index_columns", "true")) {
        columns.extend(dataset.dims.iter().enumerate().map(|(axis, d)| index(format!("{}_index", d.0), axis)));
    }
    let sizes: Vec<usize> = dataset.dims.iter().map(|d| usize::try_from(d.1).unwrap()).collect();
    let mut rows = Vec::new();
    for row in 0..sizes.iter().product() {
        let at = unravel(row, &sizes);
        let position = |c: &Column| c.axes.iter().fold(0, |p, a| p * sizes[*a] + at[*a]);
        rows.push(columns.iter().map(|c| c.values[position(c)].clone()).collect());
    }
    Table { columns: columns.into_iter().map(|c| (c.name, c.data_type)).collect(), dims: sizes.len(), rows }
}

fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, n) in index.iter_mut().zip(shape).rev() {
        (*i, position) = (position % n, position / n);
    }
    index
}

/// Read and decode a whole array.
fn column(dataset: &Dataset, variable: &Variable) -> Column {
    let raw = raw(dataset, variable);
    let decoding = Decoding::new(dataset, variable);
    let mut moments = HashMap::new();
    let decoded = raw.into_iter().map(|r| r.map_or(Decoded::Null, |r| decoding.decode(r, &mut moments)));
    let values: Vec<Decoded> = decoded.collect();
    // Dates that Gregorian lacks make a whole coordinate text.
    let lacking = values.iter().any(|v| matches!(v, Decoded::Time(t) if !t.is_gregorian()));
    let text = decoding.calendar.as_deref().is_some_and(calendar::is_text) || lacking;
    let values = values.into_iter().map(|v| match v {
        Decoded::Null => None,
        Decoded::Value(cell) => Some(cell),
        Decoded::Time(t) => Some(if text { Cell::Text(t.to_string()) } else { Cell::Time(t.nanoseconds()) }),
    });
    let data_type = if text { DataType::Utf8View } else { decoding.arrow_type() };
    Column { name: variable.name.clone(), axes: variable.axes.clone(), data_type, values: values.collect() }
}

/// The elements of a whole array; `None` for a cell of a chunk that was never written where there is no fill value.
///
/// Chunks are read whole, since zarrs 0.23.14 fails to read parts of transposed shards.
fn raw(dataset: &Dataset, variable: &Variable) -> Vec<Option<Raw>> {
    let array = Array::open(Arc::clone(&dataset.arrays), &format!("/{}", variable.name)).unwrap();
    let shape: Vec<usize> = array.shape().iter().map(|n| usize::try_from(*n).unwrap()).collect();
    let mut chunks = HashMap::new();
    let element = |cell: usize| {
        let at = unravel(cell, &shape);
        let lengths = array.chunk_grid().chunk_shape_u64(&vec![0; shape.len()]).unwrap().unwrap();
        let chunk: Vec<u64> = at.iter().zip(&lengths).map(|(i, n)| *i as u64 / n).collect();
        let (lengths, elements) = chunks.entry(chunk.clone()).or_insert_with(|| {
            let lengths: Vec<usize> = lengths.iter().map(|n| usize::try_from(*n).unwrap()).collect();
            let written = array.retrieve_encoded_chunk(&chunk).unwrap().is_some();
            (lengths, (written || !variable.fill.is_null()).then(|| elements(&array, &chunk, variable.data_type)))
        });
        let position = at.iter().zip(lengths.iter()).fold(0, |p, (i, n)| p * n + i % n);
        elements.as_ref().map(|e: &Vec<Raw>| e[position].clone())
    };
    (0..shape.iter().product()).map(element).collect()
}

/// The elements of a chunk.
fn elements(array: &Array<MemoryStore>, chunk: &[u64], data_type: Type) -> Vec<Raw> {
    if data_type == Type::Text {
        return array.retrieve_chunk::<Vec<String>>(chunk).unwrap().into_iter().map(Raw::Text).collect();
    }
    let bytes = array.retrieve_chunk::<ArrayBytes<'static>>(chunk).unwrap().into_fixed().unwrap();
    bytes.chunks(data_type.size()).map(|b| Raw::of(b, data_type)).collect()
}

/// An element as stored.
#[derive(Clone)]
enum Raw {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Time(i64),
}

impl Raw {
    fn of(bytes: &[u8], data_type: Type) -> Self {
        let unsigned = bytes.iter().rev().fold(0i128, |n, b| (n << 8) | i128::from(*b));
        let bits = 8 * bytes.len();
        match data_type {
            Type::Bool => Self::Bool(unsigned != 0),
            Type::Int { signed: true, .. } if unsigned >> (bits - 1) == 1 => Self::Int(unsigned - (1 << bits)),
            Type::Int { .. } => Self::Int(unsigned),
            Type::Float(2) => Self::Float(f16::from_le_bytes(bytes.try_into().unwrap()).to_f64()),
            Type::Float(4) => Self::Float(f32::from_le_bytes(bytes.try_into().unwrap()).into()),
            Type::Float(_) => Self::Float(f64::from_le_bytes(bytes.try_into().unwrap())),
            Type::Time(..) => Self::Time(i64::from_le_bytes(bytes.try_into().unwrap())),
            Type::Utf32(_) => {
                let characters =
                    bytes.chunks(4).map(|c| char::from_u32(u32::from_le_bytes(c.try_into().unwrap())).unwrap());
                Self::Text(characters.collect::<String>().trim_end_matches('\0').to_owned())
            }
            Type::Bytes(_) | Type::Text => {
                Self::Text(std::str::from_utf8(bytes).unwrap().trim_end_matches('\0').to_owned())
            }
        }
    }
}

enum Decoded {
    Null,
    Value(Cell),
    Time(Moment),
}

/// The attributes of a variable, understood.
struct Decoding {
    stored: Type,
    /// The type after `_Unsigned`.
    data_type: Type,
    marks: Vec<Value>,
    nan_is_null: bool,
    keep_unsigned: bool,
    scale_offset: Option<(f64, f64)>,
    units: Option<String>,
    calendar: Option<String>,
}

impl Decoding {
    fn new(dataset: &Dataset, variable: &Variable) -> Self {
        let on = |key: &str, value: &str| dataset.options.contains(&(key, value));
        let attribute = |key: &str| variable.attributes.get(key);
        let list = |v: &Value| v.as_array().cloned().unwrap_or_else(|| vec![v.clone()]);
        let mut data_type = variable.data_type;
        if let (Type::Int { signed, .. }, Some(mark)) = (&mut data_type, attribute("_Unsigned")) {
            *signed = mark != "true";
        }
        let numeric = matches!(data_type, Type::Int { .. } | Type::Float(_));
        let masked = numeric && !dataset.options.contains(&("mask_and_scale", "false"));
        let mut marks: Vec<Value> = Vec::new();
        if masked {
            marks.extend(["_FillValue", "missing_value"].iter().filter_map(|k| attribute(k)).flat_map(list));
            let by_default = dataset.format == 2 && attribute("_FillValue").is_none();
            // The later of two settings holds.
            let setting =
                dataset.options.iter().rev().find(|(k, _)| *k == "use_zarr_fill_value_as_mask").map(|(_, v)| *v);
            let by_fill = setting.map_or(by_default, |s| s == "true");
            if by_fill && variable.role != Role::Dimension && !variable.fill.is_null() {
                marks.push(variable.fill.clone());
            }
        }
        let number = |key: &str| attribute(key).and_then(|v| list(v)[0].as_f64());
        let packed = masked && (attribute("scale_factor").is_some() || attribute("add_offset").is_some());
        let units = attribute("units")
            .and_then(Value::as_str)
            .filter(|u| u.contains(" since ") && !on("decode_times", "false"));
        Self {
            stored: variable.data_type,
            data_type,
            marks,
            nan_is_null: !on("nan_as_null", "false"),
            keep_unsigned: on("keep_unsigned", "true"),
            scale_offset: packed.then(|| (number("scale_factor").unwrap_or(1.0), number("add_offset").unwrap_or(0.0))),
            calendar: units.map(|_| attribute("calendar").and_then(Value::as_str).unwrap_or("standard").to_lowercase()),
            units: units.map(str::to_owned),
        }
    }

    fn arrow_type(&self) -> DataType {
        match self.data_type {
            _ if self.units.is_some() => {
                DataType::Timestamp(if self.nanoseconds() { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }, None)
            }
            _ if self.scale_offset.is_some() => DataType::Float64,
            Type::Bool => DataType::Boolean,
            Type::Float(8) => DataType::Float64,
            Type::Float(_) => DataType::Float32,
            Type::Text | Type::Bytes(_) | Type::Utf32(_) => DataType::Utf8View,
            Type::Time(unit, _) => {
                DataType::Timestamp(if unit == "ns" { TimeUnit::Nanosecond } else { TimeUnit::Microsecond }, None)
            }
            Type::Int { bytes, signed } => match (bytes, signed, self.keep_unsigned) {
                (1, true, _) => DataType::Int8,
                (2, true, _) | (1, false, false) => DataType::Int16,
                (4, true, _) | (2, false, false) => DataType::Int32,
                (8, true, _) | (4, false, false) => DataType::Int64,
                (1, false, true) => DataType::UInt8,
                (2, false, true) => DataType::UInt16,
                (4, false, true) => DataType::UInt32,
                _ => DataType::UInt64,
            },
        }
    }

    fn nanoseconds(&self) -> bool {
        self.units.as_ref().is_some_and(|u| u.starts_with("nanosecond"))
    }

    /// `moments` are those of the offsets seen so far.
    fn decode(&self, raw: Raw, moments: &mut HashMap<i128, Moment>) -> Decoded {
        let number = match raw {
            Raw::Bool(b) => return Decoded::Value(Cell::Bool(b)),
            Raw::Text(s) => return Decoded::Value(Cell::Text(s)),
            Raw::Time(i64::MIN) => return Decoded::Null,
            Raw::Time(ticks) => {
                let Type::Time(unit, scale) = self.stored else { unreachable!() };
                return Decoded::Value(Cell::Time(
                    i128::from(ticks) * i128::from(scale) * calendar::unit_nanoseconds(unit),
                ));
            }
            Raw::Int(i) => Raw::Int(self.reinterpreted(i)),
            float @ Raw::Float(_) => float,
        };
        if self.marks.iter().any(|m| self.is_marked(&number, m)) {
            return Decoded::Null;
        }
        let mut moment = |offset, units| {
            let known = moments.entry(offset);
            *known.or_insert_with(|| calendar::moment_of_eighths(offset, units, self.calendar.as_deref().unwrap()))
        };
        match (number, &self.units, self.scale_offset) {
            (Raw::Float(x), Some(_), _) if !x.is_finite() => Decoded::Null,
            (Raw::Float(x), Some(units), _) => Decoded::Time(moment((x * 8.0) as i128, units)),
            (Raw::Int(i), Some(units), _) => Decoded::Time(moment(i * 8, units)),
            (Raw::Float(x), None, _) if x.is_nan() && self.nan_is_null => Decoded::Null,
            (Raw::Float(x), None, Some((scale, offset))) => Decoded::Value(Cell::Float(x * scale + offset)),
            (Raw::Int(i), None, Some((scale, offset))) => Decoded::Value(Cell::Float(i as f64 * scale + offset)),
            (Raw::Float(x), None, None) => Decoded::Value(Cell::Float(x)),
            (Raw::Int(i), None, None) => Decoded::Value(Cell::Int(i)),
            _ => unreachable!("only numbers are left"),
        }
    }

    /// The integer in the type that `_Unsigned` names.
    fn reinterpreted(&self, i: i128) -> i128 {
        let Type::Int { bytes, signed } = self.data_type else { return i };
        let modulus = 1i128 << (8 * bytes);
        let unsigned = i.rem_euclid(modulus);
        if signed && unsigned >= modulus / 2 { unsigned - modulus } else { unsigned }
    }

    /// Whether a mark of missing cells means this value, compared in the stored type.
    fn is_marked(&self, number: &Raw, mark: &Value) -> bool {
        match number {
            Raw::Int(i) => match (mark.as_i64(), mark.as_u64(), mark.as_f64()) {
                (Some(m), ..) => self.reinterpreted(m.into()) == *i,
                (_, Some(m), _) => self.reinterpreted(m.into()) == *i,
                (.., Some(m)) => m == *i as f64,
                _ => false,
            },
            Raw::Float(x) => {
                let mark = match mark.as_str() {
                    Some("NaN") => f64::NAN,
                    Some("Infinity") => f64::INFINITY,
                    Some("-Infinity") => f64::NEG_INFINITY,
                    Some(text) => f64::from_le_bytes(
                        base64::engine::general_purpose::STANDARD.decode(text).unwrap().try_into().unwrap(),
                    ),
                    None => mark.as_f64().unwrap(),
                };
                let mark = match self.stored {
                    Type::Float(2) => f16::from_f64(mark).to_f64(),
                    Type::Float(4) => f64::from(mark as f32),
                    _ => mark,
                };
                mark == *x || (mark.is_nan() && x.is_nan())
            }
            _ => false,
        }
    }
}
