//! The measures of profiles.

use core::fmt;

/// The measure of a profile's costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Time between begin and end of spans, in nanoseconds.
    #[default]
    WallTime,
    /// The number of calls, which is the same on every machine, unlike time. Calls of hidden functions do
    /// not count.
    Calls,
    /// The weights of samples.
    Samples,
    /// The bytes of all allocations, freed or not.
    AllocatedBytes,
    /// The number of allocations.
    Allocations,
    /// The bytes that were not freed. In a time range: allocated and not freed in it.
    LiveBytes,
    /// The bytes that were live at the peak.
    PeakBytes,
    /// The bytes of temporary blocks: freed before their thread had allocated many others.
    TemporaryBytes,
}

/// A measure, and for memory the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceMeasure {
    pub(crate) measure: Measure,
    pub(crate) device: i64,
}

impl Measure {
    /// The measures that recordings contain: [`Measure::Calls`] is derived from the spans of wall time.
    pub const ALL: [Self; 7] = [
        Self::WallTime,
        Self::Samples,
        Self::AllocatedBytes,
        Self::Allocations,
        Self::LiveBytes,
        Self::PeakBytes,
        Self::TemporaryBytes,
    ];

    /// Returns the name of the measure, as on the command line.
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

    /// Returns the measure with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.as_str() == name)
    }

    /// Describes the costs.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::WallTime => "wall time",
            Self::Calls => "calls",
            Self::Samples => "samples",
            Self::AllocatedBytes => "bytes allocated",
            Self::Allocations => "allocations",
            Self::LiveBytes => "bytes live at the end",
            Self::PeakBytes => "bytes live at the peak",
            Self::TemporaryBytes => "bytes of temporary blocks",
        }
    }

    /// Returns what [`Cost::calls`](crate::Cost::calls) counts; empty if that is the cost itself.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::WallTime => "calls",
            Self::Calls => "",
            Self::Samples => "samples",
            _ => "blocks",
        }
    }

    /// Returns whether it is a measure of memory.
    pub const fn is_memory(self) -> bool {
        !matches!(self, Self::WallTime | Self::Calls | Self::Samples)
    }

    /// Returns whether it counts calls of functions, and not events in them.
    pub const fn counts_calls(self) -> bool {
        matches!(self, Self::WallTime | Self::Calls)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
