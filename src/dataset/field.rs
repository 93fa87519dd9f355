//! Arrow fields of columns: name, type, and the attributes that travel with them.

use std::collections::HashMap;

use arrow::datatypes::{DataType as ArrowType, Field};
use serde_json::Value;

use super::cf::Encoding;
use super::{Column, Role, Source};

/// Attributes that say what a column means; all others stay with the store.
const ATTRIBUTES: [&str; 14] = [
    "units",
    "calendar",
    "long_name",
    "standard_name",
    "cell_methods",
    "flag_values",
    "flag_meanings",
    "flag_masks",
    "grid_mapping",
    "positive",
    "axis",
    "_FillValue",
    "missing_value",
    "valid_range",
];

impl Role {
    /// Name of the role in the metadata of fields (key `zarr.role`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dimension => "dimension",
            Self::Auxiliary => "auxiliary coordinate",
            Self::Data => "data",
            Self::FixedField => "fixed field",
            Self::Index => "index",
            Self::Bound => "bounds",
        }
    }
}

/// The field of `column`, whose values `encoding` describes (`None` for indices). `dims` are the grid's dimensions.
///
/// Its metadata holds the CF attributes under their own names, `zarr.role`, `zarr.dims` (comma-separated), and `zarr.missing`, the stored values that mean NULL.
pub(crate) fn field(column: &Column, encoding: Option<&Encoding>, dims: &[String], nullable: bool) -> Field {
    let mut metadata = HashMap::from([
        ("zarr.role".to_owned(), column.role.name().to_owned()),
        (
            "zarr.dims".to_owned(),
            column.axes.iter().filter_map(|a| dims.get(*a)).map(String::as_str).collect::<Vec<_>>().join(","),
        ),
    ]);
    if let Source::Variable(variable) = &column.source {
        for key in ATTRIBUTES {
            if let Some(value) = variable.array.attributes.get(key).filter(|v| !v.is_null()) {
                metadata.insert(key.to_owned(), as_text(value));
            }
        }
    }
    if let Some(encoding) = encoding.filter(|e| !e.missing.is_empty()) {
        let marks = encoding
            .missing
            .integers
            .iter()
            .map(ToString::to_string)
            .chain(encoding.missing.floats.iter().map(ToString::to_string))
            .chain(encoding.missing.texts.iter().cloned());
        metadata.insert("zarr.missing".to_owned(), marks.collect::<Vec<_>>().join(" "));
    }
    let data_type = encoding.map_or(ArrowType::Int64, Encoding::arrow_type);
    Field::new(&column.name, data_type, nullable).with_metadata(metadata)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
