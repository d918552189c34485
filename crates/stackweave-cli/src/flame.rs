//! `stackweave flame`: a flame graph in the terminal.

use std::path::PathBuf;

use clap::Args;
use stackweave_profile::Pattern;

use crate::arguments::SelectionArguments;
use crate::failure::Failure;
use crate::flame_json;
use crate::screen::{OutputFeatures, show, show_json};
use crate::table_notes::write_table_notes;
use crate::text::{FlameOptions, FlameShape, FlameTree, write_flame};

#[derive(Debug, Args)]
pub(crate) struct Flame {
    /// Recordings to read, together
    #[arg(value_name = "RECORDING", required = true, value_hint = clap::ValueHint::FilePath)]
    pub(crate) recordings: Vec<PathBuf>,
    /// Only the calls below this function: a part of its name, or a pattern as of --include
    #[arg(long, value_name = "FUNCTION")]
    pub(crate) root: Option<Pattern>,
    /// Start with self costs and continue with the callers
    #[arg(long)]
    pub(crate) bottom_up: bool,
    /// Show at most this many levels; by default as many as fit the screen
    #[arg(long, value_name = "LEVELS")]
    pub(crate) depth: Option<usize>,
    /// The width in columns; by default that of the screen, or 100
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(20..=10_000))]
    pub(crate) width: Option<u16>,
    /// Write JSON in the format of d3-flame-graph
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten, next_help_heading = "Selection")]
    pub(crate) selection: SelectionArguments,
}

const WIDTH: usize = 100;
/// Lines that are not levels: the total, the notes and the next prompt.
const OTHER_LINES: usize = 3;

pub(crate) fn run(arguments: &Flame) -> Result<(), Failure> {
    let mut selected = arguments.selection.profile(&arguments.recordings)?;
    let screen = OutputFeatures::of_output();
    let width = arguments.width.map_or_else(|| screen.width.unwrap_or(WIDTH), usize::from);
    let mut shape = FlameShape {
        root: arguments.root.clone(),
        bottom_up: arguments.bottom_up,
        max_depth: arguments.depth,
        ..FlameShape::default()
    };
    if arguments.json {
        shape.max_depth = Some(arguments.depth.unwrap_or(flame_json::MOST_LEVELS));
        let tree = FlameTree::of(&selected.profile, &shape);
        check_root(arguments, &tree)?;
        if arguments.depth.is_none() && tree.deepest > tree.depth() {
            let deeper = tree.deepest - tree.depth();
            selected.remarks.push(format!("{deeper} more levels are left out; --depth shows them."));
        }
        return show_json(|out| flame_json::write(out, &tree, selected.profile.hidden(), &selected.remarks));
    }
    let options = FlameOptions { width, palette: screen.palette() };
    let lines = screen.height.map(|height| height.saturating_sub(OTHER_LINES).max(1));
    shape.max_depth = arguments.depth.or(lines);
    // Filters may leave only a part of the total, which is known only now.
    let whole = FlameTree::of(&selected.profile, &FlameShape { max_depth: Some(0), least: i64::MAX, ..shape.clone() });
    check_root(arguments, &whole)?;
    shape.least = options.least(whole.boxes[0].value);
    let tree = FlameTree::of(&selected.profile, &shape);
    show(&selected.remarks, |out| {
        write_flame(out, &tree, &options)?;
        write_table_notes(out, &selected)
    })
}

fn check_root(arguments: &Flame, tree: &FlameTree) -> Result<(), Failure> {
    match &arguments.root {
        Some(_) if tree.boxes[0].value == 0 => {
            Err(Failure::new("no function that is shown matches --root; stackweave top lists the functions"))
        }
        _ => Ok(()),
    }
}
