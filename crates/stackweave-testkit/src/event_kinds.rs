//! The kinds of events that recorders declare, as the format's page lists them.

/// The numbers of field types in a file.
pub(crate) mod field_type {
    pub(crate) const STACK: u8 = 1;
    pub(crate) const FRAME: u8 = 2;
    pub(crate) const UNSIGNED: u8 = 3;
    pub(crate) const SIGNED: u8 = 4;
    pub(crate) const FLOAT: u8 = 5;
    pub(crate) const ADDRESS: u8 = 6;
    pub(crate) const TICKS: u8 = 7;
    pub(crate) const BYTES: u8 = 8;
}

/// The number of a field's type, and its name.
type PageField = (u8, &'static str);

/// A kind of event: its name, the number of its role, and its fields with their types.
pub(crate) struct PageKind {
    pub(crate) name: &'static str,
    pub(crate) role: u8,
    pub(crate) fields: &'static [PageField],
}

const FRAME: PageField = (field_type::FRAME, "frame");
const STACK: PageField = (field_type::STACK, "stack");
const ADDRESS: PageField = (field_type::ADDRESS, "address");
const SIZE: PageField = (field_type::UNSIGNED, "size");
const DETAILS: PageField = (field_type::BYTES, "details");
const DEVICE: PageField = (field_type::SIGNED, "device");
const STREAM: PageField = (field_type::UNSIGNED, "stream");
const POOL: PageField = (field_type::UNSIGNED, "pool");
const FLAGS: PageField = (field_type::UNSIGNED, "flags");
const HOST: &[PageField] = &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL];

const SNAPSHOT: PageField = (field_type::UNSIGNED, "snapshot");

/// The totals of a recorder for a call site, a size, or all.
const COUNTED: &[PageField] = &unsigned([
    "allocations",
    "bytes",
    "live_blocks",
    "live_bytes",
    "peak_blocks",
    "peak_bytes",
    "temporary",
    "temporary_bytes",
]);
const USAGE: &[PageField] = &joined::<14>(
    &[
        STACK,
        (field_type::FRAME, "allocator"),
        (field_type::FRAME, "tag"),
        SNAPSHOT,
        (field_type::UNSIGNED, "thread"),
        DEVICE,
    ],
    COUNTED,
);
const SIZES: &[PageField] = &joined::<9>(&[SNAPSHOT, DEVICE, (field_type::UNSIGNED, "most")], COUNTED.split_at(6).0);
const TOTAL: &[PageField] = &joined::<14>(
    &joined::<11>(&[SNAPSHOT, DEVICE, (field_type::TICKS, "peak_ago")], COUNTED),
    &unsigned(["frees", "unknown_frees", "replaced"]),
);

const fn unsigned<const N: usize>(names: [&'static str; N]) -> [PageField; N] {
    let mut fields = [(field_type::UNSIGNED, ""); N];
    let mut place = 0;
    while place < N {
        fields[place].1 = names[place];
        place += 1;
    }
    fields
}

const fn joined<const N: usize>(first: &[PageField], then: &[PageField]) -> [PageField; N] {
    assert!(first.len() + then.len() == N);
    let mut fields = [(0, ""); N];
    let mut place = 0;
    while place < N {
        fields[place] = if place < first.len() { first[place] } else { then[place - first.len()] };
        place += 1;
    }
    fields
}

const fn kind(name: &'static str, role: u8, fields: &'static [PageField]) -> PageKind {
    PageKind { name, role, fields }
}

/// All kinds; the number of each is its index and one.
pub(crate) const KINDS: &[PageKind] = &[
    kind("begin", 1, &[FRAME]),
    kind("end", 2, &[]),
    kind("begin-at", 1, &[FRAME, STACK]),
    kind("begin-with", 1, &[FRAME, STACK, DETAILS]),
    kind("instant", 3, &[FRAME, STACK]),
    kind("instant-with", 3, &[FRAME, STACK, DETAILS]),
    kind("counter", 4, &[FRAME, (field_type::FLOAT, "value")]),
    kind("sample", 5, &[STACK, (field_type::SIGNED, "weight")]),
    kind("malloc", 6, &[ADDRESS, SIZE, STACK]),
    kind("free", 7, &[ADDRESS]),
    kind("call", 1, &[FRAME, (field_type::FRAME, "caller"), (field_type::ADDRESS, "object")]),
    kind("resume", 8, &[FRAME, (field_type::FRAME, "caller"), (field_type::ADDRESS, "object")]),
    kind("open", 9, &[FRAME, (field_type::UNSIGNED, "depth")]),
    kind("name", 10, &[(field_type::ADDRESS, "object"), FRAME]),
    kind("mmap", 11, &[ADDRESS, SIZE, STACK]),
    kind("munmap", 12, &[ADDRESS, SIZE]),
    kind("kept", 13, &[ADDRESS]),
    kind("memory-tag", 14, &[FRAME]),
    kind("host-allocate", 6, HOST),
    kind("host-present", 6, HOST),
    kind("host-free", 7, HOST),
    kind("host-free-requested", 7, HOST),
    kind("host-free-completed", 16, HOST),
    kind("segment", 11, HOST),
    kind("segment-map", 11, HOST),
    kind("segment-free", 12, HOST),
    kind("segment-unmap", 12, HOST),
    kind("host-snapshot", 3, &[FRAME, SIZE, STACK, DEVICE]),
    kind("host-out-of-memory", 3, &[FRAME, SIZE, STACK, DEVICE, STREAM, POOL, (field_type::UNSIGNED, "free")]),
    kind("host-annotate", 3, &[FRAME, ADDRESS, STACK, DEVICE]),
    kind("host-state", 17, &[(field_type::UNSIGNED, "state"), (field_type::UNSIGNED, "reason")]),
    kind("segment-state", 17, &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, FLAGS]),
    kind("block-state", 17, &[ADDRESS, SIZE, STACK, DEVICE, STREAM, POOL, (field_type::UNSIGNED, "requested"), FLAGS]),
    kind("memory-usage", 15, USAGE),
    kind("memory-sizes", 15, SIZES),
    kind("memory-total", 15, TOTAL),
    kind("begin-code", 1, &[FRAME, (field_type::UNSIGNED, "bytecode_count"), (field_type::UNSIGNED, "inline_depth")]),
    kind("begin-run", 1, &[FRAME, DETAILS]),
    kind("end-with", 2, &[DETAILS]),
    kind("end-failed", 2, &[DETAILS]),
    kind("end-left-open", 2, &[]),
    kind("unmatched-pop", 3, &[FRAME, STACK]),
    kind("demoted", 3, &[FRAME, (field_type::UNSIGNED, "calls"), (field_type::TICKS, "mean")]),
    kind("trace-note", 3, &[FRAME, (field_type::UNSIGNED, "count")]),
];
