// Trees of memory as rows of a table, by call path or by function.

import { type CallTree, type Children, childrenOf } from "../tree";

/** A row by call path. */
export interface PathRow {
  node: number;
  depth: number;
  /** A function. -1: the caller's other callees, which are too many to be listed. */
  item: number;
  /** The total, with callees. */
  total: number;
  self: number;
  blocks: number;
  /** The growth and the decrease in it, for changes between two moments. */
  added: number;
  freed: number;
  /** The number of rows below it. */
  children: number;
  isOpen: boolean;
}

export interface PathRows {
  total: number;
  blocks: number;
  added: number;
  freed: number;
  rows: PathRow[];
  /** Nodes with visible rows below them. */
  open: number[];
}

export type MemoryOrder = "bytes" | "blocks";

const MOST_CHILDREN = 60;
const MOST_ROWS = 1500;
/** The initially open path continues while one callee has this share of everything. */
const MOST_OF_IT = 0.4;
const LONGEST_WAY = 24;

/** A tree with the sums that rows need. */
export class MemoryTree {
  private readonly children: Children;
  private readonly blocks: Float64Array;
  private readonly added: Float64Array;
  private readonly freed: Float64Array;

  constructor(readonly tree: CallTree) {
    const { parent, self, calls, length } = tree;
    this.children = childrenOf(tree);
    this.blocks = calls.slice();
    this.added = self.map((cost) => Math.max(cost, 0));
    this.freed = self.map((cost) => Math.max(-cost, 0));
    for (let node = length - 1; node > 0; node--) {
      const above = parent[node]!;
      this.blocks[above]! += this.blocks[node]!;
      this.added[above]! += this.added[node]!;
      this.freed[above]! += this.freed[node]!;
    }
  }

  /** Returns the rows below the open nodes; `null` opens the most expensive path. */
  rows(requested: number[] | null, order: MemoryOrder): PathRows {
    const open = new Set(requested ?? this.heavyWay(order));
    const rows: PathRow[] = [];
    const add = (above: number, depth: number) => {
      const [shown, rest] = this.below(above, order);
      for (const node of shown) {
        if (rows.length >= MOST_ROWS) return;
        rows.push(this.row(node, depth, open.has(node)));
        if (open.has(node)) add(node, depth + 1);
      }
      if (rest.length > 0) rows.push(this.restOf(above, depth, rest));
    };
    add(0, 0);
    return {
      total: this.tree.total[0]!,
      blocks: this.blocks[0]!,
      added: this.added[0]!,
      freed: this.freed[0]!,
      rows,
      open: [...open],
    };
  }

  /** Returns the weight of a node in the order: growth and decrease do not cancel out. */
  private weight(node: number, order: MemoryOrder): number {
    return order === "bytes" ? this.added[node]! + this.freed[node]! : Math.abs(this.blocks[node]!);
  }

  private below(node: number, order: MemoryOrder): [number[], number[]] {
    const { starts, ids } = this.children;
    const all = Array.from(ids.subarray(starts[node]!, starts[node + 1]!)).filter(
      (child) => this.weight(child, "bytes") > 0 || this.blocks[child] !== 0,
    );
    all.sort((a, b) => this.weight(b, order) - this.weight(a, order) || a - b);
    // A single remaining one is shown, not counted.
    const end = all.length === MOST_CHILDREN + 1 ? all.length : MOST_CHILDREN;
    return [all.slice(0, end), all.slice(end)];
  }

  private heavyWay(order: MemoryOrder): number[] {
    const way: number[] = [];
    const all = this.weight(0, order);
    for (let node = 0; way.length < LONGEST_WAY; ) {
      const heaviest = this.below(node, order)[0][0];
      if (heaviest === undefined || this.weight(heaviest, order) < all * MOST_OF_IT) break;
      if (this.below(heaviest, order)[0].length > 0) way.push(heaviest);
      node = heaviest;
    }
    return way;
  }

  private row(node: number, depth: number, isOpen: boolean): PathRow {
    const { item, total, self } = this.tree;
    return {
      node,
      depth,
      item: item[node]!,
      total: total[node]!,
      self: self[node]!,
      blocks: this.blocks[node]!,
      added: this.added[node]!,
      freed: this.freed[node]!,
      children: this.below(node, "bytes").flat().length,
      isOpen,
    };
  }

  private restOf(above: number, depth: number, rest: number[]): PathRow {
    const sum = (column: Float64Array) => rest.reduce((all, node) => all + column[node]!, 0);
    return {
      // No node has this number, and there are as many of these rows as nodes.
      node: this.tree.length + above,
      depth,
      item: -1,
      total: sum(this.tree.total),
      self: 0,
      blocks: sum(this.blocks),
      added: sum(this.added),
      freed: sum(this.freed),
      children: rest.length,
      isOpen: false,
    };
  }
}

/** Functions or lines, those with the most self cost first; by item. */
export interface FlatColumns {
  item: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  blocks: Float64Array;
}

/** Returns the statistics of a tree by item, of items with self cost. */
export function flatRows(
  tree: CallTree,
  sums: { self: Float64Array; total: Float64Array; calls: Float64Array },
): FlatColumns {
  const there = [...new Set(tree.item.subarray(1))].filter((of) => sums.self[of] !== 0 || sums.calls[of] !== 0);
  there.sort((a, b) => Math.abs(sums.self[b]!) - Math.abs(sums.self[a]!) || a - b);
  const item = Uint32Array.from(there);
  const pick = (column: Float64Array) => Float64Array.from(item, (of) => column[of]!);
  return { item, self: pick(sums.self), total: pick(sums.total), blocks: pick(sums.calls) };
}
