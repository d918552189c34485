// Costs by function, in the terms of Python's cProfile: the same counters as `crates/stackweave-profile/src/aggregate/statistics.rs`.

import { type CallTree, childrenOf } from "./tree";

/** By function. */
export interface StatisticsColumns {
  calls: Float64Array;
  primitiveCalls: Float64Array;
  own: Float64Array;
  total: Float64Array;
}

/** The statistics of a tree of functions, of which there are so many. */
export function statisticsOf(tree: CallTree, functions: number): StatisticsColumns {
  const columns = {
    calls: new Float64Array(functions),
    primitiveCalls: new Float64Array(functions),
    own: new Float64Array(functions),
    total: new Float64Array(functions),
  };
  const open = new Uint32Array(functions);
  walk(tree, {
    enter(node) {
      const of = tree.item[node]!;
      columns.calls[of]! += tree.calls[node]!;
      columns.own[of]! += tree.own[node]!;
      if (open[of] === 0) {
        columns.primitiveCalls[of]! += tree.calls[node]!;
        columns.total[of]! += tree.total[node]!;
      }
      open[of]!++;
    },
    leave(node) {
      open[tree.item[node]!]!--;
    },
  });
  return columns;
}

/** Goes through a tree: each node but the root is entered before and left behind what it calls. */
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
