//! Functions and casts that take every timestamp for a Gregorian date: refused where the dates are of another calendar.
//!
//! What they do is unknown but for a few that choose, compare or show labels, so everything else is refused.

use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable};

use super::comparison::is_comparison;
use super::date_literals;
use super::scope::{Scope, Time};

/// Functions that are right for timestamps of any calendar.
const RIGHT: [&str; 24] = [
    "array_has",
    "arrow_cast",
    "arrow_field",
    "arrow_metadata",
    "arrow_try_cast",
    "arrow_typeof",
    "cf_bin",
    "cf_part",
    "cf_trunc",
    "coalesce",
    "concat",
    "concat_ws",
    "date_bin",
    "date_part",
    "date_trunc",
    "greatest",
    "ifnull",
    "least",
    "named_struct",
    "nullif",
    "nvl",
    "nvl2",
    "row",
    "struct",
];

/// Aggregates and window functions that are right for timestamps of any calendar.
const RIGHT_AGGREGATES: [&str; 12] = [
    "any_value",
    "approx_distinct",
    "array_agg",
    "count",
    "first_value",
    "grouping",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "nth_value",
];

/// Functions that read text as a Gregorian date. All others see a text.
const READERS: [&str; 12] = [
    "date_format",
    "from_unixtime",
    "to_char",
    "to_date",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_local_time",
    "to_unixtime",
];

/// Refuse `expr` where it is a function or a cast that takes dates of another calendar for Gregorian ones.
///
/// # Errors
/// Such a function or cast.
pub(super) fn check(expr: &Expr, scope: &Scope) -> Result<()> {
    match expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            check_cast(expr, field.data_type(), scope)
        }
        Expr::ScalarFunction(call) => {
            if let ("arrow_cast" | "arrow_try_cast", [argument, ..]) = (call.name(), call.args.as_slice()) {
                return check_cast(argument, &expr.get_type(&scope.schema)?, scope);
            }
            check_arguments(call.name(), &call.args, &RIGHT, scope)
        }
        Expr::AggregateFunction(call) => check_arguments(call.func.name(), &call.params.args, &RIGHT_AGGREGATES, scope),
        Expr::WindowFunction(call) => check_arguments(call.fun.name(), &call.params.args, &RIGHT_AGGREGATES, scope),
        _ => Ok(()),
    }
}

fn check_arguments(name: &str, args: &[Expr], right: &[&str], scope: &Scope) -> Result<()> {
    for argument in args {
        let Some(time) = other_calendar(argument, scope) else { continue };
        let is_right = if time.data_type.is_string() { !READERS.contains(&name) } else { right.contains(&name) };
        if !is_right {
            return Err(gregorian_only(&format!("`{name}`"), argument, &time));
        }
    }
    Ok(())
}

/// The times that an expression holds, where not all of them are Gregorian.
fn other_calendar(expr: &Expr, scope: &Scope) -> Option<Time> {
    scope.dates(expr).filter(|time| !time.is_gregorian())
}

/// Casts keep the label, where they keep it at all.
fn check_cast(argument: &Expr, data_type: &DataType, scope: &Scope) -> Result<()> {
    let Some(time) = other_calendar(argument, scope) else { return Ok(()) };
    let is_right = match data_type {
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64 => !time.calendar.is_text(),
        DataType::Time32(_) | DataType::Time64(_) => true,
        t => t.is_string(),
    };
    if is_right { Ok(()) } else { Err(gregorian_only(&format!("a cast to {data_type}"), argument, &time)) }
}

fn gregorian_only(what: &str, argument: &Expr, time: &Time) -> DataFusionError {
    let (name, calendar) = (Scope::name(argument), time.foreign().name());
    DataFusionError::Plan(format!(
        "{what} knows Gregorian dates only and the calendar of `{name}` is `{calendar}`; use `cf_part('year', {name})` and other parts, \
         `cf_trunc('day', {name})`, or the raw numbers of option `decode_times` = `false`"
    ))
}

/// Refuse comparisons of text dates with timestamps that are no literals.
///
/// # Errors
/// Such a comparison.
pub(super) fn check_comparison(expr: &Expr, scope: &Scope) -> Result<()> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => check_operands(left, right, scope),
        Expr::Between(Between { expr, low, high, .. }) => {
            check_operands(expr, low, scope)?;
            check_operands(expr, high, scope)
        }
        _ => Ok(()),
    }
}

/// The same for the two operands.
///
/// # Errors
/// As [`check_comparison`].
pub(super) fn check_operands(left: &Expr, right: &Expr, scope: &Scope) -> Result<()> {
    for (text, other) in [(left, right), (right, left)] {
        let Some(time) = scope.time(text).filter(|t| t.calendar.is_text() && t.data_type.is_string()) else { continue };
        let is_date = |t: &DataType| matches!(t, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64);
        if other.get_type(&scope.schema).is_ok_and(|t| is_date(&t)) && !date_literals::is_date(other) {
            return Err(DataFusionError::Plan(format!(
                "`{}` holds dates of calendar `{}` and `{}` Gregorian ones, which cannot be compared; compare with a literal as '2000-02-29', or \
                 parts of both by `cf_part('year', {})`",
                Scope::name(text),
                time.calendar.name(),
                Scope::name(other),
                Scope::name(text)
            )));
        }
    }
    Ok(())
}
