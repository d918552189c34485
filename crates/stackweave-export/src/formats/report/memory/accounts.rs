//! The rows of the accounts that allocators give of themselves: each segment, and the blocks that it is cut into.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events::{Event, HostAction, HostState, HostStateRow, Region};

/// The last account of each device, by the place of the process.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    last: BTreeMap<(usize, i64), Account>,
}

/// What an allocator had of a device at a moment.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// When, in nanoseconds since the process began to record.
    time_ns: u64,
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) stream: u64,
    pub(super) pool: u64,
    pub(super) flags: u64,
    /// By address.
    pub(super) blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) asked: u64,
    pub(super) flags: u64,
    pub(super) stack: u32,
}

impl Accounts {
    /// The account of this time, if it has rows.
    pub(super) fn of(&self, process: usize, device: i64, time_ns: u64) -> Option<&Account> {
        self.last.get(&(process, device)).filter(|account| account.time_ns == time_ns)
    }
}

/// Collects the accounts of one process.
#[derive(Debug)]
pub(super) struct AccountReader {
    process: usize,
    /// Those that have begun, by thread.
    open: HashMap<u32, (u64, BTreeMap<i64, Account>)>,
    /// The stacks of all blocks that are not free, by device and address: an account has none for what was given back.
    stacks: HashMap<(i64, u64), u32>,
}

impl AccountReader {
    pub(super) fn new(process: usize) -> Self {
        Self { process, open: HashMap::new(), stacks: HashMap::new() }
    }

    /// An event of the process.
    pub(super) fn add(&mut self, (thread, time_ns): (u32, u64), event: &Event<'_>, accounts: &mut Accounts) {
        match event {
            Event::Allocate(memory) => {
                if let (Some(_), Region::Block(device)) = (memory.host, memory.region) {
                    self.stacks.insert((device, memory.address), memory.stack);
                }
            }
            Event::Free(memory) | Event::Complete(memory) => {
                if let (Some(HostAction::Free | HostAction::FreeCompleted), Region::Block(device)) =
                    (memory.host, memory.region)
                {
                    self.stacks.remove(&(device, memory.address));
                }
            }
            Event::State(HostState::Begin { .. }) => {
                self.open.insert(thread, (time_ns, BTreeMap::new()));
            }
            Event::State(HostState::End) => {
                let (_, ended) = self.open.remove(&thread).unwrap_or_default();
                accounts.last.extend(ended.into_iter().map(|(device, account)| ((self.process, device), account)));
            }
            Event::State(HostState::Segment(row)) => {
                if let Some(account) = self.account(thread, row.device) {
                    let HostStateRow { address, size, stream, pool, flags, .. } = *row;
                    account.segments.push(Segment { address, size, stream, pool, flags, blocks: Vec::new() });
                }
            }
            Event::State(HostState::Block(row)) => self.block(thread, row),
            _ => {}
        }
    }

    /// The account of a device that a thread has begun.
    fn account(&mut self, thread: u32, device: i64) -> Option<&mut Account> {
        let (began, devices) = self.open.get_mut(&thread)?;
        let account = devices.entry(device).or_default();
        account.time_ns = *began;
        Some(account)
    }

    fn block(&mut self, thread: u32, row: &HostStateRow) {
        let HostStateRow { device, address, size, requested: asked, flags, .. } = *row;
        let known = self.stacks.get(&(device, address)).copied().unwrap_or(0);
        let is_free = !row.is_allocated() && !row.is_active();
        let stack = if row.stack != 0 || is_free { row.stack } else { known };
        if let Some(segment) = self.account(thread, device).and_then(|account| account.segments.last_mut()) {
            segment.blocks.push(Block { address, size, asked, flags, stack });
        }
    }
}
