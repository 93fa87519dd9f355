//! Random small stores, written by zarrs: every layout that a reader must not be confused by.

use std::sync::Arc;

use base64::Engine as _;
use bytes::Bytes;
use fastrand::Rng;
use half::f16;
use serde_json::{Map, Value, json};
use zarrs::array::{Array, ArrayBytes, CodecOptions};
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{ListableStorageTraits, ReadableStorageTraits, StoreKey, WritableStorageTraits};

/// A store, and what it is made of.
pub(crate) struct Dataset {
    pub(crate) format: u8,
    /// In the order of the first variable that has all of them.
    pub(crate) dims: Vec<(String, u64)>,
    /// In the order of the store.
    pub(crate) variables: Vec<Variable>,
    pub(crate) options: Vec<(&'static str, &'static str)>,
    /// The arrays as zarrs can read them: format 2 types that it lacks are replaced by others of the same size.
    pub(crate) arrays: Arc<MemoryStore>,
    /// Keys and bytes of the store as it is.
    pub(crate) objects: Vec<(String, Bytes)>,
}

/// An array of the store.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// For each of its dimensions, which of the data set's it is.
    pub(crate) axes: Vec<usize>,
    pub(crate) data_type: Type,
    pub(crate) attributes: Map<String, Value>,
    pub(crate) fill: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Dimension,
    Auxiliary,
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Int { bytes: usize, signed: bool },
    Float(usize),
    /// Text of any length.
    Text,
    /// Text of so many bytes, NUL-padded; in format 2.
    Bytes(usize),
    /// Text of so many UTF-32 characters, NUL-padded.
    Utf32(usize),
    /// Ticks of numpy's datetime64: unit, and ticks a value.
    Time(&'static str, i64),
}

impl Type {
    /// Bytes of an element; 0 where each has its own.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Int { bytes, .. } | Self::Float(bytes) | Self::Bytes(bytes) => bytes,
            Self::Utf32(characters) => 4 * characters,
            Self::Text => 0,
            Self::Time(..) => 8,
        }
    }
}

/// An element as stored.
#[derive(Debug, Clone)]
enum Element {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Element {
    fn json(&self) -> Value {
        match self {
            Self::Bool(b) => json!(b),
            Self::Int(i) => json!(i),
            Self::Float(x) if x.is_nan() => json!("NaN"),
            Self::Float(x) if x.is_infinite() => json!(if *x > 0.0 { "Infinity" } else { "-Infinity" }),
            Self::Float(x) => json!(x),
            Self::Text(s) => json!(s),
        }
    }

    /// Native bytes, as zarrs takes them.
    fn bytes(&self, data_type: Type) -> Vec<u8> {
        match (self, data_type) {
            (Self::Bool(b), _) => vec![u8::from(*b)],
            // Unsigned 64-bit integers wrap.
            (Self::Int(i), _) => i.to_ne_bytes()[..data_type.size()].to_vec(),
            (Self::Float(x), Type::Float(2)) => f16::from_f64(*x).to_ne_bytes().to_vec(),
            #[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is meant")]
            (Self::Float(x), Type::Float(4)) => (*x as f32).to_ne_bytes().to_vec(),
            (Self::Float(x), _) => x.to_ne_bytes().to_vec(),
            (Self::Text(s), Type::Utf32(n)) => {
                let mut characters: Vec<u32> = s.chars().map(u32::from).collect();
                characters.resize(n, 0);
                characters.iter().flat_map(|c| c.to_ne_bytes()).collect()
            }
            (Self::Text(s), _) => {
                let mut bytes = s.clone().into_bytes();
                bytes.resize(data_type.size(), 0);
                bytes
            }
        }
    }
}

/// What an array holds.
enum Content {
    /// Along its one dimension.
    Line(Vec<Element>),
    /// Any of these in every cell.
    Any(Vec<Element>),
}

fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())].clone()
}

/// True in `percent` of a hundred.
pub(crate) fn chance(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}

/// The store of a seed.
pub(crate) fn dataset(rng: &mut Rng) -> Dataset {
    let format = pick(rng, &[2, 3]);
    let dims = dimensions(rng);
    let consolidated = rng.bool();
    let options = options(rng);
    let listed = !consolidated || options.contains(&("consolidated", "false"));
    let arrays = Arc::new(MemoryStore::new());
    let mut writer = Writer { format, rng, dims: &dims, arrays: Arc::clone(&arrays), documents: Vec::new() };
    let (variables, group) = writer.variables(listed);
    let documents = writer.documents;
    let objects = objects(format, &arrays, &documents, &group, consolidated);
    Dataset { format, dims, variables, options, arrays, objects }
}

