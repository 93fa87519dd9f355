//! The CF conventions: what stored numbers mean.

mod calendar;
mod encoding;
mod missing;
mod time;

pub(crate) use calendar::{Calendar, Date};
pub(crate) use encoding::{Encoding, Kind, Packing, arrow_unit, is_time_axis, struct_fields};
pub(crate) use missing::Missing;
pub use time::TimeUnit;
pub(crate) use time::{TimeEncoding, TimestampLabel, duration_from_float};
