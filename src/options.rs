//! Options of a table, with the names and defaults of xarray where it has them, and settings of a session.

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::DataFusionError;

use crate::dataset::cf::TimeUnit;
use crate::error::{Error, Result};

/// How a table is made of a store, and how values are decoded.
///
/// ```
/// # use datafusion_zarr::ZarrOptions;
/// let options = ZarrOptions::default().with("dims", "time,lat,lon")?.with("mask_and_scale", "false")?;
/// let error = ZarrOptions::default().with("mask_and_scal", "false").unwrap_err();
/// assert!(error.to_string().contains("did you mean `mask_and_scale`"));
/// # Ok::<(), datafusion_zarr::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ZarrOptions {
    /// `group`: path of the group inside the store.
    pub group: Option<String>,
    /// `dims`: the dimensions of the grid that is the table, in any order.
    pub dims: Option<Vec<String>>,
    /// `variables`: only these data variables.
    pub variables: Option<Vec<String>>,
    /// `drop_variables`: none of these arrays.
    pub drop_variables: Vec<String>,
    /// `consolidated`: use consolidated metadata (and fail without), or never; `auto` where there is some.
    pub consolidated: Option<bool>,
    /// `zarr_format`: 2 or 3 only; `auto` for whichever there is.
    pub zarr_format: Option<u8>,
    /// `mask_and_scale`: apply fill values and packing. Default true.
    pub mask_and_scale: Flag,
    /// `use_zarr_fill_value_as_mask`: `fill_value` means missing; `auto` in format 2 with named dimensions only.
    pub use_zarr_fill_value_as_mask: Option<bool>,
    /// `nan_as_null`: NaN is NULL. Default true.
    pub nan_as_null: Flag,
    /// `decode_times`: numbers with units of time are timestamps. Default true.
    pub decode_times: Flag,
    /// `time_unit`: unit of all timestamps: `s`, `ms`, `us`, `ns`.
    pub time_unit: Option<TimeUnit>,
    /// `keep_unsigned`: unsigned integers keep their type. Default false.
    pub keep_unsigned: bool,
    /// `index_columns`: add `<dim>_index` for every dimension. Default false.
    pub index_columns: bool,
    /// `bounds`: add `<coordinate>_lower` and `<coordinate>_upper`. Default false.
    pub bounds: bool,
}

/// A switch that is on unless it is turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(pub bool);

impl Default for Flag {
    fn default() -> Self {
        Self(true)
    }
}

/// Every key, with what it takes.
pub(crate) const KEYS: [(&str, &str); 14] = [
    ("group", "a path"),
    ("dims", "a list of dimensions"),
    ("variables", "a list of names"),
    ("drop_variables", "a list of names"),
    ("consolidated", "true, false or auto"),
    ("zarr_format", "2, 3 or auto"),
    ("mask_and_scale", "true or false"),
    ("use_zarr_fill_value_as_mask", "true, false or auto"),
    ("nan_as_null", "true or false"),
    ("decode_times", "true or false"),
    ("time_unit", "s, ms, us or ns"),
    ("keep_unsigned", "true or false"),
    ("index_columns", "true or false"),
    ("bounds", "true or false"),
];

impl ZarrOptions {
    /// The same with `key` set to `value`, as in `OPTIONS('key' 'value')`.
    ///
    /// # Errors
    /// A key that does not exist (the message names the nearest), or a value that it cannot have.
    pub fn with(mut self, key: &str, value: &str) -> Result<Self> {
        let Some((_, takes)) = KEYS.iter().find(|(k, _)| *k == key) else {
            return Err(Error::Option { option: key.to_owned(), reason: unknown(key, &KEYS.map(|(k, _)| k)) });
        };
        let bad = || Error::Option { option: key.to_owned(), reason: format!("`{value}` is not {takes}") };
        match key {
            "group" => self.group = Some(value.trim_matches('/').to_owned()),
            "dims" => self.dims = Some(list(value)),
            "variables" => self.variables = Some(list(value)),
            "drop_variables" => self.drop_variables = list(value),
            "consolidated" => self.consolidated = tristate(value, bad)?,
            "zarr_format" => {
                self.zarr_format = match value {
                    "2" => Some(2),
                    "3" => Some(3),
                    "auto" => None,
                    _ => return Err(bad()),
                }
            }
            "mask_and_scale" => self.mask_and_scale = Flag(flag(value).ok_or_else(bad)?),
            "use_zarr_fill_value_as_mask" => self.use_zarr_fill_value_as_mask = tristate(value, bad)?,
            "nan_as_null" => self.nan_as_null = Flag(flag(value).ok_or_else(bad)?),
            "decode_times" => self.decode_times = Flag(flag(value).ok_or_else(bad)?),
            "time_unit" => {
                self.time_unit = Some(match value {
                    "s" => TimeUnit::Second,
                    "ms" => TimeUnit::Millisecond,
                    "us" => TimeUnit::Microsecond,
                    "ns" => TimeUnit::Nanosecond,
                    _ => return Err(bad()),
                });
            }
            "keep_unsigned" => self.keep_unsigned = flag(value).ok_or_else(bad)?,
            "index_columns" => self.index_columns = flag(value).ok_or_else(bad)?,
            _ => self.bounds = flag(value).ok_or_else(bad)?,
        }
        Ok(self)
    }
}

