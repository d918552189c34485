// Who called whom, and what it cost. The same rules as `CallTree` and `View` in `crates/stackweave-profile/src/aggregate`.

import type { Names } from "../shared/names";
import type { Columns } from "./decode";

/** A tree of frames or functions as columns; node 0 is the root, and callers stand before what they call. */
export class CallTree {
  private constructor(
    readonly parent: Uint32Array,
    /** A function, or a frame where lines are told apart (`lines`). Without meaning for the root. */
    readonly item: Uint32Array,
    readonly calls: Float64Array,
    readonly own: Float64Array,
    readonly total: Float64Array,
    /** Whether items are frames. */
    readonly lines: boolean,
  ) {}

  get length(): number {
    return this.parent.length;
  }

  static decode(columns: Columns, _names: Names): CallTree {
    const parent = columns.small();
    for (let node = 0; node < parent.length; node++) parent[node] = node - parent[node]!;
    const item = columns.small();
    return CallTree.of({ parent, item, calls: columns.plain(), own: columns.signed(), lines: true });
  }

  /** A tree of columns; totals are made of own costs. */
  static of(parts: {
    parent: Uint32Array;
    item: Uint32Array;
    calls: Float64Array;
    own: Float64Array;
    lines: boolean;
  }): CallTree {
    const total = parts.own.slice();
    for (let node = total.length - 1; node > 0; node--) total[parts.parent[node]!]! += total[node]!;
    return new CallTree(parts.parent, parts.item, parts.calls, parts.own, total, parts.lines);
  }
}

/** A tree that grows. */
export class TreeBuilder {
  private readonly parent = [0];
  private readonly item = [0];
  private readonly calls = [0];
  private readonly own = [0];
  private readonly byItem = new Map<number, number>();

  constructor(private readonly lines: boolean) {}

  get length(): number {
    return this.parent.length;
  }

  /** The node of `item` under `parent`. */
  child(parent: number, item: number): number {
    const key = parent * 2 ** 26 + item;
    let node = this.byItem.get(key);
    if (node === undefined) {
      node = this.parent.length;
      this.byItem.set(key, node);
      this.parent.push(parent);
      this.item.push(item);
      this.calls.push(0);
      this.own.push(0);
    }
    return node;
  }

  add(node: number, calls: number, own: number): void {
    this.calls[node]! += calls;
    this.own[node]! += own;
  }

  finish(): CallTree {
    return CallTree.of({
      parent: Uint32Array.from(this.parent),
      item: Uint32Array.from(this.item),
      calls: Float64Array.from(this.calls),
      own: Float64Array.from(this.own),
      lines: this.lines,
    });
  }
}

/** For each node where its children are in `ids`: from `starts[node]` to `starts[node + 1]`, in the order of the tree. */
export interface Children {
  starts: Uint32Array;
  ids: Uint32Array;
}

export function childrenOf(tree: CallTree): Children {
  const { parent, length } = tree;
  const starts = new Uint32Array(length + 1);
  for (let node = 1; node < length; node++) starts[parent[node]! + 1]!++;
  for (let node = 0; node < length; node++) starts[node + 1]! += starts[node]!;
  const next = starts.slice();
  const ids = new Uint32Array(Math.max(length - 1, 0));
  for (let node = 1; node < length; node++) ids[next[parent[node]!]!++] = node;
  return { starts, ids };
}
