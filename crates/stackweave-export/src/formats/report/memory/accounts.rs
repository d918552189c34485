//! The rows of the accounts that allocators give of themselves: each segment, and the blocks that it is cut into.

use std::collections::{BTreeMap, HashMap};

use stackweave_core::{EventKind, Field, FieldType};
use stackweave_recording::file::{Dictionary, Event};

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
    kinds: HashMap<u8, Kind>,
    /// Those that have begun, by thread.
    open: HashMap<u32, (u64, BTreeMap<i64, Account>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Account,
    Segment,
    Block,
}

/// Which word says what; a place behind all of them if none does.
#[derive(Debug)]
struct Kind {
    what: What,
    address: usize,
    size: usize,
    stack: usize,
    device: usize,
    stream: usize,
    pool: usize,
    asked: usize,
    flags: usize,
    state: usize,
}

const BEGINS: u64 = 1;
const ENDS: u64 = 2;

impl AccountReader {
    pub(super) fn new(process: usize, dictionary: &Dictionary) -> Self {
        let kinds = dictionary.kinds().filter_map(|(number, kind)| Some((number, Kind::of(kind)?)));
        Self { process, kinds: kinds.collect(), open: HashMap::new() }
    }

    /// An event of the process.
    pub(super) fn see(&mut self, (thread, time_ns): (u32, u64), event: &Event<'_>, accounts: &mut Accounts) {
        let Some(kind) = self.kinds.get(&event.kind) else { return };
        let word = |place: usize| event.words.get(place).copied().unwrap_or(0);
        if kind.what == What::Account {
            match word(kind.state) {
                BEGINS => drop(self.open.insert(thread, (time_ns, BTreeMap::new()))),
                ENDS => {
                    let (_, ended) = self.open.remove(&thread).unwrap_or_default();
                    accounts.last.extend(ended.into_iter().map(|(device, account)| ((self.process, device), account)));
                }
                _ => {}
            }
            return;
        }
        let Some((began, devices)) = self.open.get_mut(&thread) else { return };
        let account = devices.entry(word(kind.device).cast_signed()).or_default();
        account.time_ns = *began;
        let (address, size, flags) = (word(kind.address), word(kind.size), word(kind.flags));
        if kind.what == What::Segment {
            let (stream, pool) = (word(kind.stream), word(kind.pool));
            account.segments.push(Segment { address, size, stream, pool, flags, blocks: Vec::new() });
        } else if let Some(segment) = account.segments.last_mut() {
            let stack = u32::try_from(word(kind.stack)).unwrap_or(0);
            segment.blocks.push(Block { address, size, asked: word(kind.asked), flags, stack });
        }
    }
}

impl Kind {
    fn of(kind: &EventKind) -> Option<Self> {
        let what = match &*kind.name {
            "host-state" => What::Account,
            "segment-state" => What::Segment,
            "block-state" => What::Block,
            _ => return None,
        };
        let place = |is_it: &dyn Fn(&Field) -> bool| kind.fields.iter().position(is_it).unwrap_or(usize::MAX);
        let number = |name: &str| place(&|field| field.name == name && field.of == FieldType::Unsigned);
        Some(Self {
            what,
            address: place(&|field| field.of == FieldType::Address),
            size: number("size"),
            stack: place(&|field| field.of == FieldType::Stack),
            device: place(&|field| field.name == "device"),
            stream: number("stream"),
            pool: number("pool"),
            asked: number("asked"),
            flags: number("flags"),
            state: number("state"),
        })
    }
}
