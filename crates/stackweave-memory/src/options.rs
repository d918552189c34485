//! How memory is recorded.

use std::time::Duration;

/// What of the events is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Every event is in the recording.
    #[default]
    History,
    /// Figures for each place only.
    Aggregate,
    /// One allocation for so many bytes, on average, chosen at random: every byte is as likely as every other.
    Sampled {
        /// How many bytes.
        every: u64,
    },
}

/// How memory is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct MemoryOptions {
    /// What of the events is kept.
    pub mode: Mode,
    /// Whether stacks have native frames.
    pub native: bool,
    /// Whether blocks of Python's own allocators are told of, and not the arenas that these lie in.
    pub python_allocators: bool,
    /// Whether a free has a stack, too.
    pub free_stacks: bool,
    /// Whether the process's own memory is recorded, and not only what hosts tell.
    pub own_memory: bool,
    /// Whether mappings are told of.
    pub mappings: bool,
    /// How many innermost frames of a stack are kept.
    pub depth: usize,
    /// A block is temporary if it is given back before its thread has taken so many others.
    pub temporary: u32,
    /// How often the size of the process, and of what it has taken, is recorded.
    pub curve_every: Duration,
    /// When the process has this many bytes in memory, all that is known is written.
    pub dump_at_rss: Option<u64>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            mode: Mode::History,
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
