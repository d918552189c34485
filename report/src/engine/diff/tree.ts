// Two call trees merged: each path once, with its cost before and after. The rules are those of `Diff` in
// `crates/stackweave-profile/src/aggregate/diff.rs`.

import { CallTree, TreeBuilder } from "../tree";

export const BEFORE = 1;
export const AFTER = 2;

export interface DiffTree {
  /** Both have the same nodes: the paths of either. A missing path costs nothing. */
  before: CallTree;
  after: CallTree;
  /** By node: `BEFORE`, `AFTER`, or both. */
  sides: Uint8Array;
}

export function diffTreeOf(before: CallTree, after: CallTree): DiffTree {
  const builder = new TreeBuilder(false);
  const places = [before, after].map((tree) => placesIn(builder, tree)) as [Uint32Array, Uint32Array];
  const union = builder.finish();
  const sides = new Uint8Array(union.length);
  for (const place of places[0]) sides[place]! |= BEFORE;
  for (const place of places[1]) sides[place]! |= AFTER;
  return { before: spread(union, before, places[0]), after: spread(union, after, places[1]), sides };
}

/** Returns the node of the same path for each node of a tree. */
function placesIn(builder: TreeBuilder, { parent, item, length }: CallTree): Uint32Array {
  const places = new Uint32Array(length);
  for (let node = 1; node < length; node++) places[node] = builder.child(places[parent[node]!]!, item[node]!);
  return places;
}

/** Returns the costs of a tree on the nodes of another. */
function spread({ parent, item, length }: CallTree, tree: CallTree, places: Uint32Array): CallTree {
  const calls = new Float64Array(length);
  const self = new Float64Array(length);
  for (let node = 0; node < tree.length; node++) {
    calls[places[node]!]! += tree.calls[node]!;
    self[places[node]!]! += tree.self[node]!;
  }
  return CallTree.of({ parent, item, calls, self, lines: false });
}

/** Returns the factors for the costs of each side: 1, or those that make them shares of the total. */
export function scalesOf(before: number, after: number, isShares: boolean): [number, number] {
  const scale = (total: number) => (isShares ? (total === 0 ? 0 : 1 / total) : 1);
  return [scale(before), scale(after)];
}

/** Returns the greatest change of a node's cost, up or down, without the root. */
export function greatestChange(before: Float64Array, after: Float64Array, scales: [number, number]): number {
  let greatest = 0;
  for (let node = 1; node < before.length; node++) {
    greatest = Math.max(greatest, Math.abs(after[node]! * scales[1] - before[node]! * scales[0]));
  }
  return greatest;
}
