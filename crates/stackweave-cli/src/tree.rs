//! `stackweave tree`: the call tree.

use crate::arguments::TreeArguments;
use crate::failure::Failure;
use crate::screen::{OutputFeatures, show, show_json};
use crate::table_notes::write_table_notes;
use crate::text::{TreeOptions, write_tree};
use crate::tree_json;

/// Paths with a smaller share of the total have no line.
const MIN_PERCENT: f64 = 1.0;

pub(crate) fn run(arguments: &TreeArguments) -> Result<(), Failure> {
    let selected = arguments.selection.profile(&arguments.recordings)?;
    let OutputFeatures { width, colour, .. } = OutputFeatures::of_output();
    let options = TreeOptions {
        max_depth: arguments.depth,
        min_share: arguments.min.unwrap_or(MIN_PERCENT) / 100.0,
        keeps_program: arguments.min.is_none(),
        width,
        colour,
    };
    if arguments.json {
        return show_json(|out| tree_json::write(out, &selected.profile, &options, &selected.remarks));
    }
    show(&selected.remarks, |out| {
        write_tree(out, &selected.profile, &options)?;
        write_table_notes(out, &selected)
    })
}
