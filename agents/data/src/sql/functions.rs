//! Functions that SQLite has not by itself as it is built here, and that people expect of SQL.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};

/// Most values that a median is found of.
const MAX_VALUES: usize = 4_000_000;

/// A function of one number.
type OfOne = fn(f64) -> f64;

/// Functions of one number.
const OF_ONE: [(&str, OfOne); 8] = [
    ("sqrt", f64::sqrt),
    ("exp", f64::exp),
    ("ln", f64::ln),
    ("log10", f64::log10),
    ("log2", f64::log2),
    ("floor", f64::floor),
    ("ceil", f64::ceil),
    ("trunc", f64::trunc),
];

/// The names of all of them, for models.
pub(crate) const NAMES: &str =
    "sqrt, exp, ln, log10, log2, pow, floor, ceil, trunc, median, stddev (of a sample), variance";

/// Adds them to a connection.
pub(crate) fn add(connection: &Connection) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for (name, of) in OF_ONE {
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(number(context, 0).map(of).filter(|n| n.is_finite()))
        })?;
    }
    connection.create_scalar_function("pow", 2, flags, |context| {
        let power = number(context, 0).zip(number(context, 1)).map(|(base, to)| base.powf(to));
        Ok(power.filter(|number| number.is_finite()))
    })?;
    connection.create_aggregate_function("median", 1, flags, Median)?;
    connection.create_aggregate_function("stddev", 1, flags, Spread { root: true })?;
    connection.create_aggregate_function("variance", 1, flags, Spread { root: false })
}

fn number(context: &Context<'_>, at: usize) -> Option<f64> {
    match context.get_raw(at) {
        #[expect(clippy::cast_precision_loss, reason = "functions of real numbers")]
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    }
}

struct Median;

impl Aggregate<Vec<f64>, Option<f64>> for Median {
    fn init(&self, _: &mut Context<'_>) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }

    fn step(&self, context: &mut Context<'_>, values: &mut Vec<f64>) -> Result<()> {
        if values.len() >= MAX_VALUES {
            return Err(rusqlite::Error::UserFunctionError(
                format!("a median is of at most {MAX_VALUES} values; take a part of them").into(),
            ));
        }
        values.extend(number(context, 0));
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, values: Option<Vec<f64>>) -> Result<Option<f64>> {
        let mut values = values.unwrap_or_default();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        Ok(match (values.get(middle), values.len() % 2) {
            (None, _) => None,
            (Some(value), 1) => Some(*value),
            (Some(value), _) => Some(f64::midpoint(values[middle - 1], *value)),
        })
    }
}

/// By Welford's method: one pass, and exact where the mean is large.
struct Spread {
    root: bool,
}

#[derive(Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Aggregate<Moments, Option<f64>> for Spread {
    fn init(&self, _: &mut Context<'_>) -> Result<Moments> {
        Ok(Moments::default())
    }

    fn step(&self, context: &mut Context<'_>, moments: &mut Moments) -> Result<()> {
        if let Some(value) = number(context, 0) {
            moments.count += 1.0;
            let off = value - moments.mean;
            moments.mean += off / moments.count;
            moments.squares += off * (value - moments.mean);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, moments: Option<Moments>) -> Result<Option<f64>> {
        let moments = moments.filter(|moments| moments.count > 1.0);
        let variance = moments.map(|moments| moments.squares / (moments.count - 1.0));
        Ok(if self.root { variance.map(f64::sqrt) } else { variance })
    }
}
