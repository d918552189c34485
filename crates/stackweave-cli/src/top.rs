//! `stackweave top`: the functions that cost most.

use stackweave_profile::{Sort, TableOptions, write_table};

use crate::arguments::{Order, Top};
use crate::failure::Failure;
use crate::selection::{Screen, show};

pub(crate) fn run(arguments: &Top) -> Result<(), Failure> {
    let selected = arguments.selection.profile(&arguments.recordings)?;
    let Screen { width, colour } = Screen::of_output();
    let sort = match arguments.sort {
        Order::Own => Sort::Own,
        Order::Total => Sort::Total,
        Order::Calls => Sort::Calls,
    };
    let options =
        TableOptions { sort, limit: Some(arguments.number), width, view: arguments.selection.part.view(), colour };
    show(&selected.remarks, |out| write_table(out, &selected.profile, &options))
}
