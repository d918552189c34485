//! `stackweave diff`: which costs changed between two recordings.

use std::path::Path;

use stackweave_profile::{Diff as ProfileDiff, Hidden};

use crate::arguments::DiffArguments;
use crate::diff_gate::{Checked, Gate, Sides};
use crate::diff_json;
use crate::failure::Failure;
use crate::screen::{OutputFeatures, show, show_json};
use crate::selection::Selected;
use crate::text::{ALL, DiffOptions, write_diff, write_hidden};

pub(crate) fn run(arguments: &DiffArguments) -> Result<(), Failure> {
    let gate = Gate {
        total: arguments.gate.fail_above,
        each: arguments.gate.fail_above_each,
        allows_incomplete: arguments.gate.allow_incomplete,
    };
    let has_filter = !arguments.selection.filters.view().filter.is_empty();
    if arguments.shares && gate.total.is_some() && !has_filter {
        return Err(Failure::new(
            "shares of the whole recording always add up to 100 %: --fail-above needs --include beside --shares",
        ));
    }
    let before = arguments.selection.profile(&[&arguments.before])?;
    let after = arguments.selection.profile(&[&arguments.after])?;
    let sides = [&before.profile, &after.profile];
    let diff = ProfileDiff::of(sides[0], sides[1], arguments.shares);
    let diff = diff.map_err(|error| Failure::new(format!("{error}; --measure selects one that both have")))?;
    let selected = Sides { diff: &diff, selected: sides.map(|side| side.total() - side.without_frame()) };
    let checked = [checked(&arguments.before, &before), checked(&arguments.after, &after)];
    let verdict = gate.judge(&selected, checked);
    let OutputFeatures { width, colour, .. } = OutputFeatures::of_output();
    let options = DiffOptions {
        by_path: arguments.paths,
        limit: Some(arguments.limit),
        width,
        colour,
        folder: std::env::current_dir().ok(),
        ..DiffOptions::default()
    };
    let remarks = [before.remarks, after.remarks].concat();
    let shown = if arguments.json {
        show_json(|out| diff_json::write(out, &selected, &options, (&verdict, &remarks)))
    } else {
        show(&remarks, |out| {
            write_diff(out, &diff, &options)?;
            write_hidden(out, Hidden::sentence_of_both(diff.hidden(), diff.measure(), ALL))
        })
    };
    match shown {
        // The gate is judged even if the reader of the table has stopped reading.
        Ok(()) | Err(Failure::Closed) => {}
        failed => return failed,
    }
    match verdict.sentence {
        Some(sentence) if verdict.is_unknown => Err(Failure::new(sentence)),
        Some(sentence) => Err(Failure::Gate(sentence)),
        None => Ok(()),
    }
}

fn checked<'a>(path: &'a Path, selected: &'a Selected) -> Checked<'a> {
    let has_functions = selected.profile.tree().nodes().len() > 1;
    Checked { path, has_functions, incomplete: selected.incomplete.as_deref() }
}
