// The segments of an allocator, and their blocks.

import type { Columns } from "../decode";

export interface SegmentColumns {
  segmentsColumns: {
    address: Float64Array;
    size: Float64Array;
    /** An index in `SegmentState.pools`. */
    pool: Uint32Array;
    stream: Float64Array;
    flags: Uint32Array;
    /** The index of its first block; one more entry follows the last segment. */
    firstBlock: Uint32Array;
  };
  blocksColumns: {
    segment: Uint32Array;
    /** Bytes from the start of its segment. */
    offset: Float64Array;
    size: Float64Array;
    requested: Float64Array;
    use: Uint8Array;
    stack: Uint32Array;
  };
}

/** The state of a block. */
export const FREE = 0;
export const PENDING = 1;
export const TAKEN = 2;

export function segmentsOf(columns: Columns): SegmentColumns {
  const [address, size, pool] = [columns.plain(), columns.plain(), columns.small()];
  const [stream, flags, counts] = [columns.plain(), columns.small(), columns.small()];
  const [gap, blockSize, requested] = [columns.plain(), columns.plain(), columns.plain()];
  const [blockFlags, stack] = [columns.small(), columns.small()];
  const firstBlock = new Uint32Array(counts.length + 1);
  const segment = new Uint32Array(gap.length);
  const offset = new Float64Array(gap.length);
  for (let of = 0; of < counts.length; of++) {
    const [first, end] = [firstBlock[of]!, firstBlock[of]! + counts[of]!];
    firstBlock[of + 1] = end;
    let behind = 0;
    for (let block = first; block < end; block++) {
      segment[block] = of;
      offset[block] = behind + gap[block]!;
      behind = offset[block]! + blockSize[block]!;
    }
  }
  const use = Uint8Array.from(blockFlags, (of) => ((of & 1) !== 0 ? TAKEN : (of & 2) !== 0 ? PENDING : FREE));
  return {
    segmentsColumns: { address, size, pool, stream, flags, firstBlock },
    blocksColumns: { segment, offset, size: blockSize, requested, use, stack },
  };
}
