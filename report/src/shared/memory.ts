// Texts and figures of memory that several views need.

import type { Amount, DeviceMemory, SegmentState } from "./format";

/** Returns leak candidates: live memory, without that from before the recording. */
export function neverFreed({ live, fromBefore }: DeviceMemory): Amount {
  return { bytes: live.bytes - fromBefore.bytes, blocks: live.blocks - fromBefore.blocks };
}

/** Returns a pool by its name: `default pool`, `pool 3`. */
export function poolWords(name: string): string {
  return name.startsWith("pool ") ? name : `${name} pool`;
}

/**
 * Returns the part of free memory that is not in the largest free block of its allocator, for the states of one process or of
 * several. `null` if nothing is free.
 */
export function fragmentation(states: Pick<SegmentState, "free" | "largestFree">[]): number | null {
  const free = states.reduce((sum, state) => sum + state.free, 0);
  const scattered = states.reduce((sum, state) => sum + state.free - state.largestFree, 0);
  return free > 0 ? scattered / free : null;
}
