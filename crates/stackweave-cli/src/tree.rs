//! `stackweave tree`: who called whom.

use crate::arguments::Tree;
use crate::below::write_below;
use crate::failure::Failure;
use crate::screen::{Screen, show, show_json};
use crate::text::{TreeOptions, write_tree};
use crate::tree_json;

pub(crate) fn run(arguments: &Tree) -> Result<(), Failure> {
    let selected = arguments.selection.profile(&arguments.recordings)?;
    let Screen { width, colour, .. } = Screen::of_output();
    let options = TreeOptions {
        max_depth: arguments.depth,
        min_share: arguments.min / 100.0,
        width,
        view: arguments.selection.part.view(),
        colour,
    };
    if arguments.json {
        return show_json(|out| tree_json::write(out, &selected.profile, &options, &selected.remarks));
    }
    show(&selected.remarks, |out| {
        write_tree(out, &selected.profile, &options)?;
        write_below(out, &selected, &options.view)
    })
}