fn dimensions(rng: &mut Rng) -> Vec<(String, u64)> {
    let mut names = vec!["time", "lat", "lon", "y", "x", "member", "T 2"];
    rng.shuffle(&mut names);
    let rank = pick(rng, &[1, 2, 2, 3, 3, 4]);
    let mut dims: Vec<(String, u64)> = names[..rank]
        .iter()
        .map(|name| ((*name).to_owned(), if chance(rng, 3) { 0 } else { rng.u64(1..=17) }))
        .collect();
    while dims.iter().map(|d| d.1).product::<u64>() > 1500 {
        let largest = dims.iter_mut().max_by_key(|d| d.1).unwrap();
        largest.1 = largest.1 / 2 + 1;
    }
    dims
}

fn options(rng: &mut Rng) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("mask_and_scale", "false", 10),
        ("use_zarr_fill_value_as_mask", "true", 10),
        ("use_zarr_fill_value_as_mask", "false", 10),
        ("nan_as_null", "false", 10),
        ("decode_times", "false", 10),
        ("keep_unsigned", "true", 15),
        ("index_columns", "true", 15),
        ("consolidated", "false", 10),
    ];
    all.into_iter().filter(|(_, _, percent)| chance(rng, *percent)).map(|(key, value, _)| (key, value)).collect()
}

/// All keys: those of the arrays, with the metadata as it is meant, and the group.
fn objects(format: u8, arrays: &MemoryStore, documents: &[(String, Value, Value)], group: &Value, consolidated: bool) -> Vec<(String, Bytes)> {
    let text = |v: &Value| Bytes::from(serde_json::to_vec(v).unwrap());
    let is_metadata = |key: &str| key.ends_with("zarr.json") || key.ends_with(".zarray") || key.ends_with(".zattrs");
    let chunks = arrays.list().unwrap();
    let chunks = chunks.iter().filter(|key| !is_metadata(key.as_str()));
    let mut objects: Vec<(String, Bytes)> = chunks.map(|k| (k.to_string(), arrays.get(k).unwrap().unwrap())).collect();
    if format == 3 {
        let mut root = json!({"zarr_format": 3, "node_type": "group", "attributes": group});
        if consolidated {
            let nodes: Map<String, Value> = documents.iter().map(|(name, document, _)| (name.clone(), document.clone())).collect();
            root["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": nodes});
        }
        objects.push(("zarr.json".into(), text(&root)));
        objects.extend(documents.iter().map(|(name, document, _)| (format!("{name}/zarr.json"), text(document))));
        return objects;
    }
    let mut all = vec![(".zgroup".to_owned(), json!({"zarr_format": 2})), (".zattrs".to_owned(), group.clone())];
    for (name, document, attributes) in documents {
        all.push((format!("{name}/.zarray"), document.clone()));
        all.push((format!("{name}/.zattrs"), attributes.clone()));
    }
    objects.extend(all.iter().map(|(key, document)| (key.clone(), text(document))));
    if consolidated {
        let all: Map<String, Value> = all.into_iter().collect();
        objects.push((".zmetadata".into(), text(&json!({"zarr_consolidated_format": 1, "metadata": all}))));
    }
    objects
}

/// Draws variables and writes their arrays.
struct Writer<'a> {
    format: u8,
    rng: &'a mut Rng,
    dims: &'a [(String, u64)],
    arrays: Arc<MemoryStore>,
    /// Name, array document and (format 2) attributes document of each array.
    documents: Vec<(String, Value, Value)>,
}

