// Live memory at some moments: a tree of call paths, with the amounts of each path over time.

import type { MomentsInfo } from "../../shared/format";
import type { Columns } from "../decode";
import { CallTree } from "../tree";

/** The node of a block, its first moment, and the number of moments at which it was live. */
interface RowColumns {
  node: Uint32Array;
  first: Uint32Array;
  count: Uint32Array;
  bytes: Float64Array;
  blocks: Float64Array;
}

export class Moments {
  private constructor(
    private readonly parent: Uint32Array,
    private readonly item: Uint32Array,
    private readonly rows: RowColumns,
    private readonly length: number,
  ) {}

  static decode(info: MomentsInfo, tree: Columns, rows: Columns): Moments {
    const parent = tree.small();
    for (let node = 0; node < parent.length; node++) parent[node] = node - parent[node]!;
    const item = tree.small();
    const columns = {
      node: rows.small(),
      first: rows.small(),
      count: rows.small(),
      bytes: rows.plain(),
      blocks: rows.plain(),
    };
    return new Moments(parent, item, columns, info.times.length);
  }

  /** Returns live memory at a moment, by call path; items are frames, calls are blocks. */
  at(moment: number): CallTree {
    return this.sum([[moment, 1]]);
  }

  /** Returns the change from one moment to another; below 0 for less. */
  growth(from: number, to: number): CallTree {
    return this.sum([
      [from, -1],
      [to, 1],
    ]);
  }

  /** The totals of each moment. */
  totals(): { bytes: Float64Array; blocks: Float64Array } {
    const { first, count, bytes, blocks } = this.rows;
    const totals = { bytes: new Float64Array(this.length + 1), blocks: new Float64Array(this.length + 1) };
    for (let row = 0; row < first.length; row++) {
      const from = Math.min(first[row]!, this.length);
      const until = Math.min(from + count[row]!, this.length);
      totals.bytes[from]! += bytes[row]!;
      totals.bytes[until]! -= bytes[row]!;
      totals.blocks[from]! += blocks[row]!;
      totals.blocks[until]! -= blocks[row]!;
    }
    for (let moment = 1; moment < this.length; moment++) {
      totals.bytes[moment]! += totals.bytes[moment - 1]!;
      totals.blocks[moment]! += totals.blocks[moment - 1]!;
    }
    return { bytes: totals.bytes.slice(0, this.length), blocks: totals.blocks.slice(0, this.length) };
  }

  private sum(moments: [number, number][]): CallTree {
    const { node, first, count, bytes, blocks } = this.rows;
    const self = new Float64Array(this.parent.length);
    const calls = new Float64Array(this.parent.length);
    for (let row = 0; row < node.length; row++) {
      let times = 0;
      for (const [moment, sign] of moments) {
        if (first[row]! <= moment && moment < first[row]! + count[row]!) times += sign;
      }
      if (times === 0) continue;
      self[node[row]!]! += times * bytes[row]!;
      calls[node[row]!]! += times * blocks[row]!;
    }
    return CallTree.of({ parent: this.parent, item: this.item, calls, self, lines: true });
  }
}
