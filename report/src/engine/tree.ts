// Call trees with costs. The rules are those of `CallTree` and `View` in `crates/stackweave-profile/src/aggregate`.

import type { Names } from "../shared/names";
import type { Columns } from "./decode";

/** A tree of frames or functions as columns; node 0 is the root, and callers come before callees. */
export class CallTree {
  private constructor(
    readonly parent: Uint32Array,
    /** A function, or a frame if lines are distinguished (`lines`). Undefined for the root. */
    readonly item: Uint32Array,
    readonly calls: Float64Array,
    readonly self: Float64Array,
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
    return CallTree.of({ parent, item, calls: columns.plain(), self: columns.signed(), lines: true });
  }

  /** Builds a tree of columns; totals are computed from self costs. */
  static of(parts: {
    parent: Uint32Array;
    item: Uint32Array;
    calls: Float64Array;
    self: Float64Array;
    lines: boolean;
  }): CallTree {
    const total = parts.self.slice();
    for (let node = total.length - 1; node > 0; node--) total[parts.parent[node]!]! += total[node]!;
    return new CallTree(parts.parent, parts.item, parts.calls, parts.self, total, parts.lines);
  }
}

/** A tree that grows. A hash table of numbers finds nodes; a `Map` takes seconds for a million of them. */
export class TreeBuilder {
  length = 1;
  private parent = new Uint32Array(1024);
  private item = new Uint32Array(1024);
  private calls = new Float64Array(1024);
  private self = new Float64Array(1024);
  /** Nodes at their hash or after it; 0 if free. At most half full. */
  private table = new Uint32Array(2048);

  constructor(private readonly lines: boolean) {}

  /** Returns the node of `item` under `parent`. */
  child(parent: number, item: number): number {
    const at = this.placeOf(parent, item);
    const known = this.table[at]!;
    if (known !== 0) return known;
    const node = this.length++;
    this.parent[node] = parent;
    this.item[node] = item;
    this.table[at] = node;
    if (this.length === this.parent.length) this.grow();
    return node;
  }

  add(node: number, calls: number, self: number): void {
    this.calls[node]! += calls;
    this.self[node]! += self;
  }

  finish(): CallTree {
    return CallTree.of({
      parent: this.parent.slice(0, this.length),
      item: this.item.slice(0, this.length),
      calls: this.calls.slice(0, this.length),
      self: this.self.slice(0, this.length),
      lines: this.lines,
    });
  }

  /** Returns the slot of a node in the table, or the slot for it. */
  private placeOf(parent: number, item: number): number {
    const mask = this.table.length - 1;
    const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(item + 1, 0x85ebca6b);
    const hash = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d);
    let at = (hash ^ (hash >>> 16)) & mask;
    for (; this.table[at] !== 0; at = (at + 1) & mask) {
      const node = this.table[at]!;
      if (this.parent[node] === parent && this.item[node] === item) break;
    }
    return at;
  }

  private grow(): void {
    const length = this.parent.length * 2;
    const grown = <T extends Uint32Array | Float64Array>(made: T, column: T): T => {
      made.set(column);
      return made;
    };
    this.parent = grown(new Uint32Array(length), this.parent);
    this.item = grown(new Uint32Array(length), this.item);
    this.calls = grown(new Float64Array(length), this.calls);
    this.self = grown(new Float64Array(length), this.self);
    this.table = new Uint32Array(2 * length);
    for (let node = 1; node < this.length; node++) {
      this.table[this.placeOf(this.parent[node]!, this.item[node]!)] = node;
    }
  }
}

/** The children of each node: `ids` from `starts[node]` to `starts[node + 1]`, in the order of the tree. */
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
