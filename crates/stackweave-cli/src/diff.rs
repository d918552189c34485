//! `stackweave diff`: what costs more, or less, than before.

use stackweave_profile::{Diff as ProfileDiff, DiffOptions, write_diff};

use crate::arguments::Diff;
use crate::failure::Failure;
use crate::selection::{Screen, show};

pub(crate) fn run(arguments: &Diff) -> Result<(), Failure> {
    let before = arguments.selection.profile(&[&arguments.before])?;
    let after = arguments.selection.profile(&[&arguments.after])?;
    let view = arguments.selection.part.view();
    let diff = ProfileDiff::of(&before.profile.view(&view), &after.profile.view(&view), arguments.shares);
    let diff = diff.map_err(|error| Failure::new(format!("{error}; --measure chooses what both count")))?;
    let Screen { width, colour } = Screen::of_output();
    let options = DiffOptions {
        by_path: arguments.paths,
        limit: Some(arguments.number),
        width,
        colour,
        ..DiffOptions::default()
    };
    let remarks = [before.remarks, after.remarks].concat();
    show(&remarks, |out| write_diff(out, &diff, &options))
}
