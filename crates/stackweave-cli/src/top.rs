//! `stackweave top`: the functions with the highest cost.

use std::io::{self, Write};

use serde_json::{Value, json};
use stackweave_profile::{CallStatistics, FunctionId, Profile};

use crate::arguments::TopArguments;
use crate::failure::Failure;
use crate::json_values::{cost, function, hidden, share, unit};
use crate::screen::{OutputFeatures, show, show_json};
use crate::selection::Selected;
use crate::table_notes::write_table_notes;
use crate::text::{Sort, TableOptions, sorted_functions, write_table};

pub(crate) fn run(arguments: &TopArguments) -> Result<(), Failure> {
    let selected = arguments.selection.profile(&arguments.recordings)?;
    let OutputFeatures { width, colour, .. } = OutputFeatures::of_output();
    if arguments.json {
        let Selected { profile, remarks, .. } = &selected;
        return show_json(|out| write_json(out, profile, (arguments.sort, arguments.limit), remarks));
    }
    let options = TableOptions {
        sort: arguments.sort,
        limit: Some(arguments.limit),
        width,
        colour,
        folder: std::env::current_dir().ok(),
    };
    show(&selected.remarks, |out| {
        write_table(out, &selected.profile, &options)?;
        write_table_notes(out, &selected)
    })
}

fn write_json(
    out: &mut dyn Write,
    profile: &Profile,
    (sort, limit): (Sort, usize),
    remarks: &[String],
) -> io::Result<()> {
    let functions = sorted_functions(profile, sort);
    let rows: Vec<Value> = functions.iter().take(limit).map(|(id, of)| row(profile, *id, *of)).collect();
    let whole = json!({
        "measure": profile.measure().as_str(),
        "unit": unit(profile.measure()),
        "total": cost(profile.measure(), profile.total()),
        "left_out": functions.len() - rows.len(),
        "hidden": hidden(profile.hidden(), profile.total(), profile.measure()),
        "functions": rows,
        "remarks": remarks,
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}

fn row(profile: &Profile, id: FunctionId, of: CallStatistics) -> Value {
    let (measure, whole) = (profile.measure(), profile.total());
    let mut row = function(profile.functions().function(id));
    let figures = [
        ("calls", json!(of.calls)),
        ("primitive_calls", json!(of.primitive_calls)),
        ("self", cost(measure, of.self_cost)),
        ("self_share", share(of.self_cost, whole)),
        ("total", cost(measure, of.total)),
        ("total_share", share(of.total, whole)),
    ];
    row.extend(figures.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(row)
}
