//! How a scan shows itself in `EXPLAIN`.

use std::fmt;

use super::scan::{BoundScan, Scan};
use crate::dataset::Role;
use crate::planning::{Condition, IndexSet, cells};

/// The parts of a scan's line: (name, text), in order.
pub(super) fn parts(scan: &Scan, bound: Option<&BoundScan>) -> Vec<(&'static str, String)> {
    let names = |role: fn(Role) -> bool| {
        let columns = scan.projection.iter().filter(|c| scan.grid.columns.get(**c).is_some_and(|c| role(c.role)));
        columns.filter_map(|c| scan.grid.schema.fields().get(*c)).map(|f| f.name().clone()).collect::<Vec<_>>()
    };
    let mut parts = vec![
        ("variables", list(&names(|role| role == Role::Data))),
        ("coordinates", list(&names(|role| role != Role::Data))),
    ];
    let total = scan.chunks(&crate::planning::Selection::all(&scan.grid.sizes)).0;
    let matched = match bound {
        Some(bound) if bound.plan.coordinates.is_empty() && scan.dynamic.is_empty() => {
            scan.chunks(&bound.plan.selection).1.to_string()
        }
        _ => "?".into(),
    };
    match bound {
        Some(bound) => {
            let factors = factors(scan, bound);
            if !factors.is_empty() {
                parts.push(("selection", list(&factors)));
            }
            push_conditions(&mut parts, "by_block", bound.plan.coordinates.iter());
            push_conditions(&mut parts, "filter", bound.plan.data.iter());
        }
        None => push_conditions(&mut parts, "pending", scan.conditions.iter()),
    }
    push_conditions(&mut parts, "dynamic", scan.dynamic.iter());
    parts.push(("chunks", format!("{total} total → {matched} matched")));
    parts
}

fn push_conditions<'a>(
    parts: &mut Vec<(&'static str, String)>,
    name: &'static str,
    conditions: impl Iterator<Item = &'a Condition>,
) {
    let texts: Vec<String> = conditions.map(ToString::to_string).collect();
    if !texts.is_empty() {
        parts.push((name, list(&texts)));
    }
}

fn list(items: &[String]) -> String {
    format!("[{}]", items.join(", "))
}

/// `time: 4 of 2920`, `lat × lon: 12 of 1325`: what is left along the dimensions that conditions are about.
fn factors(scan: &Scan, bound: &BoundScan) -> Vec<String> {
    let selection = &bound.plan.selection;
    let name = |axis: usize| {
        let is_own = |c: &crate::read::ColumnReader| c.role == Role::Dimension && c.axes == [axis];
        let column = scan.grid.columns.iter().position(is_own);
        column
            .and_then(|c| scan.grid.schema.fields().get(c))
            .map_or_else(|| format!("dim_{axis}"), |f| f.name().clone())
    };
    let sizes = &scan.grid.sizes;
    let one = selection.dims.iter().zip(sizes).enumerate().filter(|(_, (set, size))| set.len() < **size);
    let mut out: Vec<String> =
        one.map(|(axis, (set, size))| format!("{}: {} of {size}", name(axis), set.len())).collect();
    for (axes, left) in selection.joint_cells() {
        let sets: Vec<IndexSet> = axes.iter().filter_map(|a| selection.dims.get(*a)).cloned().collect();
        let names: Vec<String> = axes.iter().map(|a| name(*a)).collect();
        out.push(format!("{}: {left} of {}", names.join(" × "), cells(&sets)));
    }
    out
}

/// Write the parts on one line, or one a line.
pub(super) fn write(parts: &[(&'static str, String)], is_tree: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (i, (name, text)) in parts.iter().enumerate() {
        match (i, is_tree) {
            (_, true) => writeln!(f, "{name}={text}")?,
            (0, false) => write!(f, " {name}={text}")?,
            (_, false) => write!(f, ", {name}={text}")?,
        }
    }
    Ok(())
}
