//! Ticks, and their conversion to nanoseconds.

#[cfg(all(target_arch = "x86_64", not(stackweave_unsupported)))]
#[path = "counter_x86_64.rs"]
mod counter;
#[cfg(not(all(target_arch = "x86_64", not(stackweave_unsupported))))]
#[path = "counter_none.rs"]
mod counter;

mod point;
mod reading;
mod timeline;

pub use point::{ClockPoint, ClockSource};
pub use reading::Clock;
pub use timeline::{ClockTimeline, residual_ns};
