//! Date functions and arithmetic on times of Zarr: right in the calendar of the column, or refused.
//!
//! - `date_trunc` and `date_bin` of every Zarr time become `cf_trunc` and `cf_bin`: `DataFusion`'s own fail or give NULL beyond 1678–2262.
//! - `date_part` becomes `cf_part` where the label alone does not say the part (days of the year and of the week), and for text.
//! - Differences, sums, and seconds since 1970 of dates that are not Gregorian are errors: a timestamp holds the label, not the place in time.

use std::str::FromStr;
use std::sync::Arc;

use arrow::compute::kernels::cast_utils::IntervalUnit;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, ScalarUDF, WindowFrameBound, WindowFrameUnits, lit};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::scope::{Scope, Time};
use super::{date_literals, gregorian_only};
use crate::dataset::cf::{Calendar, PARTS, Part};
use crate::options::ZarrConfig;
use crate::table::calendar_functions::{self, no_weeks};
use crate::table::labels::holds_labels;

/// The call that stands for `call`, where another one is right for the calendar of its time.
///
/// # Errors
/// A function, or a part of a date, that cannot be right in that calendar.
pub(super) fn replace(call: &ScalarFunction, scope: &Scope) -> Result<Option<Expr>> {
    let name = call.name();
    let at = usize::from(name != "to_unixtime");
    let known =
        matches!(name, "cf_part" | "cf_trunc" | "cf_bin" | "date_part" | "date_trunc" | "date_bin" | "to_unixtime");
    let Some(argument) = call.args.get(at).filter(|_| known) else { return Ok(None) };
    let Some(time) = scope.dates(argument).filter(|t| !(t.as_text && t.is_gregorian())) else { return Ok(None) };
    let gregorian = time.calendar.is_gregorian() && time.mixed_with.is_none();
    match name {
        "cf_part" | "cf_trunc" if call.args.len() == 2 => with_calendar(call, Arc::clone(&call.func), &time).map(Some),
        "cf_bin" if call.args.len() < 4 => bin(call, Arc::clone(&call.func), &time).map(Some),
        "date_part" => part(call, argument, &time),
        "date_trunc" if !gregorian || holds_labels(&time.data_type) => {
            with_calendar(call, calendar_functions::trunc().into(), &time).map(Some)
        }
        "date_bin" if !gregorian || holds_labels(&time.data_type) => {
            bin(call, calendar_functions::bin().into(), &time).map(Some)
        }
        "to_unixtime" if !gregorian => Err(no_seconds(argument, &time)),
        _ => Ok(None),
    }
}

/// `date_part` of a time.
fn part(call: &ScalarFunction, argument: &Expr, time: &Time) -> Result<Option<Expr>> {
    let gregorian = time.calendar.is_gregorian() && time.mixed_with.is_none();
    let name = call.args.first().and_then(Expr::as_literal).and_then(|s| s.try_as_str().flatten());
    let Some(name) = name.map(|n| n.trim_matches(['\'', '"']).to_ascii_lowercase()) else {
        if gregorian {
            return Ok(None);
        }
        return Err(DataFusionError::Plan(format!(
            "the part of `{}` must be a text, one of {PARTS}: its calendar is `{}`",
            Scope::name(argument),
            time.calendar.name()
        )));
    };
    let of_label = matches!(
        IntervalUnit::from_str(&name),
        Ok(IntervalUnit::Year
            | IntervalUnit::Month
            | IntervalUnit::Day
            | IntervalUnit::Hour
            | IntervalUnit::Minute
            | IntervalUnit::Second
            | IntervalUnit::Millisecond
            | IntervalUnit::Microsecond
            | IntervalUnit::Nanosecond)
    ) || matches!(name.as_str(), "quarter" | "qtr");
    let counts_days = matches!(Part::parse(&name), Some(Part::DayOfYear | Part::DayOfWeek | Part::IsoDayOfWeek));
    let is_text = time.data_type.is_string();
    if (of_label && !is_text) || time.calendar == Calendar::ProlepticGregorian && time.mixed_with.is_none() {
        return Ok(None);
    }
    if gregorian && !counts_days {
        return Ok(None);
    }
    match Part::parse(&name) {
        Some(part) if !part.exists_in(time.calendar) => Err(no_weeks(time.calendar)),
        Some(_) => {
            let literal = ScalarFunction::new_udf(Arc::clone(&call.func), vec![lit(name), argument.clone()]);
            with_calendar(&literal, calendar_functions::part().into(), time).map(Some)
        }
        None if name == "epoch" => Err(no_seconds(argument, time)),
        None => Err(DataFusionError::Plan(format!(
            "`{name}` of `{}` is not defined in calendar `{}`; `cf_part` takes {PARTS}",
            Scope::name(argument),
            time.calendar.name()
        ))),
    }
}

