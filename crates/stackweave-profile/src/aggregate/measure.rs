//! What a profile counts.

use core::fmt;

/// What the costs of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Time between the begin and the end of what was recorded, in nanoseconds.
    #[default]
    WallTime,
    /// How often functions were called: the same on every machine, where time is not. Those that a view does not show do
    /// not count.
    Calls,
    /// The weights of samples.
    Samples,
    /// The bytes of all allocations, whether they were freed or not.
    AllocatedBytes,
    /// How many allocations there were.
    Allocations,
    /// The bytes of the allocations that were not freed. Of a part of the time: that were made in it, and not freed in it.
    LiveBytes,
    /// The bytes of the blocks that were live when the process had most.
    PeakBytes,
    /// The bytes of blocks that were freed again before their thread had taken many others.
    TemporaryBytes,
}

/// A measure, and of one of memory whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) measure: Measure,
    pub(crate) device: i64,
}

impl Measure {
    /// Every measure that recordings hold themselves: [`Measure::Calls`] is made of the spans of wall time.
    pub const ALL: [Self; 7] = [
        Self::WallTime,
        Self::Samples,
        Self::AllocatedBytes,
        Self::Allocations,
        Self::LiveBytes,
        Self::PeakBytes,
        Self::TemporaryBytes,
    ];

    /// The measure in one word, as it is given on a command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WallTime => "time",
            Self::Calls => "calls",
            Self::Samples => "samples",
            Self::AllocatedBytes => "bytes",
            Self::Allocations => "allocations",
            Self::LiveBytes => "live",
            Self::PeakBytes => "peak",
            Self::TemporaryBytes => "temporary",
        }
    }

    /// The measure of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.as_str() == name)
    }

    /// What the costs are, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::WallTime => "wall time",
            Self::Calls => "calls",
            Self::Samples => "samples",
            Self::AllocatedBytes => "bytes allocated",
            Self::Allocations => "allocations",
            Self::LiveBytes => "bytes still alive at the end",
            Self::PeakBytes => "bytes alive at the peak",
            Self::TemporaryBytes => "bytes of temporary blocks",
        }
    }

    /// What [`Cost::calls`](crate::Cost::calls) counts; nothing to be told where that is the cost itself.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::WallTime => "calls",
            Self::Calls => "",
            Self::Samples => "samples",
            _ => "blocks",
        }
    }

    /// Whether it is of memory.
    pub const fn is_memory(self) -> bool {
        !matches!(self, Self::WallTime | Self::Calls | Self::Samples)
    }

    /// Whether it is counted how often a function was called, rather than what happened in it.
    pub const fn counts_calls(self) -> bool {
        matches!(self, Self::WallTime | Self::Calls)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
