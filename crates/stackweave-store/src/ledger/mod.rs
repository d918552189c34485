//! Which blocks of memory are taken, by whom, and how much that was at its highest.
//!
//! A ledger is told of events in the order of their times, by a recorder while they happen or by a reader later, and knows
//! at each moment what is live and what was live at the peak, for each place. Nothing is added up at the end.

mod figures;

pub use figures::{Figures, Place, Totals};
