//! Profiles as text.

mod diff;
mod flame;
mod heap;
mod hidden;
mod location;
mod phases;
mod program_paths;
mod rows;
mod short_name;
mod style;
mod table;
mod timed_calls;
mod tree;
mod usage;
mod values;

pub use diff::{DiffOptions, write_diff};
pub use flame::{FlameBox, FlameOptions, FlameShape, FlameTree, Palette, write_flame};
pub use heap::{HeapOptions, HeapView, write_heap};
pub use hidden::{ALL, write_hidden};
pub use phases::{PhaseSort, PhasesOptions, sorted_phases, write_phases};
pub(crate) use program_paths::program_paths;
pub use short_name::shorten;
pub use table::{Sort, TableOptions, sorted_functions, write_table};
pub use timed_calls::{PstatsKey, timed_calls_table};
pub use tree::{TreeOptions, write_tree};
pub use usage::{UsageLines, usage_frames, usage_tree_text};
