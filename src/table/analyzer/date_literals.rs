//! Literals that are compared with times are completed to their first instant, and become what the column holds.
//!
//! `time >= '2000-02'`, `time = DATE '2000-02-30'` and `time < TIMESTAMP '2300-01-01T00:00:00'` mean labels of the column's own calendar:
//! typed timestamps for timestamp columns, in the whole range of their type, and text of the column's form for text columns.

use std::borrow::Cow;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Expr;

use super::comparison::map_operands;
use super::scope::{Scope, Time};
use crate::dataset::cf::{Calendar, Label, Written};
use crate::table::labels::{holds_labels, unit_of};

/// The comparison with its literals as what the column holds, where it is one with a time.
///
/// # Errors
/// A date that the column's calendar lacks.
pub(super) fn rewrite(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    map_operands(expr, |e| scope.time(e).filter(|t| holds_labels(&t.data_type)), first_instant)
}

/// The literal `operand` as a value of the times of `column`; `None` where it is no literal of a date, or has no such value.
///
/// # Errors
/// A date that the calendar of the times lacks.
pub(super) fn first_instant(time: &Time, column: &Expr, operand: &Expr) -> Result<Option<Expr>> {
    let Some(label) = label(time, &Scope::name(column), operand)? else { return Ok(None) };
    Ok(value(label, &time.data_type).filter(|v| operand.as_literal() != Some(v)).map(|v| Expr::Literal(v, None)))
}

/// The label that the literal `expr` stands for among `time`s of the column `name`; `None` where it is no literal of a date.
///
/// # Errors
/// A date that the calendar of the times lacks.
pub(super) fn label(time: &Time, name: &str, expr: &Expr) -> Result<Option<Label>> {
    let Some(date) = date_of(expr) else { return Ok(None) };
    let in_calendar = |calendar: Calendar| match &date {
        Literal::Written(written, _) => written.label(calendar),
        Literal::Label(label) => label.instant(calendar).map(|_| *label),
    };
    let label = in_calendar(time.calendar).or_else(|| time.mixed_with.and_then(in_calendar));
    label.map(Some).ok_or_else(|| {
        let text = match &date {
            Literal::Written(_, text) => Cow::Borrowed(text.as_str()),
            Literal::Label(label) => Cow::Owned(label.text()),
        };
        DataFusionError::Plan(format!(
            "the calendar of `{name}`, `{}`, has no date '{text}'; compare with one that exists",
            time.calendar.name()
        ))
    })
}

/// The label as a value of a column of this type; `None` where a timestamp cannot hold it.
pub(super) fn value(label: Label, data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Timestamp(unit, None) => {
            let tick = ScalarValue::Int64(Some(label.timestamp(unit_of(*unit))?));
            tick.cast_to(data_type).ok()
        }
        text => ScalarValue::Utf8(Some(label.text())).cast_to(text).ok(),
    }
}

/// A literal of a date.
enum Literal {
    Written(Written, String),
    Label(Label),
}

/// The date that a literal is: text, text that is cast to a date or timestamp, or one of those.
fn date_of(expr: &Expr) -> Option<Literal> {
    match expr {
        Expr::Alias(alias) => date_of(&alias.expr),
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(text) => Written::parse(text?).map(|w| Literal::Written(w, text.unwrap_or_default().to_owned())),
            None => typed(value).map(Literal::Label),
        },
        Expr::Cast(cast) => match (cast.field.data_type(), date_of(&cast.expr)?) {
            (DataType::Timestamp(_, None), date) => Some(date),
            // A cast to a date takes the time of day off.
            (DataType::Date32, Literal::Written(w, text)) if text.trim().len() <= 11 => Some(Literal::Written(w, text)),
            _ => None,
        },
        _ => None,
    }
}

/// The label of a timestamp or date.
fn typed(value: &ScalarValue) -> Option<Label> {
    let data_type = match value.data_type() {
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None),
        t @ DataType::Timestamp(_, None) => t,
        _ => return None,
    };
    let DataType::Timestamp(unit, _) = &data_type else { return None };
    match value.cast_to(&data_type).ok()?.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(tick) => Label::of_timestamp(tick?, unit_of(*unit)),
        _ => None,
    }
}
