//! The CF conventions: what stored numbers mean.

mod calendar;
mod encoding;
mod label;
mod missing;
mod parts;
mod time;

pub(crate) use calendar::{Calendar, Date};
pub(crate) use encoding::{Encoding, Kind, Packing, arrow_unit, is_time_axis, struct_fields};
pub(crate) use label::{Label, Written, calendar_of_text, calendar_of_timestamps};
pub(crate) use missing::Missing;
pub(crate) use parts::{PARTS, Part, Precision, Stride, season};
pub use time::TimeUnit;
pub(crate) use time::{TimeEncoding, TimestampLabel, duration_from_float};