/// The call with the name of the calendar behind its arguments.
fn with_calendar(call: &ScalarFunction, function: Arc<ScalarUDF>, time: &Time) -> Result<Expr> {
    if let Some(other) = time.mixed_with {
        return Err(mixed(time.calendar, other));
    }
    let mut args = call.args.clone();
    args.push(lit(time.calendar.name()));
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
}

/// The call for bins, with an origin that the column can hold, and the name of the calendar.
fn bin(call: &ScalarFunction, function: Arc<ScalarUDF>, time: &Time) -> Result<Expr> {
    let mut with_origin = call.clone();
    match call.args.as_slice() {
        [_, _] => with_origin.args.push(lit("1970-01-01")),
        [_, argument, origin, ..] => {
            let literal = date_literals::first_instant(time, argument, origin)?;
            if let (Some(slot), Some(literal)) = (with_origin.args.get_mut(2), literal) {
                *slot = literal;
            }
        }
        _ => {}
    }
    with_calendar(&with_origin, function, time)
}

fn mixed(one: Calendar, other: Calendar) -> DataFusionError {
    DataFusionError::Plan(format!(
        "the UNION, or the choice, holds dates of calendar `{}` and of calendar `{}`; apply the function in each of its branches",
        one.name(),
        other.name()
    ))
}

fn no_seconds(argument: &Expr, time: &Time) -> DataFusionError {
    let (name, calendar) = (Scope::name(argument), time.calendar.name());
    DataFusionError::Plan(format!(
        "`{name}` has no seconds since 1970, as its calendar is `{calendar}`; use `cf_part('year', {name})` and other parts, or read the raw numbers \
         with option `decode_times` = `false`"
    ))
}

fn no_arithmetic(argument: &Expr, time: &Time) -> DataFusionError {
    let (name, calendar) = (Scope::name(argument), time.foreign().name());
    DataFusionError::Plan(format!(
        "`{name}` can neither be added to nor subtracted from, as its calendar is `{calendar}`; use `cf_part('doy', {name})`, \
         `cf_bin(INTERVAL '10 days', {name})`, or the raw numbers of option `decode_times` = `false`"
    ))
}

/// Refuse sums and differences of dates that are not Gregorian.
///
/// # Errors
/// Such a sum or difference.
pub(super) fn check_arithmetic(expr: &Expr, scope: &Scope) -> Result<()> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) = expr else {
        return Ok(());
    };
    check_operands(left, right, scope)
}

fn check_operands(left: &Expr, right: &Expr, scope: &Scope) -> Result<()> {
    for operand in [left, right] {
        if let Some(time) = scope.dates(operand).filter(|t| !t.is_gregorian()) {
            return Err(no_arithmetic(operand, &time));
        }
    }
    Ok(())
}

/// Refuse window frames whose borders are so many days from a date that is not Gregorian.
///
/// # Errors
/// Such a frame.
pub(super) fn check_window(call: &WindowFunction, scope: &Scope) -> Result<()> {
    let frame = &call.params.window_frame;
    let offset = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => !by.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    if frame.units != WindowFrameUnits::Range || !(offset(&frame.start_bound) || offset(&frame.end_bound)) {
        return Ok(());
    }
    let Some(key) = call.params.order_by.first() else { return Ok(()) };
    check_operands(&key.expr, &key.expr, scope)
}

/// Plans operators on times, where it would be too late in the rule: types that do not fit are refused before it could say why.
#[derive(Debug)]
pub(super) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let scope = Scope { schema: schema.clone(), inputs: &[], config: ZarrConfig::default() };
        match expr.op {
            BinaryOperator::Plus | BinaryOperator::Minus => check_operands(&expr.left, &expr.right, &scope)?,
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                gregorian_only::check_operands(&expr.left, &expr.right, &scope)?;
                return Ok(PlannerResult::Original(date_literals::with_text_parameters(expr, &scope)));
            }
            _ => {}
        }
        Ok(PlannerResult::Original(expr))
    }
}