impl Writer<'_> {
    /// Write all variables; returns them in the order of the store, with the attributes of the group.
    fn variables(&mut self, listed: bool) -> (Vec<Variable>, Value) {
        let mut plan: Vec<(String, Role)> = Vec::new();
        for (dim, _) in self.dims {
            if chance(self.rng, 75) {
                plan.push((dim.clone(), Role::Dimension));
            }
        }
        let mut names = vec!["a", "b", "tas", "Temp", "v 1", "Größe", "z"];
        self.rng.shuffle(&mut names);
        let full = self.rng.usize(1..=3);
        let fields = if chance(self.rng, 30) { 1 } else { 0 };
        plan.extend(names.drain(..full + fields).map(|n| (n.to_owned(), Role::Data)));
        let auxiliary = chance(self.rng, 35).then(|| names[0].to_owned());
        plan.extend(auxiliary.iter().map(|n| (n.clone(), Role::Auxiliary)));
        self.rng.shuffle(&mut plan);
        if listed {
            plan.sort_by(|a, b| a.0.cmp(&b.0));
        }
        let by_group = self.rng.bool();
        let mut group = json!({"title": "random"});
        if let (Some(name), true) = (&auxiliary, by_group) {
            group["coordinates"] = json!(name);
        }

        // Which of the data variables is the fixed field, which the first with all dimensions.
        let data: Vec<usize> = (0..plan.len()).filter(|i| plan[*i].1 == Role::Data).collect();
        let field = (fields == 1).then(|| pick(self.rng, &data));
        let first = data.iter().copied().find(|i| Some(*i) != field).unwrap();
        // Coordinates come first, so that it is known which dimensions are times.
        let mut done: Vec<Option<Variable>> = plan.iter().map(|_| None).collect();
        let mut times: Vec<usize> = (0..self.dims.len()).filter(|i| self.dims[*i].0 == "time").collect();
        for (i, (name, _)) in plan.iter().enumerate().filter(|(_, p)| p.1 == Role::Dimension) {
            let axis = self.dims.iter().position(|d| d.0 == *name).unwrap();
            let variable = self.coordinate(name, axis);
            let by_units = variable.attributes.get("units").and_then(Value::as_str).is_some_and(|u| u.contains(" since "));
            if by_units || matches!(variable.data_type, Type::Time(..)) {
                times.push(axis);
            }
            done[i] = Some(variable);
        }
        for (i, (name, role)) in plan.iter().enumerate().filter(|(_, p)| p.1 != Role::Dimension) {
            let mut axes: Vec<usize> = (0..self.dims.len()).collect();
            if i != first && chance(self.rng, 30) {
                self.rng.shuffle(&mut axes);
            }
            if *role == Role::Auxiliary {
                self.rng.shuffle(&mut axes);
                axes.truncate(pick(self.rng, &[0, 1, 2, 2]));
            } else if Some(i) == field {
                axes.retain(|a| !times.contains(a));
                self.rng.shuffle(&mut axes);
                let most = axes.len().min(self.dims.len() - 1);
                axes.truncate(self.rng.usize(..=most));
            }
            let coordinates = if i == first && !by_group { auxiliary.as_deref() } else { None };
            done[i] = Some(self.data(name, *role, axes, coordinates));
        }
        // Documents in the order of the store, too.
        let position = |name: &str| plan.iter().position(|p| p.0 == name);
        self.documents.sort_by_key(|d| position(&d.0));
        (done.into_iter().flatten().collect(), group)
    }

    /// A dimension coordinate: numbers up, down or in disorder, text, times.
    fn coordinate(&mut self, name: &str, axis: usize) -> Variable {
        let size = usize::try_from(self.dims[axis].1).unwrap();
        let mut attributes = Map::new();
        let down = chance(self.rng, 35);
        let kind = if name == "time" { pick(self.rng, &[3, 3, 3, 4, 1]) } else { self.rng.u8(0..=4) };
        let (data_type, mut line) = match kind {
            0 => {
                let (start, step) = (f64::from(self.rng.i16(-90..90)), pick(self.rng, &[0.25, 0.5, 1.0, 2.5]));
                (Type::Float(pick(self.rng, &[4, 8])), (0..size).map(|i| Element::Float(start + step * as_f64(i))).collect())
            }
            1 => {
                let data_type = int(self.rng);
                let (start, step) = (self.rng.i64(0..50), self.rng.i64(1..=3));
                (data_type, (0..size).map(|i| Element::Int(start + step * as_i64(i))).collect())
            }
            2 => {
                let bytes = self.bytes_or_text(5);
                let data_type = pick(self.rng, &[Type::Text, Type::Text, Type::Utf32(4), bytes]);
                (data_type, (0..size).map(|i| Element::Text(format!("r{}", i * 7 % 10 + i / 10 * 10))).collect())
            }
            3 => {
                let (units, calendar, mut offsets) = self.cf_time(true);
                attributes.insert("units".into(), json!(units));
                calendar.map(|c| attributes.insert("calendar".into(), json!(c)));
                (offsets.data_type, offsets.line(self.rng, size))
            }
            _ => {
                let data_type = self.numpy_time();
                let (start, step) = (self.rng.i64(-20_000..20_000), self.rng.i64(1..40));
                (data_type, (0..size).map(|i| Element::Int(start + step * as_i64(i))).collect::<Vec<_>>())
            }
        };
        if down {
            line.reverse();
        } else if chance(self.rng, 15) {
            self.rng.shuffle(&mut line);
        }
        if size > 1 && chance(self.rng, 8) {
            line[0] = line[1].clone();
        }
        if size > 0 && chance(self.rng, 10) && matches!(data_type, Type::Int { .. } | Type::Float(_)) {
            let masked = pick(self.rng, &line).json();
            attributes.insert("_FillValue".into(), masked);
        }
        let fill = self.fill(data_type, &line);
        let missing = if chance(self.rng, 8) { 30 } else { 0 };
        let content = Content::Line(line);
        self.write(name, Role::Dimension, vec![axis], data_type, attributes, fill, &content, missing)
    }

    /// A data variable or an auxiliary coordinate.
    fn data(&mut self, name: &str, role: Role, axes: Vec<usize>, coordinates: Option<&str>) -> Variable {
        let mut attributes = Map::new();
        attributes.insert("long_name".into(), json!("drawn"));
        coordinates.map(|c| attributes.insert("coordinates".into(), json!(c)));
        let kind = self.rng.u8(..20);
        let (data_type, palette) = match kind {
            0 => (Type::Bool, vec![Element::Bool(false), Element::Bool(true)]),
            1 | 2 => {
                let bytes = self.bytes_or_text(6);
                let data_type = pick(self.rng, &[Type::Text, Type::Text, Type::Utf32(4), bytes]);
                (data_type, ["", "a", "bb", "x y", "it's", "é"].map(|s| Element::Text(s.into())).to_vec())
            }
            3 => {
                let data_type = self.numpy_time();
                let mut palette: Vec<Element> = (0..4).map(|_| Element::Int(self.rng.i64(-20_000..20_000))).collect();
                palette.push(Element::Int(i64::MIN));
                (data_type, palette)
            }
            4 | 5 => {
                let (units, calendar, mut offsets) = self.cf_time(false);
                attributes.insert("units".into(), json!(units));
                calendar.map(|c| attributes.insert("calendar".into(), json!(c)));
                let mut palette = offsets.line(self.rng, 5);
                if matches!(offsets.data_type, Type::Float(_)) {
                    palette.extend([Element::Float(f64::NAN), Element::Float(f64::INFINITY)]);
                }
                (offsets.data_type, palette)
            }
            6..=12 => {
                let data_type = Type::Float(pick(self.rng, &[2, 4, 4, 8]));
                let mut palette: Vec<Element> = (0..6).map(|_| Element::Float(f64::from(self.rng.i16(-400..400)) / 4.0)).collect();
                palette.extend([f64::NAN, f64::NAN, 0.0].map(Element::Float));
                if chance(self.rng, 20) {
                    palette.extend([f64::INFINITY, f64::NEG_INFINITY].map(Element::Float));
                }
                if chance(self.rng, 20) && data_type != Type::Float(2) {
                    palette.push(Element::Float(1e30));
                }
                (data_type, palette)
            }
            _ => {
                let data_type = int(self.rng);
                let Type::Int { bytes, signed } = data_type else { unreachable!() };
                let least = if signed { -20 } else { 0 };
                let mut palette: Vec<Element> = (0..6).map(|_| Element::Int(self.rng.i64(least..100))).collect();
                let bits = u32::try_from(8 * bytes).unwrap();
                if chance(self.rng, 40) {
                    palette.push(Element::Int(if signed { i64::MAX >> (64 - bits) } else { (u64::MAX >> (64 - bits)).cast_signed() }));
                    palette.push(Element::Int(if signed { i64::MIN >> (64 - bits) } else { 0 }));
                }
                (data_type, palette)
            }
        };
        if kind >= 6 {
            self.packing(data_type, &mut attributes);
        }
        if kind >= 4 {
            self.missing_marks(data_type, &palette, &mut attributes);
        }
        let fill = self.fill(data_type, &palette);
        let missing = if chance(self.rng, 60) { 20 } else { 0 };
        self.write(name, role, axes, data_type, attributes, fill, &Content::Any(palette), missing)
    }

    fn bytes_or_text(&self, size: usize) -> Type {
        if self.format == 2 { Type::Bytes(size) } else { Type::Text }
    }

    fn numpy_time(&mut self) -> Type {
        let scale = if self.format == 3 && chance(self.rng, 20) { 10 } else { 1 };
        Type::Time(pick(self.rng, &["D", "h", "m", "s", "ms", "us", "ns"]), scale)
    }

    /// Units, calendar, and the offsets that suit them.
    ///
    /// Without `anywhere` no date is one that Gregorian lacks (in those calendars that become timestamps).
    fn cf_time(&mut self, anywhere: bool) -> (String, Option<&'static str>, Offsets) {
        let calendars = ["standard", "gregorian", "proleptic_gregorian", "julian", "noleap", "365_day", "all_leap", "366_day", "360_day", "NoLeap"];
        let calendar = (!chance(self.rng, 15)).then(|| pick(self.rng, &calendars));
        let units = [("days", 1), ("hours", 24), ("minutes", 1440), ("seconds", 86_400), ("milliseconds", 86_400_000), ("microseconds", 86_400_000_000), ("nanoseconds", 86_400_000_000_000i64)];
        let (unit, a_day) = pick(self.rng, &units);
        let years: &[u16] = match (unit, anywhere) {
            ("nanoseconds", _) => &[1970, 2000],
            (_, true) => &[1, 850, 1500, 1582, 1850, 1900, 1970, 2000, 2262, 3000],
            (_, false) => &[1905, 1950, 1970, 2000],
        };
        let year = pick(self.rng, years);
        let month = if year == 1582 { self.rng.u8(1..=9) } else { self.rng.u8(1..=12) };
        let clock = pick(self.rng, &["", " 00:00:00", "T06:30:00", " 12:00:15"]);
        let reference = format!("{unit} since {year:04}-{month:02}-{:02}{clock}", self.rng.u8(1..=28));
        let mut data_type = pick(self.rng, &[Type::Int { bytes: 2, signed: true }, Type::Int { bytes: 4, signed: true }, Type::Int { bytes: 8, signed: true }, Type::Int { bytes: 4, signed: false }, Type::Float(4), Type::Float(8)]);
        if matches!(data_type, Type::Float(_)) && matches!(unit, "microseconds" | "nanoseconds") {
            data_type = Type::Int { bytes: 8, signed: true };
        }
        let room = match data_type {
            Type::Int { bytes: 2, .. } => 30_000,
            Type::Int { bytes: 4, .. } => 2_000_000_000,
            // Eighths are exact below this.
            Type::Float(4) => 1 << 20,
            _ => i64::MAX,
        };
        let most = (18_000 * i128::from(a_day)).min(i128::from(room));
        let signed = anywhere && year > 100 && data_type != Type::Int { bytes: 4, signed: false };
        (reference, calendar, Offsets { data_type, most: i64::try_from(most).unwrap(), signed, a_day })
    }

    fn packing(&mut self, data_type: Type, attributes: &mut Map<String, Value>) {
        if let Type::Int { signed, .. } = data_type
            && chance(self.rng, 15)
        {
            attributes.insert("_Unsigned".into(), json!(if signed == chance(self.rng, 85) { "true" } else { "false" }));
        }
        if chance(self.rng, 30) {
            attributes.insert("scale_factor".into(), pick(self.rng, &[json!(0.01), json!(2), json!([0.5]), json!(1.0)]));
        }
        if chance(self.rng, 20) {
            attributes.insert("add_offset".into(), pick(self.rng, &[json!(273.15), json!(-5), json!([0.25])]));
        }
    }

    /// `_FillValue` and `missing_value`: values that occur, written in one of the ways that writers have.
    fn missing_marks(&mut self, data_type: Type, palette: &[Element], attributes: &mut Map<String, Value>) {
        // As marks of an unsigned array that is read as signed, only what both can hold.
        let reinterpreted = attributes.contains_key("_Unsigned");
        let marks: Vec<Element> = palette.iter().filter(|e| !reinterpreted || matches!(e, Element::Int(0..=99))).cloned().collect();
        if marks.is_empty() {
            return;
        }
        let mark = |rng: &mut Rng| {
            let mark = pick(rng, &marks);
            match mark {
                Element::Float(x) if chance(rng, 20) => json!(base64::engine::general_purpose::STANDARD.encode(x.to_le_bytes())),
                #[expect(clippy::cast_precision_loss, reason = "small ones only")]
                Element::Int(i) if (0..100).contains(&i) && chance(rng, 20) => json!(i as f64),
                // What no signed integer holds is written without its sign.
                Element::Int(i) if i < 0 && matches!(data_type, Type::Int { signed: false, .. }) => json!(i.cast_unsigned()),
                mark => mark.json(),
            }
        };
        if chance(self.rng, 35) {
            let value = mark(self.rng);
            attributes.insert("_FillValue".into(), if chance(self.rng, 10) { json!([value]) } else { value });
        }
        if chance(self.rng, 25) {
            let value = mark(self.rng);
            let value = if chance(self.rng, 40) { json!([value, mark(self.rng)]) } else { value };
            attributes.insert("missing_value".into(), value);
        }
        if matches!(data_type, Type::Int { signed: true, .. }) && chance(self.rng, 5) {
            attributes.insert("missing_value".into(), json!(1.5));
        }
    }

    /// A fill value: null in a part of format 2, else one of the values.
    fn fill(&mut self, data_type: Type, values: &[Element]) -> Value {
        let no_other = matches!(data_type, Type::Bytes(_) | Type::Time(..));
        if self.format == 2 && (no_other || chance(self.rng, 30)) {
            return Value::Null;
        }
        let default = match data_type {
            Type::Bool => Element::Bool(false),
            Type::Int { .. } | Type::Time(..) => Element::Int(0),
            Type::Float(_) => Element::Float(if self.rng.bool() { 0.0 } else { f64::NAN }),
            _ => Element::Text(String::new()),
        };
        let fill = if values.is_empty() || self.rng.bool() { default } else { pick(self.rng, values) };
        match fill {
            Element::Int(i) if i < 0 && matches!(data_type, Type::Int { signed: false, .. }) => json!(i.cast_unsigned()),
            fill => fill.json(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an array is all of these")]
    fn write(&mut self, name: &str, role: Role, axes: Vec<usize>, data_type: Type, attributes: Map<String, Value>, fill: Value, content: &Content, missing: u8) -> Variable {
        let shape: Vec<u64> = axes.iter().map(|a| self.dims[*a].1).collect();
        let layout = Layout::draw(self.rng, self.format, data_type, &shape);
        let dimension_names: Vec<&str> = axes.iter().map(|a| self.dims[*a].0.as_str()).collect();
        if self.format == 3 {
            let mut document = layout.document_v3(data_type, &shape, &fill);
            document["dimension_names"] = json!(dimension_names);
            document["attributes"] = json!(attributes);
            self.put(&format!("{name}/zarr.json"), &document);
            self.documents.push((name.to_owned(), document, Value::Null));
        } else {
            let mut attributes = attributes.clone();
            attributes.insert("_ARRAY_DIMENSIONS".into(), json!(dimension_names));
            let document = layout.document_v2(&dtype_v2(data_type, layout.big), data_type, &shape, &fill);
            let for_zarrs = match data_type {
                Type::Time(..) => layout.document_v2(if layout.big { ">i8" } else { "<i8" }, data_type, &shape, &fill),
                Type::Bytes(n) => layout.document_v2(&format!("|V{n}"), data_type, &shape, &fill),
                _ => document.clone(),
            };
            self.put(&format!("{name}/.zarray"), &for_zarrs);
            self.documents.push((name.to_owned(), document, json!(attributes)));
        }
        self.write_chunks(name, data_type, &shape, &layout.chunks, content, missing);
        Variable { name: name.to_owned(), role, axes, data_type, attributes, fill }
    }

    fn put(&self, key: &str, document: &Value) {
        let bytes = Bytes::from(serde_json::to_vec(document).unwrap());
        self.arrays.set(&StoreKey::new(key).unwrap(), bytes).unwrap();
    }

    /// Chunks are written whole; what lies beyond the array is any value.
    fn write_chunks(&mut self, name: &str, data_type: Type, shape: &[u64], chunks: &[u64], content: &Content, missing: u8) {
        let array = Array::open(Arc::clone(&self.arrays), &format!("/{name}")).unwrap_or_else(|e| panic!("{name}: {e}"));
        let options = CodecOptions::default().with_store_empty_chunks(self.rng.bool());
        let grid: Vec<u64> = shape.iter().zip(chunks).map(|(n, c)| n.div_ceil(*c)).collect();
        let cells = usize::try_from(chunks.iter().product::<u64>()).unwrap();
        for number in 0..grid.iter().product::<u64>() {
            if chance(self.rng, missing) {
                continue;
            }
            let mut index = vec![0; grid.len()];
            let mut rest = number;
            for (i, n) in index.iter_mut().zip(&grid).rev() {
                (*i, rest) = (rest % n, rest / n);
            }
            let elements: Vec<Element> = (0..cells)
                .map(|cell| match content {
                    Content::Line(line) if line.is_empty() => Element::Int(0),
                    Content::Line(line) => {
                        let at = usize::try_from(index[0] * chunks[0]).unwrap() + cell;
                        line.get(at).cloned().unwrap_or_else(|| pick(self.rng, line))
                    }
                    Content::Any(palette) => pick(self.rng, palette),
                })
                .collect();
            let stored = if data_type == Type::Text {
                let texts: Vec<String> = elements.iter().map(|e| String::from_utf8(e.bytes_of_text()).unwrap()).collect();
                array.store_chunk_opt(&index, texts, &options)
            } else {
                let bytes: Vec<u8> = elements.iter().flat_map(|e| e.bytes(data_type)).collect();
                array.store_chunk_opt(&index, ArrayBytes::new_flen(bytes), &options)
            };
            stored.unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

impl Element {
    fn bytes_of_text(&self) -> Vec<u8> {
        match self {
            Self::Text(s) => s.clone().into_bytes(),
            _ => Vec::new(),
        }
    }
}

/// Offsets of a time axis.
struct Offsets {
    data_type: Type,
    most: i64,
    signed: bool,
    a_day: i64,
}

impl Offsets {
    /// `size` offsets that go up: by days or by less, floats by eighths of the unit.
    fn line(&mut self, rng: &mut Rng, size: usize) -> Vec<Element> {
        let steps = i64::try_from(size.max(1)).unwrap();
        let step = (if rng.bool() { rng.i64(1..=40).saturating_mul(self.a_day) } else { rng.i64(1..=13) }).clamp(1, (self.most / (2 * steps)).max(1));
        let start = rng.i64(if self.signed { -self.most..=self.most - step * steps } else { 0..=self.most - step * steps });
        let eighths = rng.bool();
        (0..steps)
            .map(|i| match self.data_type {
                #[expect(clippy::cast_precision_loss, reason = "small enough")]
                Type::Float(_) => Element::Float((start + step * i) as f64 / if eighths { 8.0 } else { 1.0 }),
                _ => Element::Int(start + step * i),
            })
            .take(size)
            .collect()
    }
}

/// How the elements of an array lie in its chunks.
struct Layout {
    chunks: Vec<u64>,
    big: bool,
    /// Format 2: column-major.
    fortran: bool,
    separator: Option<&'static str>,
    /// Format 2: compressor and filters. Format 3: codecs, chunk key encoding.
    codecs: Value,
    keys: Value,
}

impl Layout {
    fn draw(rng: &mut Rng, format: u8, data_type: Type, shape: &[u64]) -> Self {
        let inner: Vec<u64> = shape.iter().map(|n| rng.u64(1..=n + 2)).collect();
        let big = rng.bool();
        if format == 2 {
            let separator = pick(rng, &[None, Some("."), Some("/")]);
            let codecs = codecs_v2(rng, data_type);
            return Self { chunks: inner, big, fortran: rng.bool(), separator, codecs, keys: Value::Null };
        }
        let separator = pick(rng, &["/", "."]);
        let name = pick(rng, &["default", "default", "v2"]);
        let keys = json!({"name": name, "configuration": {"separator": separator}});
        let (chunks, codecs) = if chance(rng, 35) && !shape.is_empty() {
            let shards = inner.iter().map(|n| n * rng.u64(1..=3)).collect();
            (shards, sharded(rng, data_type, big, &inner))
        } else {
            let codecs = codecs_v3(rng, data_type, big, inner.len());
            (inner, codecs)
        };
        Self { chunks, big, fortran: false, separator: None, codecs: json!(codecs), keys }
    }

    fn document_v2(&self, dtype: &str, data_type: Type, shape: &[u64], fill: &Value) -> Value {
        let filters = if data_type == Type::Text { json!([{"id": "vlen-utf8"}]) } else { self.codecs["filters"].clone() };
        let mut document = json!({
            "zarr_format": 2, "shape": shape, "chunks": self.chunks, "dtype": dtype, "fill_value": fill,
            "order": if self.fortran { "F" } else { "C" }, "compressor": self.codecs["compressor"], "filters": filters,
        });
        if let Some(separator) = self.separator {
            document["dimension_separator"] = json!(separator);
        }
        document
    }

    fn document_v3(&self, data_type: Type, shape: &[u64], fill: &Value) -> Value {
        let data_type = match data_type {
            Type::Bool => json!("bool"),
            Type::Int { bytes, signed } => json!(format!("{}int{}", if signed { "" } else { "u" }, 8 * bytes)),
            Type::Float(bytes) => json!(format!("float{}", 8 * bytes)),
            Type::Utf32(n) => json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * n}}),
            Type::Time(unit, scale) => json!({"name": "numpy.datetime64", "configuration": {"unit": unit, "scale_factor": scale}}),
            Type::Text | Type::Bytes(_) => json!("string"),
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunks}},
            "chunk_key_encoding": self.keys, "codecs": self.codecs,
        })
    }
}

