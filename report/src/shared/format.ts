// The content of a report's data blocks: the contract with `crates/stackweave-export/src/formats/report`.
//
// The page has one head block, and numbered blocks. Each is base64 of zlib of bytes. The bytes are JSON, or
// columns: each column is a varint with its length, and that many varints. A number in a column is plain, signed (zigzag),
// or a difference to the previous one (plain, for non-decreasing numbers).

/** The number of a block. */
export type Block = number;
/** An index in `Names.strings`, `Names.functions`, `Names.frames` or `Head.threads`. */
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
  /** The wall clock at time 0, in nanoseconds, as text: it is too large for a number. */
  wallNs: string;
  /** The time of the last event. All times are nanoseconds since the first process began to record. */
  durationNs: number;
  events: number;
  processes: ProcessInfo[];
  threads: ThreadInfo[];
  /** Remarks about missing and estimated figures, one sentence each. */
  remarks: string[];
  /** JSON: an array of strings. */
  strings: Block;
  /** Columns: name, file + 1, first line, kind, origin, module + 1, module's path + 1, all plain; texts are in `strings`. */
  functions: Block;
  /** Columns: function, line; both plain, line 0 if unknown. */
  frames: Block;
  trees: TreeInfo[];
  timeline: TimelineInfo | null;
  /** The calls from lines, by thread, for recordings with the line of each call. */
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
  /** Its index in `processes`. */
  process: number;
  tid: number;
  name: string;
}

/** The kinds of frames, at the numbers that recordings use. */
export const KINDS = [undefined, "native", "python", "script", "extra", "span"] as const;
export type Kind = NonNullable<(typeof KINDS)[number]>;
export const ORIGINS = ["program", "library", "interpreter"] as const;
export type Origin = (typeof ORIGINS)[number];

/** The call tree of one thread and one measure. */
export interface TreeInfo {
  measure: MeasureName;
  /** -1 for the process's own memory, and for other measures. */
  device: number;
  /** `null` if the thread is unknown. */
  thread: ThreadIndex | null;
  side: "after" | "before";
  /** The number of nodes, with the root, which is the first. */
  nodes: number;
  total: number;
  /** Paths that are too cheap for a node of their own; their cost counts as the self cost of their nearest caller. */
  folded: number;
  /** Columns: distance back to the parent (plain, 0 for the root), frame (plain), calls (plain), self cost (signed). */
  block: Block;
}

export interface TimelineInfo {
  /** The minimum duration of the spans of each level, in nanoseconds. The first is 0. */
  levels: number[];
  tracks: TrackInfo[];
  counters: CounterInfo[];
}

/** The activity of one thread. */
export interface TrackInfo {
  thread: ThreadIndex;
  beganNs: number;
  endedNs: number;
  /** The maximum number of open spans. */
  depth: number;
  spans: number;
  /** Spans of each level, `levels[k] <= duration < levels[k + 1]`: each span is in one level only. */
  levels: Tiles[];
  /** For each level everything shorter, merged to pieces of about that length; the first level has none. */
  dense: Tiles[];
  /** Columns: time (differences), frame (plain). */
  instants: Block | null;
}

/** Four numbers for each tile: block, earliest start, latest end, number of rows. In the order of starts. */
export type Tiles = number[];
// The columns of a tile of spans, by begin and depth: begin (differences, the first to the tile's earliest), duration,
// depth, frame, flags (1: has no end, 2: failed, 4: was open before the recording began, and is no call),
// detail + 1; all plain. After them a varint and that many bytes: JSON, an array of details, each an object.
//
// The columns of a dense tile: begin (differences), extent, depth, frame + 1 of the dominant frame (0: none), calls,
// busy time; all plain.

/** The calls from the lines of functions, on one thread. */
export interface CallLinesInfo {
  thread: ThreadIndex;
  rows: number;
  /**
   * Columns, all plain: frame (function and line of the caller), called function, calls, their time, and the part of it
   * that counts for the line. A call inside another one of the same row adds nothing to the time of the row, and a call
   * inside any other one from the same line of the file nothing to the line: the time of a line is the sum of the last column.
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
  /** The process's own memory first. */
  devices: DeviceMemory[];
  /** The average number of bytes for each recorded allocation, if only a sample was recorded. */
  sampleEvery: number | null;
}

export interface DeviceMemory {
  /** -1: the process's own memory. */
  device: number;
  label: string;
  /**
   * Columns: time (differences), live bytes (plain), resident bytes + 1 (plain, 0 if unknown). With `host`, instead of the
   * last of them: bytes that are freed but still in use by the device, bytes of segments. `null`: no history.
   */
  curve: Block | null;
  peakNs: number | null;
  peak: Amount;
  live: Amount;
  /** The part of `live` from before the recording. */
  fromBefore: Amount;
  allocated: Amount;
  temporary: Amount;
  threads: NamedAmounts[];
  tags: NamedAmounts[];
  allocators: NamedAmounts[];
  /** By size: the name is the maximum size of a block in the row. */
  sizes: NamedAmounts[];
  moments: MomentsInfo | null;
  host: HostMemory | null;
}

/** The memory of a device, as a host's allocator recorded it, such as PyTorch's for a GPU. */
export interface HostMemory {
  /** The device's total memory in bytes, if known. */
  total: number | null;
  /** The time at which its segments were largest. */
  reservedPeak: HostPoint;
  pools: PoolMemory[];
  /** Failed requests: the first ones, in order. */
  failures: FailureInfo[];
  /** The number of all failed requests. */
  failureCount: number;
  /** The last recorded state of each process's allocator, if there is one. */
  states: SegmentState[];
  /** The stacks of both. Columns: distance back to the parent, frame; both plain. */
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
  /** Columns: time (differences), allocated, pending, reserved (all plain). */
  curve: Block;
  peak: HostPoint;
}

export interface FailureInfo {
  timeNs: number;
  /** Its index in `Head.processes`. */
  process: number;
  /** The requested bytes. */
  size: number;
  /** The free memory of the device. */
  free: number;
  pool: string;
  /** A node of `HostMemory.stacks`. */
  stack: number;
}

export interface SegmentState {
  /** Its index in `Head.processes`. */
  process: number;
  timeNs: number;
  reason: "end" | "failure" | "requested";
  segments: number;
  blocks: number;
  reserved: number;
  /** The rounded sizes of allocated blocks, and the requested part of them. */
  allocated: number;
  requested: number;
  pending: number;
  /** Free bytes in segments, and the largest free block. */
  free: number;
  largestFree: number;
  pools: { name: string; reserved: number; allocated: number; free: number }[];
  /**
   * Columns of segments, the largest of each pool first: address, size, index in `pools`, stream, flags (1: of large blocks,
   * 2: expandable), number of blocks. Columns of their blocks: bytes since the previous one, size, requested bytes,
   * flags (1: allocated, 2: allocated or pending), node of `HostMemory.stacks`. All plain. `null` if none were recorded.
   */
  rows: Block | null;
  /** Segments that `rows` leaves out, because they have too many blocks. */
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

/** Live memory at some moments. */
export interface MomentsInfo {
  /** The moments, including that of the peak. */
  times: number[];
  nodes: number;
  /** Columns: distance back to the parent, frame; both plain. */
  tree: Block;
  /** Columns: node, first moment at which it was live, number of such moments, bytes, blocks; all plain. */
  rows: Block;
}

export interface SourceInfo {
  file: StringIndex;
  /** Whether it was modified after the recording. */
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
