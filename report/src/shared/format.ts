// What stands in the data blocks of a report: the contract with `crates/stackweave-export/src/formats/report`.
//
// The page has one block that is the head, and numbered ones. Each is base64 of zlib of bytes. The bytes are JSON, or
// columns: each column is a varint with its length, and as many varints. A number in a column is plain, signed (zigzag),
// or the difference to the one before it (plain for what never falls).

/** The number of a block. */
export type Block = number;
/** A place in `Names.strings`, `Names.functions`, `Names.frames` or `Head.threads`. */
export type StringIndex = number;
export type FunctionIndex = number;
export type FrameIndex = number;
export type ThreadIndex = number;

export type MeasureName = "time" | "samples" | "bytes" | "allocations" | "live" | "peak" | "temporary";

export interface Head {
  format: 1;
  /** The version of Stackweave that wrote it. */
  version: string;
  title: string;
  /** The wall clock at time 0, in nanoseconds: more than a number can hold. */
  wallNs: string;
  /** When the last event was. Times everywhere are nanoseconds since the first process began to record. */
  durationNs: number;
  events: number;
  processes: ProcessInfo[];
  threads: ThreadInfo[];
  /** What has to be known: what is missing, what is estimated. A sentence each. */
  remarks: string[];
  /** JSON: an array of strings. */
  strings: Block;
  /** Columns: name, file + 1, first line, kind, origin, module + 1, module's path + 1, all plain; texts are of `strings`. */
  functions: Block;
  /** Columns: function, line; both plain, line 0 if lines are not known. */
  frames: Block;
  trees: TreeInfo[];
  timeline: TimelineInfo | null;
  /** What lines called, of recordings that say which line each call is made from; by thread. */
  callLines: CallLinesInfo[];
  memory: MemoryInfo | null;
  sources: SourceInfo[];
  /** JSON: `RunInfo[]`. */
  runs: Block | null;
  /** The recording before a change, if there is one: its trees have the side "before". */
  before: { title: string; wallNs: string; durationNs: number } | null;
}

export interface ProcessInfo {
  pid: number;
  title: string;
  /** Machine, Python. */
  labels: string;
  beganNs: number;
  endedNs: number;
  events: number;
}

export interface ThreadInfo {
  /** Its place in `processes`. */
  process: number;
  tid: number;
  name: string;
}

/** The kinds of frames at their numbers, which are those of recordings. */
export const KINDS = [undefined, "native", "python", "script", "extra", "label"] as const;
export type Kind = NonNullable<(typeof KINDS)[number]>;
export const ORIGINS = ["program", "library", "interpreter"] as const;
export type Origin = (typeof ORIGINS)[number];

/** Who called whom, of one thread and one measure. */
export interface TreeInfo {
  measure: MeasureName;
  /** -1: the process's own memory, or what is not memory. */
  device: number;
  /** `null` if it is not known which thread. */
  thread: ThreadIndex | null;
  side: "after" | "before";
  /** With the root, which is the first. */
  nodes: number;
  total: number;
  /** Paths that cost too little to have a node of their own; their cost counts as their nearest caller's self cost. */
  folded: number;
  /** Columns: how far back the parent is (plain, 0 for the root), frame (plain), calls (plain), self cost (signed). */
  block: Block;
}

export interface TimelineInfo {
  /** Spans of at least so many nanoseconds belong to a level. The first is 0. */
  levels: number[];
  tracks: TrackInfo[];
  counters: CounterInfo[];
}

/** What one thread did. */
export interface TrackInfo {
  thread: ThreadIndex;
  beganNs: number;
  endedNs: number;
  /** How many spans are open at most. */
  depth: number;
  spans: number;
  /** Spans of each level, `levels[k] <= duration < levels[k + 1]`: each span is in one level only. */
  levels: Tiles[];
  /** For each level what is shorter than it, merged to pieces that are about as long; of the first level nothing. */
  dense: Tiles[];
  /** Columns: time (differences), frame (plain). */
  instants: Block | null;
}

/** Four numbers for each tile: block, earliest begin, latest end, how many. In the order of begins. */
export type Tiles = number[];
// The columns of a tile of spans, by begin and depth: begin (differences, the first to the tile's earliest), duration,
// depth, frame, flags (1: has no end, 2: failed, 4: was open before anything was heard of it, and is no call),
// detail + 1; all plain. Behind them a varint and as many bytes: JSON, an array of details, each an object.
//
// The columns of a dense tile: begin (differences), extent, depth, frame + 1 of what took most (0: no single one), calls,
// busy time; all plain.

