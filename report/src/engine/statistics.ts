// Costs by function, in the terms of Python's cProfile: the same counters as `crates/stackweave-profile/src/aggregate/statistics.rs`.

import { type CallTree, childrenOf } from "./tree";

/** Columns by function, or by pair of caller and callee. */
export interface StatisticsColumns {
  calls: Float64Array;
  /** Calls that were made while no call of the same function was open. */
  primitiveCalls: Float64Array;
  self: Float64Array;
  /** The total with callees; a recursive call is not counted again. */
  total: Float64Array;
}

/** Pairs of caller and callee with their costs, in the order of the tree. */
export interface EdgeColumns extends StatisticsColumns {
  caller: Uint32Array;
  callee: Uint32Array;
  /** The sum over all calls: cost inside two open calls is included twice. */
  totalOfAll: Float64Array;
}

export interface Statistics {
  functions: StatisticsColumns & { totalOfAll: Float64Array };
  /** By function: the cost without a caller. */
  outermost: StatisticsColumns;
  edges: EdgeColumns;
}

const known = new WeakMap<CallTree, Statistics>();

/**
 * Returns the statistics of a tree with `count` functions. They are computed once for each tree and shared: never modify them.
 */
export function statisticsOf(tree: CallTree, functions: number): Statistics {
  let statistics = known.get(tree);
  if (!statistics) {
    statistics = counted(tree, functions);
    known.set(tree, statistics);
  }
  return statistics;
}

function counted(tree: CallTree, count: number): Statistics {
  const { parent, item } = tree;
  const edges = pairsOf(tree, count);
  const functions = new Counting(count);
  const pairs = new Counting(edges.caller.length);
  const outermost = new Counting(count);
  walk(tree, {
    enter(node) {
      const of = item[node]!;
      functions.enter(tree, node, of);
      if (parent[node] === 0) {
        outermost.enter(tree, node, of);
        outermost.leave(of);
      } else {
        pairs.enter(tree, node, edges.ofNode[node]!);
      }
    },
    leave(node) {
      functions.leave(item[node]!);
      if (parent[node] !== 0) pairs.leave(edges.ofNode[node]!);
    },
  });
  return {
    functions: functions.columns(),
    outermost: outermost.columns(),
    edges: { caller: edges.caller, callee: edges.callee, ...pairs.columns() },
  };
}

/** Figures of each function or pair, with the number of its open calls. */
class Counting {
  private readonly calls: Float64Array;
  private readonly primitiveCalls: Float64Array;
  private readonly self: Float64Array;
  private readonly total: Float64Array;
  private readonly totalOfAll: Float64Array;
  private readonly open: Uint32Array;

  constructor(count: number) {
    this.calls = new Float64Array(count);
    this.primitiveCalls = new Float64Array(count);
    this.self = new Float64Array(count);
    this.total = new Float64Array(count);
    this.totalOfAll = new Float64Array(count);
    this.open = new Uint32Array(count);
  }

  enter(tree: CallTree, node: number, of: number): void {
    this.calls[of]! += tree.calls[node]!;
    this.self[of]! += tree.self[node]!;
    this.totalOfAll[of]! += tree.total[node]!;
    if (this.open[of] === 0) {
      this.primitiveCalls[of]! += tree.calls[node]!;
      this.total[of]! += tree.total[node]!;
    }
    this.open[of]!++;
  }

  leave(of: number): void {
    this.open[of]!--;
  }

  columns(): StatisticsColumns & { totalOfAll: Float64Array } {
    const { calls, primitiveCalls, self, total, totalOfAll } = this;
    return { calls, primitiveCalls, self, total, totalOfAll };
  }
}

/** Numbers the pairs of caller and callee; `ofNode` has the pair of each node. A node without a caller has none. */
function pairsOf(tree: CallTree, functions: number) {
  const { parent, item, length } = tree;
  const numbers = new Map<number, number>();
  const ofNode = new Uint32Array(length);
  for (let node = 1; node < length; node++) {
    if (parent[node] === 0) continue;
    const key = item[parent[node]!]! * functions + item[node]!;
    let number = numbers.get(key);
    if (number === undefined) {
      number = numbers.size;
      numbers.set(key, number);
    }
    ofNode[node] = number;
  }
  const caller = new Uint32Array(numbers.size);
  const callee = new Uint32Array(numbers.size);
  for (const [key, number] of numbers) {
    caller[number] = Math.floor(key / functions);
    callee[number] = key % functions;
  }
  return { ofNode, caller, callee };
}

/** Traverses a tree: enters each node except the root before its callees, and leaves it after them. */
export function walk(tree: CallTree, visit: { enter(node: number): void; leave(node: number): void }): void {
  const { starts, ids } = childrenOf(tree);
  const path = [0];
  const next = starts.slice();
  while (path.length > 0) {
    const node = path[path.length - 1]!;
    const at = next[node]!;
    if (at < starts[node + 1]!) {
      next[node] = at + 1;
      const child = ids[at]!;
      visit.enter(child);
      path.push(child);
    } else {
      path.pop();
      if (node !== 0) visit.leave(node);
    }
  }
}