fn dtype_v2(data_type: Type, big: bool) -> String {
    let order = if data_type.size() == 1 { '|' } else if big { '>' } else { '<' };
    match data_type {
        Type::Bool => "|b1".into(),
        Type::Int { bytes, signed } => format!("{order}{}{bytes}", if signed { 'i' } else { 'u' }),
        Type::Float(bytes) => format!("{order}f{bytes}"),
        Type::Text => "|O".into(),
        Type::Bytes(n) => format!("|S{n}"),
        Type::Utf32(n) => format!("{order}U{n}"),
        Type::Time(unit, _) => format!("{order}M8[{unit}]"),
    }
}

fn codecs_v2(rng: &mut Rng, data_type: Type) -> Value {
    let cname = pick(rng, &["lz4", "lz4hc", "zlib", "zstd", "blosclz"]);
    let compressors = [
        Value::Null,
        json!({"id": "zlib", "level": 1}),
        json!({"id": "gzip", "level": 1}),
        json!({"id": "bz2", "level": 1}),
        json!({"id": "zstd", "level": 1}),
        json!({"id": "blosc", "cname": cname, "clevel": 5, "shuffle": rng.u8(0..=2), "blocksize": 0}),
    ];
    let compressor = pick(rng, &compressors);
    let shuffled = data_type.size() > 1 && chance(rng, 15);
    let filters = if shuffled { json!([{"id": "shuffle", "elementsize": data_type.size()}]) } else { Value::Null };
    json!({"compressor": compressor, "filters": filters})
}

