//! The model of a heap: which blocks and mappings are live, where they were allocated, and how much that was at the peak.
//!
//! A [`Ledger`] enters events in the order of their times, for a recorder while they happen or for a reader later. At each moment
//! it has what is live and what was live at the peak, for each place. Nothing is added up at the end.
//!
//! | file | holds |
//! |---|---|
//! | `ledger` | the ledger itself |
//! | `block_table` | live blocks, 16 bytes each |
//! | `ranges` | live mappings, of which parts may be unmapped |
//! | `account`, `high_water` | the figures of one place, and of all |
//! | `places` | where memory was allocated, as numbers |
//! | `recent` | what each thread did last: for temporary blocks, and for frees that did not happen |
//! | `out_of_order` | events that come after later ones |
//! | `sampling` | what one allocation of a sample stands for |

mod account;
mod block_table;
mod figures;
mod high_water;
#[cfg(target_os = "linux")]
mod large_pages_linux;
#[cfg(not(target_os = "linux"))]
mod large_pages_portable;
mod ledger;
mod out_of_order;
mod places;
#[cfg(not(target_arch = "x86_64"))]
mod prefetch_portable;
#[cfg(target_arch = "x86_64")]
mod prefetch_x86_64;
mod ranges;
mod recent;
mod sampling;
mod small_account;

#[cfg(target_os = "linux")]
use large_pages_linux::prefer_large_pages;
#[cfg(not(target_os = "linux"))]
use large_pages_portable::prefer_large_pages;
#[cfg(not(target_arch = "x86_64"))]
use prefetch_portable::prefetch;
#[cfg(target_arch = "x86_64")]
use prefetch_x86_64::prefetch;

pub use figures::{Figures, Place, Totals};
pub use ledger::{Block, Ledger, LedgerOptions};
pub use places::PlaceId;
pub use sampling::stands_for;