/** What the lines of functions called, on one thread. */
export interface CallLinesInfo {
  thread: ThreadIndex;
  rows: number;
  /**
   * Columns, all plain: frame (function and line of the caller), function that is called, calls, their time, and what of
   * that counts for the line. A call inside another one of the same row adds nothing to the time of the row, and a call
   * inside any other one from the same line of the file nothing to the line: a line took the sum of the last column.
   */
  block: Block;
}

export interface CounterInfo {
  name: string;
  process: number;
  /** JSON: `{ times: number[], values: number[] }`. */
  block: Block;
}

export interface MemoryInfo {
  /** The process's own first. */
  devices: DeviceMemory[];
  /** How many bytes one recorded allocation stands for on average, if not all were recorded. */
  sampleEvery: number | null;
}

export interface DeviceMemory {
  /** -1: the process's own. */
  device: number;
  label: string;
  /**
   * Columns: time (differences), bytes taken (plain), bytes in memory + 1 (plain, 0 if not known). With `host` instead of the
   * last two of them: bytes that are freed but still in use by the device, bytes of segments. `null`: no history.
   */
  curve: Block | null;
  peakNs: number | null;
  peak: Amount;
  live: Amount;
  /** What of `live` was there before the recording began. */
  fromBefore: Amount;
  allocated: Amount;
  temporary: Amount;
  threads: NamedAmounts[];
  tags: NamedAmounts[];
  allocators: NamedAmounts[];
  /** By size: name is the most bytes that a block of the row has. */
  sizes: NamedAmounts[];
  moments: MomentsInfo | null;
  host: HostMemory | null;
}

/** A device's figures from a host's allocator, such as PyTorch's of a GPU. */
export interface HostMemory {
  /** How many bytes the device has, if that is known. */
  total: number | null;
  /** When its segments were largest. */
  reservedPeak: HostPoint;
  pools: PoolMemory[];
  /** Requests that could not be met: the first ones, in their order. */
  failures: FailureInfo[];
  /** How many there were. */
  failureCount: number;
  /** The last account of segments that each process gave, if it gave one. */
  states: SegmentState[];
  /** The stacks of both. Columns: how far back the parent is, frame; both plain. */
  stacks: Block;
}

export interface HostPoint {
  timeNs: number;
  taken: number;
  /** Freed by the program, but still in use by the device. */
  pending: number;
  /** The size of all segments. */
  reserved: number;
}

export interface PoolMemory {
  name: string;
  /** Columns: time (differences), taken, pending, reserved (all plain). */
  curve: Block;
  peak: HostPoint;
}

export interface FailureInfo {
  timeNs: number;
  /** Its place in `Head.processes`. */
  process: number;
  /** The requested bytes. */
  size: number;
  /** What the device had free. */
  free: number;
  pool: string;
  /** A node of `HostMemory.stacks`. */
  stack: number;
}

export interface SegmentState {
  /** Its place in `Head.processes`. */
  process: number;
  timeNs: number;
  reason: "end" | "failure" | "requested";
  segments: number;
  blocks: number;
  reserved: number;
  /** The real sizes of allocated blocks, and the requested part of them. */
  allocated: number;
  requested: number;
  pending: number;
  /** In segments, and the largest piece of it. */
  free: number;
  largestFree: number;
  pools: { name: string; reserved: number; allocated: number; free: number }[];
  /**
   * Columns of segments, the largest of each pool first: address, size, place in `pools`, stream, flags (1: of large blocks,
   * 2: expandable), number of blocks. Columns of their blocks: bytes between it and the one before, size, requested bytes,
   * flags (1: taken, 2: taken or pending), node of `HostMemory.stacks`. All plain. `null` if no rows were recorded.
   */
  rows: Block | null;
  /** Segments that `rows` leaves out, as there are too many blocks. */
  leftOut: number;
}

export interface Amount {
  bytes: number;
  blocks: number;
}

export interface NamedAmounts {
  name: string;
  number: number;
  peak: Amount;
  live: Amount;
  allocated: Amount;
  temporary: Amount;
}

/** What was taken at some moments. */
export interface MomentsInfo {
  /** The moments, that of the peak among them. */
  times: number[];
  nodes: number;
  /** Columns: how far back the parent is, frame; both plain. */
  tree: Block;
  /** Columns: node, first moment at which it was there, how many moments it was there, bytes, blocks; all plain. */
  rows: Block;
}

export interface SourceInfo {
  file: StringIndex;
  /** Whether it was written to after the recording. */
  changed: boolean;
  /** The text, UTF-8. */
  block: Block;
}

export interface RunInfo {
  number: number;
  parent: number | null;
  thread: ThreadIndex | null;
  function: FunctionIndex;
  beganNs: number;
  durationNs: number;
  failed: boolean;
  leftOpen: boolean;
  unfinished: boolean;
  attributes: Record<string, unknown>;
  phases: { function: FunctionIndex; calls: number; totalNs: number; selfNs: number }[];
}
