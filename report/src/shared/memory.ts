// What memory is, in words and numbers that several views need.

import type { Amount, DeviceMemory } from "./format";

/** What was taken and not freed: what was there before the recording is no leak of it. */
export function neverFreed({ live, fromBefore }: DeviceMemory): Amount {
  return { bytes: live.bytes - fromBefore.bytes, blocks: live.blocks - fromBefore.blocks };
}

/** A pool by its name: `default pool`, `pool 3`. */
export function poolText(name: string): string {
  return name.startsWith("pool ") ? name : `${name} pool`;
}
