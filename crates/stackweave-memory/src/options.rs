//! How memory is recorded.

use std::time::Duration;

/// Which events the recording contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryMode {
    /// The recording contains every event.
    #[default]
    History,
    /// The recording contains only figures for each allocation site.
    Aggregate,
    /// The recording contains one allocation per `every` bytes on average, chosen at random: every byte is equally
    /// likely.
    Sampled {
        /// The average number of bytes between two samples.
        every: u64,
    },
}

/// The options of a memory recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the settings are independent")]
pub struct MemoryOptions {
    /// Which events the recording contains.
    pub mode: MemoryMode,
    /// Whether stacks have native frames.
    pub native: bool,
    /// Whether blocks of Python's own allocators are recorded, instead of the arenas that hold them.
    pub python_allocators: bool,
    /// Whether frees have stacks, too.
    pub free_stacks: bool,
    /// Whether the process's own memory is recorded, in addition to what hosts record.
    pub own_memory: bool,
    /// Whether mappings are recorded.
    pub mappings: bool,
    /// The number of a stack's innermost frames that are recorded.
    pub depth: usize,
    /// A block is temporary if its thread allocates fewer than this many other blocks before it is freed.
    pub temporary: u32,
    /// The interval at which the resident size of the process and its allocated bytes are recorded.
    pub curve_every: Duration,
    /// The resident size, in bytes, at which a snapshot is written.
    pub dump_at_rss: Option<u64>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            mode: MemoryMode::History,
            native: true,
            python_allocators: false,
            free_stacks: false,
            own_memory: true,
            mappings: true,
            depth: usize::MAX,
            temporary: 1,
            curve_every: Duration::from_millis(20),
            dump_at_rss: None,
        }
    }
}
