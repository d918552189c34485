//! The model of a heap: the live blocks and mappings, their call sites, and the memory at the peak.
//!
//! [`LiveHeap`] has the live blocks and mappings, with a value for each, and owns the rules of what an event changes. It is
//! for every reader of events.
//!
//! A [`Ledger`] records events in the order of time, for a recorder as they happen or for a reader later. At each
//! moment it has the live memory and the memory at the peak of each call site. Nothing is added up at the end.
//!
//! | file | holds |
//! |---|---|
//! | `ledger` | the ledger itself |
//! | `live_heap` | the rules of what an event changes, for the ledger and for all other readers |
//! | `live_blocks` | live blocks, 12 bytes and a value each |
//! | `live_ranges` | live mappings, which can be unmapped in parts |
//! | `account`, `high_water` | the figures of one call site, and of all |
//! | `call_sites` | call sites of allocations, as numbers |
//! | `recent` | the last blocks of each thread, for temporary blocks |
//! | `by_thread` | records of threads |
//! | `out_of_order` | events that are recorded after later ones |
//! | `sampling` | the scale of sampled allocations |

mod account;
mod by_thread;
mod call_sites;
mod figures;
mod high_water;
#[cfg(target_os = "linux")]
mod large_pages_linux;
#[cfg(not(target_os = "linux"))]
mod large_pages_portable;
mod ledger;
mod live_blocks;
mod live_heap;
mod live_ranges;
mod out_of_order;
#[cfg(not(target_arch = "x86_64"))]
mod prefetch_portable;
#[cfg(target_arch = "x86_64")]
mod prefetch_x86_64;
mod recent_blocks;
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

pub use call_sites::CallSiteId;
pub use figures::{CallSite, Figures, Totals};
pub use ledger::{Block, Ledger, LedgerOptions};
pub use live_blocks::{Full, LiveBlock, LiveBlocks};
pub use live_heap::{Kept, LiveHeap};
pub use live_ranges::{Cut, FreedEnd, LiveRanges, MappingPart, Restored};
pub use sampling::{Scale, Weight, stands_for};
