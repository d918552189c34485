//! Costs and functions in the JSON of all commands.

use serde_json::{Map, Value, json};
use stackweave_profile::{Function, Hidden, Measure};

use crate::text::ALL;

/// Returns the unit of costs in JSON: time is in seconds, not nanoseconds.
pub(crate) const fn unit(measure: Measure) -> &'static str {
    match measure {
        Measure::WallTime => "seconds",
        other => raw_unit(other),
    }
}

/// Returns the unit of recorded costs.
pub(crate) const fn raw_unit(measure: Measure) -> &'static str {
    match measure {
        Measure::WallTime => "nanoseconds",
        Measure::Calls => "calls",
        Measure::Samples => "samples",
        Measure::Allocations => "allocations",
        Measure::AllocatedBytes | Measure::LiveBytes | Measure::PeakBytes | Measure::TemporaryBytes => "bytes",
    }
}

/// Converts a cost to its [`unit`].
pub(crate) fn cost(measure: Measure, cost: i64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a double holds some weeks to the nanosecond")]
    match measure {
        Measure::WallTime => json!(cost as f64 / 1e9),
        _ => json!(cost),
    }
}

/// Returns a share, from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(crate) fn share(part: i64, whole: i64) -> Value {
    json!(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

/// Returns what a view hides of a total, and the option that shows it.
pub(crate) fn hidden(of: Hidden, total: i64, measure: Measure) -> Value {
    hidden_with(of, (total, measure), &cost(measure, of.self_cost))
}

/// Returns the same with the hidden self cost in another unit.
pub(crate) fn hidden_with(of: Hidden, (total, measure): (i64, Measure), self_cost: &Value) -> Value {
    json!({
        "functions": of.functions,
        "self": self_cost,
        "share": of.share(total, measure),
        "costly": of.costly,
        "shown_by": ALL,
    })
}

/// Returns the fields of a function; unknown ones are `null`.
pub(crate) fn function(of: &Function) -> Map<String, Value> {
    let fields = [
        ("name", json!(&**of.full_name())),
        ("filename", json!(of.filename.as_deref())),
        ("module", json!(of.module_name().map(|name| &**name))),
        ("lineno", json!(of.first_line)),
        ("kind", json!(of.kind.as_str())),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns a field, if its value is known.
pub(crate) fn text(name: &'static str, value: Option<&str>) -> Option<(&'static str, Value)> {
    value.map(|value| (name, json!(value)))
}
