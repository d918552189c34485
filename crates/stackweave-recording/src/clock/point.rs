//! Simultaneous readings of clocks.

use core::fmt;

/// The clock that a recording's ticks are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClockSource {
    /// The processor's time stamp counter.
    Tsc = 1,
    /// The system's monotonic clock, whose ticks are nanoseconds.
    Monotonic = 2,
}

impl ClockSource {
    /// Returns the clock's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
        }
    }
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The recording's clock, the system's monotonic clock and the wall clock, read together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClockPoint {
    /// Ticks since the recording's base.
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`: common to all processes since the machine booted.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970 by the wall clock.
    pub wall_ns: i64,
    /// The time that the reading took: the bound on the distance between the two clocks.
    pub width_ns: u32,
}
