//! How memory was recorded, from the start of a recording.

use stackweave_heap::{LedgerOptions, Scale};
use stackweave_recording::file::ProcessStart;

/// Which memory events a recording has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordedMode {
    /// All events.
    #[default]
    History,
    /// Totals only.
    Aggregate,
    /// A sample by bytes: figures are estimates.
    Sampled,
}

impl RecordedMode {
    /// Returns the name of the mode, as in the header.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Aggregate => "aggregate",
            Self::Sampled => "sampled",
        }
    }
}

/// The settings of a recorder of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryHeader {
    /// The mode.
    pub mode: RecordedMode,
    /// The number of bytes that one sampled allocation stands for, on average.
    pub sample_every: Option<u64>,
    /// A block is temporary if its thread had allocated at most this many others when it was freed.
    pub temporary: u32,
    /// Whether stacks have native frames.
    pub native: bool,
    /// Whether blocks of Python's allocators are recorded.
    pub python_allocators: bool,
    /// Whether calls were recorded too.
    pub beside_calls: bool,
}

impl Default for MemoryHeader {
    fn default() -> Self {
        Self {
            mode: RecordedMode::History,
            sample_every: None,
            temporary: 1,
            native: true,
            python_allocators: false,
            beside_calls: false,
        }
    }
}

impl MemoryHeader {
    /// Returns the header of a recording; `None` if it has no memory recorder.
    pub fn of(start: &ProcessStart) -> Option<Self> {
        let option = |name: &str| start.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        if option("recorder") != Some("memory") {
            return None;
        }
        let mode = match option("memory.mode") {
            Some("aggregate") => RecordedMode::Aggregate,
            Some("sampled") => RecordedMode::Sampled,
            _ => RecordedMode::History,
        };
        let every = option("memory.sample_every").and_then(|text| text.parse().ok()).filter(|every| *every > 0);
        Some(Self {
            mode,
            sample_every: every.filter(|_| mode == RecordedMode::Sampled),
            temporary: option("memory.temporary").and_then(|text| text.parse().ok()).unwrap_or(1),
            native: option("memory.native") != Some("0"),
            python_allocators: option("memory.python_allocators") == Some("1"),
            beside_calls: option("calls") == Some("1"),
        })
    }

    /// Returns how the allocations of a recording are counted.
    pub fn scale_of(start: &ProcessStart) -> Scale {
        Scale::new(Self::of(start).and_then(|header| header.sample_every))
    }

    /// Returns the options of a ledger that counts like the recorder.
    pub(super) fn ledger(&self, temporary: Option<u32>) -> LedgerOptions {
        LedgerOptions { temporary: temporary.unwrap_or(self.temporary), sample_every: self.sample_every }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(options: &[(&str, &str)]) -> Option<MemoryHeader> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        MemoryHeader::of(&ProcessStart { options, ..ProcessStart::default() })
    }

    #[test]
    fn only_a_memory_recorder_has_a_header() {
        assert_eq!(header(&[]), None);
        assert_eq!(header(&[("recorder", "trace"), ("memory.mode", "sampled")]), None);
        assert_eq!(header(&[("recorder", "memory")]), Some(MemoryHeader::default()));
    }

    #[test]
    fn calls_may_be_recorded_too() {
        let is_said = |options: &[_]| header(options).unwrap_or_default().beside_calls;
        assert!(!is_said(&[("recorder", "memory")]));
        assert!(is_said(&[("recorder", "memory"), ("calls", "1")]));
    }

    #[test]
    fn only_a_sampled_recording_is_scaled() {
        let every = ("memory.sample_every", "4096");
        let sampled = header(&[("recorder", "memory"), ("memory.mode", "sampled"), every, ("memory.temporary", "3")]);
        let sampled = sampled.unwrap_or_default();
        assert_eq!((sampled.mode, sampled.sample_every, sampled.temporary), (RecordedMode::Sampled, Some(4096), 3));
        let all = header(&[("recorder", "memory"), ("memory.mode", "history"), every]).unwrap_or_default();
        assert_eq!((all.mode, all.sample_every), (RecordedMode::History, None));
    }
}
