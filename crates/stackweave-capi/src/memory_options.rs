//! How a host has memory recorded.

use std::path::PathBuf;
use std::time::Duration;

use stackweave_memory::{MemoryOptions, Mode};
use stackweave_recording::Options;

use crate::border::Fault;
use crate::growing::Growing;
use crate::status::stackweave_status::STACKWEAVE_BAD_ARGUMENT;

/// Every event is in the file.
pub const STACKWEAVE_MEMORY_HISTORY: u32 = 0;
/// Only figures for each stack are: a small file.
pub const STACKWEAVE_MEMORY_AGGREGATE: u32 = 1;
/// Some allocations are, chosen by their bytes, so that estimates are unbiased: for production.
pub const STACKWEAVE_MEMORY_SAMPLED: u32 = 2;

/// Stacks without native frames.
pub const STACKWEAVE_MEMORY_NO_NATIVE: u32 = 1;
/// Blocks are given back with a stack, too.
pub const STACKWEAVE_MEMORY_FREE_STACKS: u32 = 2;
/// Mappings are not recorded.
pub const STACKWEAVE_MEMORY_NO_MAPPINGS: u32 = 4;
/// A file that is there already is replaced.
pub const STACKWEAVE_MEMORY_OVERWRITE: u32 = 8;
/// Forked children record nothing.
pub const STACKWEAVE_MEMORY_NO_FORKS: u32 = 16;
const ALL_FLAGS: u32 = 31;
const BUFFERS: usize = 8 << 20;

/// How memory is recorded. Set with STACKWEAVE_MEMORY_OPTIONS_INIT, and then what is to differ.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct stackweave_memory_options {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// STACKWEAVE_MEMORY_HISTORY, STACKWEAVE_MEMORY_AGGREGATE or STACKWEAVE_MEMORY_SAMPLED.
    pub mode: u32,
    /// Any of STACKWEAVE_MEMORY_NO_NATIVE, STACKWEAVE_MEMORY_FREE_STACKS, STACKWEAVE_MEMORY_NO_MAPPINGS,
    /// STACKWEAVE_MEMORY_OVERWRITE, STACKWEAVE_MEMORY_NO_FORKS.
    pub flags: u32,
    /// How many bytes there are to a sample; 0: 512 KiB.
    pub sample_every: u64,
    /// How many innermost frames of a stack are kept; 0: all.
    pub depth: u32,
    /// A block is temporary if it is given back before its thread has taken more than so many others. 0: as if it were 1.
    pub temporary: u32,
    /// How many bytes of events may wait for the file before threads do; 0: 8 MiB, beyond which nothing gets
    /// faster.
    pub buffers: u64,
}

// SAFETY: numbers, the size first.
unsafe impl Growing for stackweave_memory_options {
    const FIRST: usize = size_of::<Self>();
}

impl stackweave_memory_options {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// What the recorder is to do.
    pub(crate) fn memory(&self) -> Result<MemoryOptions, Fault> {
        let bad = |text: &'static str| Err(Fault::new(STACKWEAVE_BAD_ARGUMENT, text));
        if self.flags & !ALL_FLAGS != 0 {
            return bad("a flag of the options is not known");
        }
        let mode = match self.mode {
            STACKWEAVE_MEMORY_HISTORY => Mode::History,
            STACKWEAVE_MEMORY_AGGREGATE => Mode::Aggregate,
            STACKWEAVE_MEMORY_SAMPLED => {
                Mode::Sampled { every: if self.sample_every == 0 { 512 << 10 } else { self.sample_every } }
            }
            _ => return bad("the mode of the options is not known"),
        };
        Ok(MemoryOptions {
            mode,
            native: !self.has(STACKWEAVE_MEMORY_NO_NATIVE),
            free_stacks: self.has(STACKWEAVE_MEMORY_FREE_STACKS),
            mappings: !self.has(STACKWEAVE_MEMORY_NO_MAPPINGS),
            depth: if self.depth == 0 { usize::MAX } else { self.depth as usize },
            temporary: self.temporary.max(1),
            ..MemoryOptions::default()
        })
    }

    /// How it is written.
    pub(crate) fn recording(&self, path: PathBuf, memory: &MemoryOptions) -> Options {
        let mut options = Options {
            overwrite: self.has(STACKWEAVE_MEMORY_OVERWRITE),
            follow_forks: !self.has(STACKWEAVE_MEMORY_NO_FORKS),
            waits_plainly: true,
            flush_every: Duration::from_millis(200),
            ..Options::new(path)
        };
        options.memory = if self.buffers == 0 { BUFFERS } else { usize::try_from(self.buffers).unwrap_or(usize::MAX) };
        let bit = |is_so| if is_so { "1" } else { "0" }.to_owned();
        let (mode, every) = match memory.mode {
            Mode::History => ("history", None),
            Mode::Aggregate => ("aggregate", None),
            Mode::Sampled { every } => ("sampled", Some(every)),
        };
        let said = [
            ("recorder", "memory".to_owned()),
            ("memory.mode", mode.to_owned()),
            ("memory.native", bit(memory.native)),
            ("memory.python_allocators", bit(false)),
            ("memory.temporary", memory.temporary.to_string()),
        ];
        let every = every.map(|every| ("memory.sample_every", every.to_string()));
        options.extra.extend(said.into_iter().chain(every).map(|(name, value)| (name.to_owned(), value)));
        options
    }
}