/// Settings of a session: `SET zarr.pruning = false`.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use datafusion::prelude::SessionContext;
/// use datafusion_zarr::register_zarr;
///
/// let ctx = SessionContext::new();
/// register_zarr(&ctx)?;
/// ctx.sql("SET zarr.float32_literals = false").await?;
/// # Ok::<(), datafusion::error::DataFusionError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZarrConfig {
    /// `zarr.pruning`: evaluate filters in the scan, read only the chunks that they need, and answer from coordinates alone where that is
    /// possible. Default true.
    pub pruning: bool,
    /// `zarr.float32_literals`: compare Float32 columns with literals in Float32, as numpy and `DuckDB` do. Default true.
    pub float32_literals: bool,
}

impl Default for ZarrConfig {
    fn default() -> Self {
        Self { pruning: true, float32_literals: true }
    }
}

impl ZarrConfig {
    /// The settings of a session, the defaults where it has none.
    pub(crate) fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().copied().unwrap_or_default()
    }

    /// Every key, with its value and what it is for.
    fn settings(&mut self) -> [(&'static str, &mut bool, &'static str); 2] {
        [
            ("pruning", &mut self.pruning, "evaluate filters in the scan and read only the chunks that they need"),
            ("float32_literals", &mut self.float32_literals, "compare Float32 columns with literals in Float32"),
        ]
    }
}

impl ConfigExtension for ZarrConfig {
    const PREFIX: &'static str = "zarr";
}

impl ExtensionOptions for ZarrConfig {
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn std::any::Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(*self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), DataFusionError> {
        let mut settings = self.settings();
        let names: Vec<&str> = settings.iter().map(|(name, ..)| *name).collect();
        let Some((_, setting, _)) = settings.iter_mut().find(|(name, ..)| *name == key) else {
            let hint = unknown(key, &names);
            return Err(Error::Option { option: format!("zarr.{key}"), reason: hint }.into());
        };
        let bad = || Error::Option { option: format!("zarr.{key}"), reason: format!("`{value}` is not true or false") };
        **setting = flag(value).ok_or_else(bad)?;
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let mut values = *self;
        let entry = |(key, value, description): (&str, &mut bool, &'static str)| ConfigEntry {
            key: format!("{}.{key}", Self::PREFIX),
            value: Some(value.to_string()),
            description,
        };
        values.settings().into_iter().map(entry).collect()
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(|v| v.trim().to_owned()).filter(|v| !v.is_empty()).collect()
}

fn flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// `None` for auto.
fn tristate(value: &str, bad: impl Fn() -> Error) -> Result<Option<bool>> {
    if value.eq_ignore_ascii_case("auto") { Ok(None) } else { flag(value).map(Some).ok_or_else(bad) }
}

fn unknown(key: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(key, known.iter().copied()) {
        return format!("there is no such option, did you mean `{near}`?");
    }
    let known: Vec<String> = known.iter().map(|k| format!("`{k}`")).collect();
    format!("there is no such option; there are {}", known.join(", "))
}

/// The name that is so near to `word` that it may be a slip of the pen.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    names
        .map(|n| (strsim::osa_distance(&word, &n.to_lowercase()), n))
        .min()
        .filter(|(d, n)| *d <= 1 + n.len() / 4)
        .map(|(_, n)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_taken() {
        for (key, _) in KEYS {
            let value = match key {
                "group" | "dims" | "variables" | "drop_variables" => "a,b",
                "zarr_format" => "2",
                "time_unit" => "ms",
                _ => "TRUE",
            };
            let set = ZarrOptions::default().with(key, value).unwrap();
            if !matches!(key, "mask_and_scale" | "nan_as_null" | "decode_times") {
                assert_ne!(set, ZarrOptions::default(), "{key}");
            }
            if !matches!(key, "group" | "dims" | "variables" | "drop_variables") {
                assert!(ZarrOptions::default().with(key, "x").is_err(), "{key}");
            }
        }
        assert!(ZarrOptions::default().with("zzzz", "1").unwrap_err().to_string().contains("`index_columns`"));
    }
}
