//! The rows of the accounts that allocators give of themselves: each segment, and the blocks that it is cut into.

use std::collections::{BTreeMap, HashMap};

use stackweave_recording::events;
use stackweave_recording::file::{Dictionary, RawEvent};

use crate::activity::{HostKind, Tells, Told};

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
    kinds: HashMap<u8, HostKind>,
    /// Those that have begun, by thread.
    open: HashMap<u32, (u64, BTreeMap<i64, Account>)>,
    /// The stacks of all blocks that are not free, by device and address: an account has none for what was given back.
    stacks: HashMap<(i64, u64), u32>,
}

impl AccountReader {
    pub(super) fn new(process: usize, dictionary: &Dictionary) -> Self {
        let kinds = dictionary.kinds().filter_map(|(number, kind)| Some((number, HostKind::of(kind)?)));
        Self { process, kinds: kinds.collect(), open: HashMap::new(), stacks: HashMap::new() }
    }

    /// An event of the process.
    pub(super) fn see(&mut self, (thread, time_ns): (u32, u64), event: &RawEvent<'_>, accounts: &mut Accounts) {
        let Some(told) = self.kinds.get(&event.kind).map(|kind| kind.told(event)) else { return };
        match told.tells {
            Tells::Allocate | Tells::Present => drop(self.stacks.insert((told.device, told.address), told.stack)),
            Tells::Free | Tells::FreeCompleted => drop(self.stacks.remove(&(told.device, told.address))),
            Tells::State if told.flags == events::ACCOUNT_BEGINS => {
                self.open.insert(thread, (time_ns, BTreeMap::new()));
            }
            Tells::State if told.flags == events::ACCOUNT_ENDS => {
                let (_, ended) = self.open.remove(&thread).unwrap_or_default();
                accounts.last.extend(ended.into_iter().map(|(device, account)| ((self.process, device), account)));
            }
            Tells::SegmentState | Tells::BlockState => self.row(thread, &told),
            _ => {}
        }
    }

    fn row(&mut self, thread: u32, told: &Told) {
        let Some((began, devices)) = self.open.get_mut(&thread) else { return };
        let account = devices.entry(told.device).or_default();
        account.time_ns = *began;
        let Told { address, size, stream, pool, flags, .. } = *told;
        if told.tells == Tells::SegmentState {
            account.segments.push(Segment { address, size, stream, pool, flags, blocks: Vec::new() });
        } else if let Some(segment) = account.segments.last_mut() {
            let is_free = flags & (events::BLOCK_IS_ALLOCATED | events::BLOCK_IS_ACTIVE) == 0;
            let known = || self.stacks.get(&(told.device, address)).copied().unwrap_or(0);
            let stack = if told.stack != 0 || is_free { told.stack } else { known() };
            segment.blocks.push(Block { address, size, asked: told.bytes, flags, stack });
        }
    }
}
