//! Literals that are compared with times are completed to their first instant, and become what the column holds.
//!
//! `time >= '2000-02'`, `time = DATE '2000-02-30'` and `time < TIMESTAMP '2300-01-01T00:00:00'` mean labels of the column's own calendar:
//! typed timestamps for timestamp columns, in the whole range of their type, and text of the column's form for text columns.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::planner::RawBinaryExpr;

use super::comparison::map_operands;
use super::scope::{Scope, Time};
use crate::dataset::cf::{Calendar, Label, Written};
use crate::table::labels::{holds_labels, unit_of};

/// The comparison with its literals as what the column holds, where it is one with a time.
///
/// # Errors
/// A date that the column's calendar lacks.
pub(super) fn rewrite(expr: Expr, scope: &Scope) -> Result<Transformed<Expr>> {
    map_operands(expr, |e| scope.time(e).filter(|t| holds_labels(&t.data_type)), operand)
}

/// `array_has` of a list of literals and a time, which is what `time = ANY (…)` is, with its literals as what the column holds.
///
/// # Errors
/// As [`rewrite`].
pub(super) fn rewrite_any(call: &ScalarFunction, scope: &Scope) -> Result<Option<Expr>> {
    let ("array_has", [list, column]) = (call.name(), call.args.as_slice()) else { return Ok(None) };
    let Some(time) = scope.time(column).filter(|t| holds_labels(&t.data_type)) else { return Ok(None) };
    let list = operand(&time, column, list)?;
    Ok(list
        .map(|list| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), vec![list, column.clone()]))))
}

/// Functions that give one of their arguments, or a list of them.
const CHOOSING: [&str; 7] = ["array_max", "array_min", "coalesce", "greatest", "least", "make_array", "nullif"];

/// What the times of `column` are compared with, as a value of them: a literal, or a choice of literals.
fn operand(time: &Time, column: &Expr, expr: &Expr) -> Result<Option<Expr>> {
    match expr {
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.name()) && !call.args.is_empty() => {
            let values: Option<Vec<Expr>> =
                call.args.iter().map(|e| operand(time, column, e)).collect::<Result<_>>()?;
            Ok(values.map(|v| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&call.func), v))))
        }
        _ => {
            check_text(time, column, expr)?;
            first_instant(time, column, expr)
        }
    }
}

/// Refuse text that is no date where it is compared with text that is one.
fn check_text(time: &Time, column: &Expr, expr: &Expr) -> Result<()> {
    // A choice may hold other texts than dates.
    let holds_dates = matches!(
        column,
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::AggregateFunction(_) | Expr::ScalarSubquery(_)
    );
    let text = expr.as_literal().and_then(|l| l.try_as_str().flatten());
    let Some(text) = text.filter(|_| holds_dates && time.data_type.is_string() && time.calendar.is_text()) else {
        return Ok(());
    };
    if Written::parse(text).is_some() {
        return Ok(());
    }
    Err(DataFusionError::Plan(format!(
        "'{text}' is no date and `{}` holds dates of calendar `{}`; write a date as '2000', '2000-02', '2000-02-29' or '2000-02-29T12:00:00'",
        Scope::name(column),
        time.calendar.name()
    )))
}

/// Whether `expr` is a literal of a date.
pub(super) fn is_date(expr: &Expr) -> bool {
    date_of(expr).is_some()
}

/// The comparison with parameters of no known type as text, where they are compared with a time: dates are completed when they are known.
pub(super) fn with_text_parameters(mut expr: RawBinaryExpr, scope: &Scope) -> RawBinaryExpr {
    let is_time = |e: &Expr| scope.time(e).is_some_and(|t| holds_labels(&t.data_type));
    let (left, right) = (is_time(&expr.left), is_time(&expr.right));
    for (operand, beside_time) in [(&mut expr.left, right), (&mut expr.right, left)] {
        if let Expr::Placeholder(Placeholder { id, field: field @ None }) = operand
            && beside_time
        {
            *field = Some(Arc::new(Field::new(id.as_str(), DataType::Utf8, true)));
        }
    }
    expr
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
