//! Which blocks of memory are taken, by whom, and how much that was at its highest.
//!
//! A ledger is told of events in the order of their times, by a recorder while they happen or by a reader later, and knows
//! at each moment what is live and what was live at the peak, for each place. Nothing is added up at the end.
//!
//! | file | holds |
//! |---|---|
//! | `book` | the ledger itself |
//! | `block_table` | live blocks, 16 bytes each |
//! | `ranges` | live mappings, which may be given back in parts |
//! | `account`, `high_water` | the figures of one place, and of all |
//! | `places` | who has taken memory, as numbers |
//! | `recent` | what each thread did last: for temporary blocks, and for frees that did not happen |
//! | `late` | events that are told after later ones |
//! | `sampling` | what one allocation of a sample stands for |

mod account;
mod block_table;
mod book;
mod figures;
mod high_water;
#[cfg(target_os = "linux")]
mod large_pages_linux;
#[cfg(not(target_os = "linux"))]
mod large_pages_portable;
mod late;
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

pub use book::{Block, Ledger, LedgerOptions};
pub use figures::{Figures, Place, Totals};
pub use places::PlaceId;
pub use sampling::stands_for;
