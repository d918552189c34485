//! Ticks, and what they are in nanoseconds.

mod point;
mod timeline;

pub use point::{ClockPoint, ClockSource};
pub use timeline::{Timeline, residual_ns};
