// Where the boxes of a flame graph come from: a call tree as it is, with recursion folded, or turned around.

import type { Group, Source } from "./flame-tree";
import { type CallTree, childrenOf } from "./tree";

/** How wide each node is: what it cost, but never below 0, where memory was given back that others had taken. */
export function weightsOf(parent: Uint32Array, own: Float64Array): Float64Array {
  const weights = own.map((cost) => Math.max(cost, 0));
  for (let node = weights.length - 1; node > 0; node--) weights[parent[node]!]! += weights[node]!;
  return weights;
}

/** A tree as it is. Members are nodes. */
export function topDown(tree: CallTree, weights = weightsOf(tree.parent, tree.own)): Source<number> {
  const { starts, ids } = childrenOf(tree);
  const group = (node: number): Group<number> => ({
    item: tree.item[node]!,
    weight: weights[node]!,
    own: tree.own[node]!,
    total: tree.total[node]!,
    calls: tree.calls[node]!,
    times: 1,
    members: node,
  });
  return {
    root: () => group(0),
    below: (node) => Array.from(ids.subarray(starts[node]!, starts[node + 1]!), group),
  };
}

/** A tree with each function that calls itself as one box. Members are the nodes in it. */
export function foldedTopDown(tree: CallTree): Source<number[]> {
  const { item, own, total, calls } = tree;
  const weights = weightsOf(tree.parent, own);
  const { starts, ids } = childrenOf(tree);

  /** Makes a box of nodes of the same function: these, and what they are under themselves. */
  function group(tops: number[]): Group<number[]> {
    const made = { item: item[tops[0]!]!, weight: 0, own: 0, total: 0, calls: 0, times: 0, members: [] as number[] };
    for (const top of tops) {
      made.weight += weights[top]!;
      made.total += total[top]!;
    }
    for (let layer = tops; layer.length > 0; made.times++) {
      const next: number[] = [];
      for (const node of layer) {
        made.members.push(node);
        made.own += own[node]!;
        made.calls += calls[node]!;
        if (node === 0) continue;
        for (let at = starts[node]!; at < starts[node + 1]!; at++) {
          if (item[ids[at]!] === made.item) next.push(ids[at]!);
        }
      }
      layer = next;
    }
    return made;
  }

  return {
    root: () => group([0]),
    below(members) {
      const tops = new Map<number, number[]>();
      for (const node of members) {
        for (let at = starts[node]!; at < starts[node + 1]!; at++) {
          const child = ids[at]!;
          const of = item[child]!;
          if (node !== 0 && of === item[node]) continue;
          const same = tops.get(of);
          if (same) same.push(child);
          else tops.set(of, [child]);
        }
      }
      return Array.from(tops.values(), group);
    },
  };
}

/** Pairs of a node that cost something by itself, and the one of its callers that the box is of. */
interface Callers {
  nodes: Uint32Array;
  callers: Uint32Array;
}

/**
 * A tree from the functions that cost something by themselves up to their callers. The cost and the calls of a box are those
 * of the function at the root, as far as this way led to it; its own cost is what of that no other function called.
 */
export function bottomUp(tree: CallTree, isFolded: boolean): Source<Callers | null> {
  const { parent, item, own, calls } = tree;

  /** The next caller, 0 if there is none. */
  function above(node: number): number {
    let caller = parent[node]!;
    if (isFolded) while (caller !== 0 && item[caller] === item[node]) caller = parent[caller]!;
    return caller;
  }

  return {
    root: () => ({
      item: 0,
      weight: weightsOf(parent, own)[0]!,
      own: own[0]!,
      total: tree.total[0]!,
      calls: calls[0]!,
      times: 1,
      members: null,
    }),
    below(members) {
      const nodes = members ? members.nodes : costly(tree);
      const callers = members ? members.callers.map(above) : nodes;
      return grouped(tree, { nodes, callers }, above);
    },
  };
}

/** Nodes that have a cost or calls of their own. */
function costly({ own, calls, length }: CallTree): Uint32Array {
  const nodes = new Uint32Array(length);
  let count = 0;
  for (let node = 1; node < length; node++) if (own[node] !== 0 || calls[node] !== 0) nodes[count++] = node;
  return nodes.slice(0, count);
}

/** Pairs by the function of their caller; those without one are left out. */
function grouped(tree: CallTree, pairs: Callers, above: (node: number) => number): Group<Callers>[] {
  const { nodes, callers } = pairs;
  const places = new Map<number, number>();
  const placeOf = new Int32Array(nodes.length).fill(-1);
  const sizes: number[] = [];
  for (let at = 0; at < nodes.length; at++) {
    if (callers[at] === 0) continue;
    const of = tree.item[callers[at]!]!;
    let place = places.get(of);
    if (place === undefined) {
      place = sizes.length;
      places.set(of, place);
      sizes.push(0);
    }
    placeOf[at] = place;
    sizes[place]!++;
  }
  const groups = Array.from(places.keys(), (of, place): Group<Callers> => {
    const members = { nodes: new Uint32Array(sizes[place]!), callers: new Uint32Array(sizes[place]!) };
    return { item: of, weight: 0, own: 0, total: 0, calls: 0, times: 1, members };
  });
  sizes.fill(0);
  for (let at = 0; at < nodes.length; at++) {
    if (placeOf[at]! < 0) continue;
    const group = groups[placeOf[at]!]!;
    const place = sizes[placeOf[at]!]!++;
    const node = nodes[at]!;
    const cost = tree.own[node]!;
    group.members.nodes[place] = node;
    group.members.callers[place] = callers[at]!;
    group.weight += Math.max(cost, 0);
    group.total += cost;
    group.calls += tree.calls[node]!;
    if (above(callers[at]!) === 0) group.own += cost;
  }
  return groups;
}
