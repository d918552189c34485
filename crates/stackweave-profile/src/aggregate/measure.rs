//! What a profile counts.

use core::fmt;

/// What the costs of a profile are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Time between the begin and the end of what was recorded, in nanoseconds.
    #[default]
    WallTime,
    /// The weights of samples.
    Samples,
    /// The bytes of all allocations, whether they were freed or not.
    AllocatedBytes,
    /// How many allocations there were.
    Allocations,
    /// The bytes of the allocations that were not freed.
    LiveBytes,
}

impl Measure {
    /// Every measure.
    pub const ALL: [Self; 5] =
        [Self::WallTime, Self::Samples, Self::AllocatedBytes, Self::Allocations, Self::LiveBytes];

    /// The measure in one word, as it is given on a command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WallTime => "time",
            Self::Samples => "samples",
            Self::AllocatedBytes => "bytes",
            Self::Allocations => "allocations",
            Self::LiveBytes => "live",
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
            Self::Samples => "samples",
            Self::AllocatedBytes => "bytes allocated",
            Self::Allocations => "allocations",
            Self::LiveBytes => "bytes still alive at the end",
        }
    }

    /// What [`Cost::calls`](crate::Cost::calls) counts.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::WallTime => "calls",
            Self::Samples => "samples",
            Self::AllocatedBytes | Self::Allocations | Self::LiveBytes => "blocks",
        }
    }

    /// Whether it is counted how often a function was called, rather than what happened in it.
    pub const fn counts_calls(self) -> bool {
        matches!(self, Self::WallTime)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