/// One codec that makes bytes of elements, and some around it.
fn codecs_v3(rng: &mut Rng, data_type: Type, big: bool, rank: usize) -> Vec<Value> {
    let mut codecs = Vec::new();
    if rank > 0 && chance(rng, 25) {
        let mut order: Vec<usize> = (0..rank).collect();
        rng.shuffle(&mut order);
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(match data_type {
        Type::Text | Type::Bytes(_) => json!({"name": "vlen-utf8"}),
        _ if data_type.size() == 1 && rng.bool() => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": if big { "big" } else { "little" }}}),
    });
    let compressors = [
        json!({"name": "zstd", "configuration": {"level": 1, "checksum": rng.bool()}}),
        json!({"name": "gzip", "configuration": {"level": 1}}),
        json!({"name": "blosc", "configuration": {"cname": pick(rng, &["lz4", "zlib", "zstd", "blosclz"]), "clevel": 5, "shuffle": pick(rng, &["noshuffle", "shuffle", "bitshuffle"]), "typesize": data_type.size().max(1), "blocksize": 0}}),
    ];
    if chance(rng, 60) {
        codecs.push(pick(rng, &compressors));
    }
    if chance(rng, 25) {
        codecs.push(json!({"name": "crc32c"}));
    }
    codecs
}

/// Shards of inner chunks of the shape `inner`.
fn sharded(rng: &mut Rng, data_type: Type, big: bool, inner: &[u64]) -> Vec<Value> {
    let mut index_codecs = vec![json!({"name": "bytes", "configuration": {"endian": pick(rng, &["little", "little", "big"])}})];
    if chance(rng, 60) {
        index_codecs.push(json!({"name": "crc32c"}));
    }
    let mut codecs = Vec::new();
    let mut shape = inner.to_vec();
    if chance(rng, 10) {
        let mut order: Vec<usize> = (0..inner.len()).collect();
        rng.shuffle(&mut order);
        shape = order.iter().map(|i| inner[*i]).collect();
        codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
    }
    codecs.push(json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": shape, "codecs": codecs_v3(rng, data_type, big, inner.len()),
        "index_codecs": index_codecs, "index_location": pick(rng, &["start", "end"]),
    }}));
    codecs
}

fn int(rng: &mut Rng) -> Type {
    Type::Int { bytes: pick(rng, &[1, 2, 2, 4, 8]), signed: chance(rng, 65) }
}

fn as_f64(i: usize) -> f64 {
    f64::from(u32::try_from(i).unwrap())
}

fn as_i64(i: usize) -> i64 {
    i64::try_from(i).unwrap()
}
