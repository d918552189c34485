//! The options of a host's memory recording.

use std::path::PathBuf;
use std::time::Duration;

use stackweave_memory::{MemoryMode, MemoryOptions};
use stackweave_recording::RecorderOptions;

use crate::boundary::CallError;
use crate::sized_struct::SizedStruct;
use crate::status::stackweave_status::STACKWEAVE_BAD_ARGUMENT;

/// Writes every event to the file.
pub const STACKWEAVE_MEMORY_HISTORY: u32 = 0;
/// Writes only figures for each stack, in a small file.
pub const STACKWEAVE_MEMORY_AGGREGATE: u32 = 1;
/// Writes a sample of the allocations, chosen by bytes so that estimates are unbiased. For use in production.
pub const STACKWEAVE_MEMORY_SAMPLED: u32 = 2;

/// Omits native frames from stacks.
pub const STACKWEAVE_MEMORY_NO_NATIVE: u32 = 1;
/// Records the stacks of frees, too.
pub const STACKWEAVE_MEMORY_FREE_STACKS: u32 = 2;
/// Does not record mappings.
pub const STACKWEAVE_MEMORY_NO_MAPPINGS: u32 = 4;
/// Replaces an existing file.
pub const STACKWEAVE_MEMORY_OVERWRITE: u32 = 8;
/// Does not record forked children.
pub const STACKWEAVE_MEMORY_NO_FORKS: u32 = 16;
const ALL_FLAGS: u32 = 31;
const DEFAULT_BUFFER_BYTES: usize = 8 << 20;

/// The options of a memory recording. Initialize with STACKWEAVE_MEMORY_OPTIONS_INIT, then set the fields that differ.
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
    /// The mean number of allocated bytes between samples; 0 for 512 KiB.
    pub sample_every: u64,
    /// The number of innermost frames of a stack that are kept; 0 keeps all.
    pub depth: u32,
    /// A block is temporary if its thread allocates at most this many other blocks before it is freed. 0 means 1.
    pub temporary: u32,
    /// The number of bytes of events that are buffered before recording threads wait for the file; 0 for 8 MiB. Larger
    /// buffers are not faster.
    pub buffer_bytes: u64,
}

// SAFETY: the structure has only numbers, and the size comes first.
unsafe impl SizedStruct for stackweave_memory_options {
    const MIN_SIZE: usize = size_of::<Self>();
}

impl stackweave_memory_options {
    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Converts the options of the recorder.
    pub(crate) fn memory(&self) -> Result<MemoryOptions, CallError> {
        let bad = |message: &'static str| Err(CallError::new(STACKWEAVE_BAD_ARGUMENT, message));
        if self.flags & !ALL_FLAGS != 0 {
            return bad("the options have an unknown flag");
        }
        let mode = match self.mode {
            STACKWEAVE_MEMORY_HISTORY => MemoryMode::History,
            STACKWEAVE_MEMORY_AGGREGATE => MemoryMode::Aggregate,
            STACKWEAVE_MEMORY_SAMPLED => {
                MemoryMode::Sampled { every: if self.sample_every == 0 { 512 << 10 } else { self.sample_every } }
            }
            _ => return bad("the options have an unknown mode"),
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

    /// Converts the options of the file.
    pub(crate) fn recording(&self, path: PathBuf, memory: &MemoryOptions) -> RecorderOptions {
        let mut options = RecorderOptions {
            overwrite: self.has(STACKWEAVE_MEMORY_OVERWRITE),
            follow_forks: !self.has(STACKWEAVE_MEMORY_NO_FORKS),
            bypass_waiter: true,
            flush_every: Duration::from_millis(200),
            ..RecorderOptions::new(path)
        };
        options.memory = if self.buffer_bytes == 0 {
            DEFAULT_BUFFER_BYTES
        } else {
            usize::try_from(self.buffer_bytes).unwrap_or(usize::MAX)
        };
        let flag = |is_set| if is_set { "1" } else { "0" }.to_owned();
        let (mode, every) = match memory.mode {
            MemoryMode::History => ("history", None),
            MemoryMode::Aggregate => ("aggregate", None),
            MemoryMode::Sampled { every } => ("sampled", Some(every)),
        };
        let entries = [
            ("recorder", "memory".to_owned()),
            ("memory.mode", mode.to_owned()),
            ("memory.native", flag(memory.native)),
            ("memory.python_allocators", flag(false)),
            ("memory.temporary", memory.temporary.to_string()),
        ];
        let every = every.map(|every| ("memory.sample_every", every.to_string()));
        options.extra.extend(entries.into_iter().chain(every).map(|(name, value)| (name.to_owned(), value)));
        options
    }
}
