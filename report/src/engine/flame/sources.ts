// Sources of the boxes of a flame graph: a call tree as it is, with recursion folded, or inverted.

import { type CallTree, childrenOf } from "../tree";
import type { Group, Source } from "./tree";

/** Returns the width of each node: its cost, or 0 if it freed more memory than it allocated. */
export function weightsOf(parent: Uint32Array, self: Float64Array): Float64Array {
  const weights = self.map((cost) => Math.max(cost, 0));
  for (let node = weights.length - 1; node > 0; node--) weights[parent[node]!]! += weights[node]!;
  return weights;
}

/** Returns a tree as it is. Members are nodes. */
export function topDown(tree: CallTree, weights = weightsOf(tree.parent, tree.self)): Source<number> {
  const { starts, ids } = childrenOf(tree);
  const group = (node: number): Group<number> => ({
    item: tree.item[node]!,
    weight: weights[node]!,
    self: tree.self[node]!,
    total: tree.total[node]!,
    calls: tree.calls[node]!,
    times: 1,
    members: node,
  });
  return {
    root: () => group(0),
    below(node) {
      const groups: Group<number>[] = [];
      for (let at = starts[node]!; at < starts[node + 1]!; at++) groups.push(group(ids[at]!));
      return groups;
    },
  };
}

/** Returns a tree in which recursive calls of a function are one box. Members are the nodes in it. */
export function foldedTopDown(tree: CallTree): Source<number[]> {
  const { item, self, total, calls } = tree;
  const weights = weightsOf(tree.parent, self);
  const { starts, ids } = childrenOf(tree);

  /** Makes a box of nodes of the same function: these, and the nested ones. */
  function group(tops: number[]): Group<number[]> {
    const made = { item: item[tops[0]!]!, weight: 0, self: 0, total: 0, calls: 0, times: 0, members: [] as number[] };
    for (const top of tops) {
      made.weight += weights[top]!;
      made.total += total[top]!;
    }
    for (let layer = tops; layer.length > 0; made.times++) {
      const next: number[] = [];
      for (const node of layer) {
        made.members.push(node);
        made.self += self[node]!;
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

/** Pairs of a node with self cost and the caller in this box: a part of the columns. */
interface Callers {
  nodes: Uint32Array;
  callers: Uint32Array;
  from: number;
  to: number;
}

/**
 * Returns a tree from the functions with self cost up to their callers. The cost and the calls of a box are those of the
 * function at the root on this path; its self cost is the part without a further caller.
 */
export function bottomUp(tree: CallTree, isFolded: boolean): Source<Callers | null> {
  const { parent, item, self, calls } = tree;
  const grouping = new Grouping(tree, above);

  /** Returns the next caller; 0 if there is none. */
  function above(node: number): number {
    let caller = parent[node]!;
    if (isFolded) while (caller !== 0 && item[caller] === item[node]) caller = parent[caller]!;
    return caller;
  }

  return {
    root: () => ({
      item: 0,
      weight: weightsOf(parent, self)[0]!,
      self: self[0]!,
      total: tree.total[0]!,
      calls: calls[0]!,
      times: 1,
      members: null,
    }),
    below(members) {
      if (members) {
        const { from, to } = members;
        return grouping.groups(members.nodes.subarray(from, to), members.callers.subarray(from, to).map(above));
      }
      const nodes = costly(tree);
      return grouping.groups(nodes, nodes);
    },
  };
}

/** Nodes with self cost or calls. */
function costly({ self, calls, length }: CallTree): Uint32Array {
  const nodes = new Uint32Array(length);
  let count = 0;
  for (let node = 1; node < length; node++) if (self[node] !== 0 || calls[node] !== 0) nodes[count++] = node;
  return nodes.slice(0, count);
}

/** Groups pairs by the function of the caller. */
class Grouping {
  /** By function: the index of its group + 1, while groups are built. */
  private readonly placeOf: Uint32Array;

  constructor(
    private readonly tree: CallTree,
    private readonly above: (node: number) => number,
  ) {
    let most = 0;
    for (const item of tree.item) most = Math.max(most, item);
    this.placeOf = new Uint32Array(most + 1);
  }

  /** Groups of pairs, without those that have no caller. */
  groups(nodes: Uint32Array, callers: Uint32Array): Group<Callers>[] {
    const { item } = this.tree;
    const groups = this.counted(callers);
    const sorted = { nodes: new Uint32Array(nodes.length), callers: new Uint32Array(nodes.length) };
    let begin = 0;
    for (const { members } of groups) {
      Object.assign(members, sorted);
      members.from = begin;
      begin += members.to;
      members.to = members.from;
    }
    for (let at = 0; at < nodes.length; at++) {
      if (callers[at] !== 0) this.add(groups[this.placeOf[item[callers[at]!]!]! - 1]!, nodes[at]!, callers[at]!);
    }
    for (const group of groups) this.placeOf[group.item] = 0;
    return groups;
  }

  /** Returns the groups, with their numbers of pairs. */
  private counted(callers: Uint32Array): Group<Callers>[] {
    const groups: Group<Callers>[] = [];
    for (const caller of callers) {
      if (caller === 0) continue;
      const item = this.tree.item[caller]!;
      if (this.placeOf[item] === 0) {
        const members = { nodes: callers, callers, from: 0, to: 0 };
        this.placeOf[item] = groups.push({ item, weight: 0, self: 0, total: 0, calls: 0, times: 1, members });
      }
      groups[this.placeOf[item]! - 1]!.members.to++;
    }
    return groups;
  }

  private add(group: Group<Callers>, node: number, caller: number): void {
    const { members } = group;
    const cost = this.tree.self[node]!;
    members.nodes[members.to] = node;
    members.callers[members.to++] = caller;
    group.weight += Math.max(cost, 0);
    group.total += cost;
    group.calls += this.tree.calls[node]!;
    if (this.above(caller) === 0) group.self += cost;
  }
}
