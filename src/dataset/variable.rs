//! Variables: arrays with named dimensions, and how to decode them.

use std::sync::Arc;

use super::cf::Encoding;
use crate::error::{Error, Result};
use crate::options::ZarrOptions;
use crate::store::ArrayMetadata;
use crate::store::data_type::{DataType, MAX_ELEMENT};

/// An array of a group as the data model sees it.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// Name, unique in the table.
    pub(crate) name: String,
    /// Names of its dimensions, those inside an element (of a char array) left out.
    pub(crate) dims: Vec<String>,
    /// Length along each of `dims`.
    pub(crate) shape: Vec<u64>,
    /// Whether the array has names of dimensions; without, it shares none with others.
    pub(crate) named: bool,
    /// The array's metadata.
    pub(crate) array: Arc<ArrayMetadata>,
    /// Type of an element: that of the array, but text for char arrays.
    pub(crate) data_type: DataType,
    /// The part of the array's trailing dimension, if it has one more than `dims`, that holds an element.
    pub(crate) trailing: Option<std::ops::Range<u64>>,
}

impl Variable {
    /// The variable of `array`.
    pub(crate) fn new(name: String, array: ArrayMetadata) -> Self {
        let named = array.dimension_names.is_some();
        let dims = array
            .dimension_names
            .clone()
            .unwrap_or_else(|| (0..array.shape.len()).map(|i| format!("dim_{i}")).collect());
        Self {
            name,
            dims,
            shape: array.shape.clone(),
            named,
            data_type: array.data_type.clone(),
            trailing: None,
            array: Arc::new(array),
        }
    }

    /// Whether it is a coordinate of the dimension that it is named after.
    pub(crate) fn is_dimension_coordinate(&self) -> bool {
        self.named && matches!(self.dims.as_slice(), [dim] if *dim == self.name)
    }

    /// Whether a dimension stands twice among its dimensions.
    pub(crate) fn repeats_a_dimension(&self) -> bool {
        self.dims.iter().enumerate().any(|(i, d)| self.dims.iter().take(i).any(|e| e == d))
    }

    /// Length along the dimension `dim`.
    pub(crate) fn size_of(&self, dim: &str) -> Option<u64> {
        self.dims.iter().zip(&self.shape).find(|(d, _)| *d == dim).map(|(_, n)| *n)
    }

    /// Whether both have the same length along every dimension that they share. Arrays without names share dimensions with themselves only.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let owner = |v: &Self| (!v.named && !v.shape.is_empty()).then(|| v.name.clone());
        owner(self) == owner(other)
            && self.dims.iter().zip(&self.shape).all(|(d, n)| other.size_of(d).is_none_or(|m| m == *n))
    }

    /// Whether it is an array of single characters.
    pub(crate) fn is_char_array(&self) -> bool {
        matches!(self.data_type, DataType::FixedBytes(1)) && !self.dims.is_empty()
    }

    /// A char array as text: the last dimension becomes the element, where that is not too long for one.
    pub(crate) fn join_characters(&mut self) {
        let length = self.shape.last().copied().unwrap_or(0);
        let Some(size) = usize::try_from(length).ok().filter(|n| *n <= MAX_ELEMENT) else { return };
        self.dims.pop();
        self.shape.pop();
        self.data_type = DataType::FixedBytes(size);
        self.trailing = Some(0..length);
    }

    /// One side (0 lower, 1 upper) of a bounds variable, under another name.
    pub(crate) fn side(&self, name: String, side: u64) -> Self {
        let mut part = self.clone();
        part.name = name;
        part.dims.pop();
        part.shape.pop();
        part.trailing = Some(side..side + 1);
        part
    }

    /// Text of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.array.attributes.get(name).and_then(serde_json::Value::as_str)
    }

    /// How its elements become values; `is_dimension`: as a dimension coordinate, or a side of its bounds.
    pub(crate) fn encoding(&self, is_dimension: bool, options: &ZarrOptions) -> Result<Encoding> {
        Encoding::new(&self.array, &self.data_type, is_dimension, options)
            .map_err(|reason| Error::Unsupported { array: self.array.path.clone(), reason })
    }

    /// Bytes of a decoded element, or of a view of one where elements have lengths of their own.
    pub(crate) fn element_size(&self) -> u64 {
        self.data_type.fixed_size().unwrap_or(16) as u64
    }
}
