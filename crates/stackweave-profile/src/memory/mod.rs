//! The memory of recordings: how much was allocated where and when, and what is live.
//!
//! A recording of memory ends with a snapshot: totals for each call site, counted while it was recorded. They answer
//! queries of the whole recording at once, however many events it has. For a time range, and without a snapshot, the
//! events are replayed with the same [`Ledger`](stackweave_heap::Ledger), in the order of time.

mod device_account;
mod device_curve;
mod device_report;
mod device_state;
mod devices;
mod figures;
mod foreign_hooks;
mod header;
mod history;
mod labels;
mod live_devices;
mod packed_rows;
mod process_figures;
mod query;
mod recorder_thread;
mod remarks;
mod replay;
mod report;
mod snapshot;
mod timeline;
mod top_stacks;
mod usage;

pub use device_curve::DevicePoint;
pub use device_report::{DeviceMemory, only_of_device, pool_name};
pub use device_state::{DeviceState, ListedSegment, PoolState};
pub use devices::{DeviceHistory, DeviceReader, FailedRequest, PoolHistory, read_devices};
pub use figures::{add as add_figures, add_totals};
pub use foreign_hooks::{ForeignHooks, why_unusable};
pub use header::{MemoryHeader, RecordedMode};
pub use history::{AllocationHistory, HistoryRow, read_history, read_history_stacks};
pub use live_devices::{LiveChanges, LiveDevices, LiveRange};
pub use query::MemoryQuery;
pub use remarks::{has_no_history, remarks};
pub use replay::Replay;
pub use report::{FromBefore, MemoryReport, NamedFigures, ProcessMemory, read_report};
pub use timeline::{MemoryTimeline, TimelinePoint, lifetime, read_timeline};
pub use top_stacks::{StackRow, top_stacks};
pub use usage::{DeviceUsage, MemoryUsage, UsageRow, UsageSource, read_usage};

pub(crate) use device_report::{default_device, first_device};
pub(crate) use process_figures::{DeviceSums, ProcessFigures};
pub(crate) use recorder_thread::RecorderThread;
pub(crate) use replay::{CallSiteFigures, Replayed};
pub(crate) use report::figures_report;
pub(crate) use snapshot::RecordedSnapshot;
pub(crate) use timeline::ReplayCurve;
pub(crate) use usage::{usable_snapshot, usage_so_far};

#[doc(no_inline)]
pub use stackweave_heap::{Figures, Totals};
