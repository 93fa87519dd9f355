//! Random small stores, written by zarrs: every layout that a reader must not be confused by.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use fastrand::Rng;
use serde_json::{Map, Value, json};
use zarrs::array::{Array, ArrayBytes, CodecOptions};
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{ListableStorageTraits, ReadableStorageTraits, StoreKey, WritableStorageTraits};

use super::element::{Element, Type, chance, pick};
use super::layout::{Layout, dtype_v2, for_zarrs};
use super::time_axis::cf_time;

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

/// What an array holds.
enum Content {
    /// Along its one dimension.
    Line(Vec<Element>),
    /// Any of these in every cell.
    Any(Vec<Element>),
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
    // A few are large enough for several Blocks, of which each partition gets some.
    let (longest, cells) =
        if chance(rng, 8) { (pick(rng, &[17, 100, 20_000]), pick(rng, &[15_000, 30_000, 60_000])) } else { (17, 1500) };
    let mut dims: Vec<(String, u64)> = names[..rank]
        .iter()
        .map(|name| ((*name).to_owned(), if chance(rng, 3) { 0 } else { rng.u64(1..=longest) }))
        .collect();
    while dims.iter().map(|d| d.1).product::<u64>() > cells {
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
fn objects(
    format: u8,
    arrays: &MemoryStore,
    documents: &[(String, Value, Value)],
    group: &Value,
    consolidated: bool,
) -> Vec<(String, Bytes)> {
    let text = |v: &Value| Bytes::from(serde_json::to_vec(v).unwrap());
    let is_metadata = |key: &str| key.ends_with("zarr.json") || key.ends_with(".zarray") || key.ends_with(".zattrs");
    let chunks = arrays.list().unwrap();
    let chunks = chunks.iter().filter(|key| !is_metadata(key.as_str()));
    let mut objects: Vec<(String, Bytes)> = chunks.map(|k| (k.to_string(), arrays.get(k).unwrap().unwrap())).collect();
    if format == 3 {
        let mut root = json!({"zarr_format": 3, "node_type": "group", "attributes": group});
        if consolidated {
            let nodes: Map<String, Value> =
                documents.iter().map(|(name, document, _)| (name.clone(), document.clone())).collect();
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
        let fields = usize::from(chance(self.rng, 30));
        plan.extend(names.drain(..full + fields).map(|n| (n.to_owned(), Role::Data)));
        // The attribute `coordinates` is a list with blanks.
        names.retain(|n| !n.contains(' '));
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
            let by_units =
                variable.attributes.get("units").and_then(Value::as_str).is_some_and(|u| u.contains(" since "));
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
                (
                    Type::Float(pick(self.rng, &[4, 8])),
                    (0..size).map(|i| Element::Float(start + step * as_f64(i))).collect(),
                )
            }
            1 => {
                // Values of a long axis do not fit into the small types.
                let data_type = if size > 20 { Type::Int { bytes: 4, signed: true } } else { int(self.rng) };
                let (start, step) = (self.rng.i64(0..50), self.rng.i64(1..=3));
                (data_type, (0..size).map(|i| Element::Int(start + step * as_i64(i))).collect())
            }
            2 => {
                let bytes = self.bytes_or_text(5);
                let data_type = pick(self.rng, &[Type::Text, Type::Text, Type::Utf32(4), bytes]);
                // Labels of a long axis do not fit into the short types.
                let data_type = if size > 100 { Type::Text } else { data_type };
                (data_type, (0..size).map(|i| Element::Text(format!("r{}", i * 7 % 10 + i / 10 * 10))).collect())
            }
            3 => {
                let (units, calendar, offsets) = cf_time(self.rng, true);
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
                let (units, calendar, offsets) = cf_time(self.rng, false);
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
                let mut palette: Vec<Element> =
                    (0..6).map(|_| Element::Float(f64::from(self.rng.i16(-400..400)) / 4.0)).collect();
                palette.extend([f64::NAN, f64::NAN, 0.0, 0.1].map(Element::Float));
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
                    palette.push(Element::Int(if signed {
                        i64::MAX >> (64 - bits)
                    } else {
                        (u64::MAX >> (64 - bits)).cast_signed()
                    }));
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

    fn packing(&mut self, data_type: Type, attributes: &mut Map<String, Value>) {
        if let Type::Int { signed, .. } = data_type
            && chance(self.rng, 25)
        {
            attributes.insert("_Unsigned".into(), json!(if signed == chance(self.rng, 85) { "true" } else { "false" }));
        }
        if chance(self.rng, 30) {
            attributes
                .insert("scale_factor".into(), pick(self.rng, &[json!(0.01), json!(2), json!([0.5]), json!(1.0)]));
        }
        if chance(self.rng, 20) {
            attributes.insert("add_offset".into(), pick(self.rng, &[json!(273.15), json!(-5), json!([0.25])]));
        }
    }

    /// `_FillValue` and `missing_value`: values that occur, written in one of the ways that writers have.
    fn missing_marks(&mut self, data_type: Type, palette: &[Element], attributes: &mut Map<String, Value>) {
        let reinterpreted = match data_type {
            Type::Int { signed, .. } => {
                attributes.get("_Unsigned") == Some(&json!(if signed { "true" } else { "false" }))
            }
            _ => false,
        };
        let mark = |rng: &mut Rng| {
            let mark = pick(rng, palette);
            match mark {
                Element::Float(x) if chance(rng, 20) => {
                    json!(STANDARD.encode(x.to_le_bytes()))
                }
                #[expect(clippy::cast_precision_loss, reason = "small ones only")]
                Element::Int(i) if (0..100).contains(&i) && chance(rng, 20) => json!(i as f64),
                // Of reinterpreted integers in either type.
                Element::Int(i) if i < 0 && reinterpreted && data_type.size() < 8 && rng.bool() => {
                    json!(i + (1 << (8 * data_type.size())))
                }
                // What no signed integer holds is written without its sign.
                Element::Int(i) if i < 0 && matches!(data_type, Type::Int { signed: false, .. }) => {
                    json!(i.cast_unsigned())
                }
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
        match (fill, data_type) {
            // As the cells of the type wrap it.
            (Element::Int(i), Type::Int { bytes, signed }) => {
                let spare = 64 - 8 * u32::try_from(bytes).unwrap();
                if signed { json!((i << spare) >> spare) } else { json!((i.cast_unsigned() << spare) >> spare) }
            }
            (fill, _) => fill.json(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an array is all of these")]
    fn write(
        &mut self,
        name: &str,
        role: Role,
        axes: Vec<usize>,
        data_type: Type,
        attributes: Map<String, Value>,
        fill: Value,
        content: &Content,
        missing: u8,
    ) -> Variable {
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
            self.put(&format!("{name}/.zarray"), &for_zarrs(&document, data_type, layout.big));
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
    fn write_chunks(
        &mut self,
        name: &str,
        data_type: Type,
        shape: &[u64],
        chunks: &[u64],
        content: &Content,
        missing: u8,
    ) {
        let array =
            Array::open(Arc::clone(&self.arrays), &format!("/{name}")).unwrap_or_else(|e| panic!("{name}: {e}"));
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
                let texts: Vec<String> = elements.iter().map(|e| e.text().to_owned()).collect();
                array.store_chunk_opt(&index, texts, &options)
            } else {
                let bytes: Vec<u8> = elements.iter().flat_map(|e| e.bytes(data_type)).collect();
                array.store_chunk_opt(&index, ArrayBytes::new_flen(bytes), &options)
            };
            stored.unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
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
