//! Profiles as text for people.

mod diff;
mod heap;
mod phases;
mod place;
mod rows;
mod style;
mod table;
mod tree;
mod values;

pub use diff::{DiffOptions, write_diff};
pub use heap::{HeapOptions, HeapView, write_heap};
pub use phases::{PhaseSort, PhasesOptions, write_phases};
pub use table::{Sort, TableOptions, write_table};
pub use tree::{TreeOptions, write_tree};
