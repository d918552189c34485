//! Changed costs, as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value, json};
use stackweave_profile::{CallStatistics, Cost, Diff, DiffNode, FunctionDiff, ValueChange};

use crate::diff_gate::{GateResult, Sides};
use crate::json_values::{cost, function, hidden, unit};
use crate::text::DiffOptions;

/// Writes the functions or the paths that changed most, and the result of the gate.
pub(crate) fn write(
    out: &mut dyn Write,
    sides: &Sides<'_>,
    options: &DiffOptions,
    (verdict, remarks): (&GateResult, &[String]),
) -> io::Result<()> {
    let diff = sides.diff;
    let limit = options.limit.unwrap_or(usize::MAX);
    let mut whole = json!({
        "measure": diff.measure().as_str(),
        "unit": if diff.is_normalised() { "share" } else { unit(diff.measure()) },
        "total": change(diff, diff.total()),
        "selected": change(diff, sides.total()),
        "hidden": hidden_of_both(diff),
        "remarks": remarks,
    });
    if verdict.is_requested {
        whole["gate"] = json!({"passed": verdict.sentence.is_none(), "sentence": verdict.sentence});
    }
    if options.by_path {
        whole["paths"] = rows(paths(diff), limit);
    } else {
        whole["functions"] = rows(functions(diff), limit);
    }
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn hidden_of_both(diff: &Diff) -> Value {
    let [before, after] = diff.hidden().map(|(of, total)| hidden(of, total, diff.measure()));
    json!({"before": before, "after": after})
}

fn rows(mut rows: Vec<(ValueChange, Map<String, Value>)>, limit: usize) -> Value {
    rows.retain(|(change, _)| change.difference() != 0.0);
    rows.sort_by(|(a, _), (b, _)| b.difference().abs().total_cmp(&a.difference().abs()));
    rows.into_iter().take(limit).map(|(_, row)| row).collect()
}

fn functions(diff: &Diff) -> Vec<(ValueChange, Map<String, Value>)> {
    let side = |of: Option<CallStatistics>| of.map(|of| (of.calls, of.self_cost, of.total));
    let row = |of: &FunctionDiff| {
        let mut row = function(diff.functions().function(of.function));
        let changed = diff.change(of.before.map(|cost| cost.self_cost), of.after.map(|cost| cost.self_cost));
        put_sides(diff, &mut row, [side(of.before), side(of.after)], changed);
        (changed, row)
    };
    diff.by_function().iter().map(row).collect()
}

fn paths(diff: &Diff) -> Vec<(ValueChange, Map<String, Value>)> {
    let side = |of: Option<Cost>| of.map(|of| (of.calls, of.self_cost, of.total));
    let row = |node: &DiffNode| {
        let mut row = function(diff.functions().function_of(node.frame));
        row.insert("callers".to_owned(), callers(diff, node));
        let changed = diff.change(node.before.map(|cost| cost.total), node.after.map(|cost| cost.total));
        put_sides(diff, &mut row, [side(node.before), side(node.after)], changed);
        (changed, row)
    };
    diff.nodes().iter().skip(1).map(row).collect()
}

/// Returns the names of the callers, outermost first.
fn callers(diff: &Diff, node: &DiffNode) -> Value {
    let mut names = Vec::new();
    let mut next = node.parent;
    while next.index() != 0 {
        let above = diff.nodes()[next.index()];
        names.push(json!(&**diff.functions().function_of(above.frame).full_name()));
        next = above.parent;
    }
    names.reverse();
    Value::Array(names)
}

fn put_sides(diff: &Diff, row: &mut Map<String, Value>, sides: [Option<(u64, i64, i64)>; 2], changed: ValueChange) {
    let side = |of: Option<(u64, i64, i64)>| {
        of.map(|(calls, self_cost, total)| {
            json!({"calls": calls, "self": cost(diff.measure(), self_cost), "total": cost(diff.measure(), total)})
        })
    };
    row.insert("before".to_owned(), json!(side(sides[0])));
    row.insert("after".to_owned(), json!(side(sides[1])));
    row.insert("change".to_owned(), change(diff, changed));
}

/// Writes `before` and `after` like the text: in the unit, or as shares.
fn change(diff: &Diff, of: ValueChange) -> Value {
    let value = |number: f64| -> Value {
        #[expect(clippy::cast_possible_truncation, reason = "it was converted from an integer")]
        if diff.is_normalised() { json!(number) } else { cost(diff.measure(), number.round() as i64) }
    };
    json!({"before": value(of.before), "after": value(of.after), "difference": value(of.difference()), "ratio": of.ratio()})
}
