// What memory is, in words and numbers that several views need.

import type { Amount, DeviceMemory, SegmentState } from "./format";

/** What was taken and not freed: what was there before the recording is no leak of it. */
export function neverFreed({ live, fromBefore }: DeviceMemory): Amount {
  return { bytes: live.bytes - fromBefore.bytes, blocks: live.blocks - fromBefore.blocks };
}

/** A pool by its name: `default pool`, `pool 3`. */
export function poolWords(name: string): string {
  return name.startsWith("pool ") ? name : `${name} pool`;
}

/**
 * How much of what is free does not lie in the largest free block of its allocator: of the accounts of one process, or of
 * several together. `null` if nothing is free.
 */
export function fragmentation(states: Pick<SegmentState, "free" | "largestFree">[]): number | null {
  const free = states.reduce((sum, state) => sum + state.free, 0);
  const scattered = states.reduce((sum, state) => sum + state.free - state.largestFree, 0);
  return free > 0 ? scattered / free : null;
}
