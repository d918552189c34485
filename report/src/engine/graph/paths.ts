// The paths of a tree that involve a function.

import type { FunctionIndex } from "../../shared/format";
import { CallTree } from "../tree";

const BESIDE = 0;
const ABOVE = 1;
const INSIDE = 2;

/**
 * Returns the paths of a tree through a function: its callees and its callers. A caller's self cost is not included, so its
 * total is the cost of the function for that caller.
 */
export function pathsThrough(tree: CallTree, of: FunctionIndex): CallTree {
  const { parent, item, length } = tree;
  const side = new Uint8Array(length);
  side[0] = ABOVE;
  for (let node = 1; node < length; node++) {
    if (item[node] === of || side[parent[node]!] === INSIDE) side[node] = INSIDE;
  }
  for (let node = length - 1; node > 0; node--) {
    const above = parent[node]!;
    if (side[node] !== BESIDE && side[above] === BESIDE) side[above] = ABOVE;
  }
  const kept = new Uint32Array(side.reduce((count, at) => count + (at === BESIDE ? 0 : 1), 0));
  const place = new Uint32Array(length);
  for (let node = 0, next = 0; node < length; node++) {
    if (side[node] === BESIDE) continue;
    place[node] = next;
    kept[next++] = node;
  }
  return CallTree.of({
    parent: kept.map((node) => place[parent[node]!]!),
    item: kept.map((node) => item[node]!),
    calls: Float64Array.from(kept, (node) => tree.calls[node]!),
    self: Float64Array.from(kept, (node) => (side[node] === INSIDE ? tree.self[node]! : 0)),
    lines: tree.lines,
  });
}
