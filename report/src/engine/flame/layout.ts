// The visible boxes of a flame graph.

import type { FlameTree } from "./tree";

/** Instead of a function: the root, and several boxes that are too narrow, merged. */
export const ALL = 0xffffffff;
export const MANY = 0xfffffffe;

const MOST_BOXES = 20_000;
/** The extra width that is laid out on each side, as a part of the visible window, so that small moves need no new layout. */
const MARGIN = 0.5;

export interface LayoutRequest {
  /** Functions from the root to the box that fills the width. */
  path: number[];
  /** The visible part of that box, from 0 to 1. */
  span: [number, number];
  /** The width of the drawing. */
  pixels: number;
}

/** Horizontal positions are in the unit of the tree's weights. */
export interface FlameLayout {
  /** The weight and the cost of everything. */
  whole: number;
  total: number;
  /** The part of the requested path that exists. */
  path: number[];
  /** The position of the box at the end of the path, its index, and the visible part of it. */
  extent: [number, number];
  zoomed: number;
  window: [number, number];
  rows: number;
  /** Whether there are more boxes, further from the root. */
  isCut: boolean;
  boxesColumns: BoxColumns;
}

/** Row by row from the root, each from left to right. */
export interface BoxColumns {
  x0: Float64Array;
  x1: Float64Array;
  depth: Uint32Array;
  /** A key that stays the same as long as the tree does. */
  node: Uint32Array;
  /** `ALL`, `MANY`, or a function. */
  function: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  /** For `MANY`: the number of merged boxes. */
  calls: Float64Array;
  times: Uint32Array;
  /** The box of the caller; for the root its own index. */
  above: Uint32Array;
}

export function layoutOf(tree: FlameTree, request: LayoutRequest): FlameLayout {
  const way = tree.along(request.path);
  const node = way[way.length - 1]!;
  const isFound = way.length === request.path.length + 1;
  const [from, to] = isFound ? request.span : [0, 1];
  const begin = tree.start[node]!;
  const weight = tree.weight[node]!;
  const window: [number, number] = [begin + from * weight, begin + to * weight];
  const extra = (window[1] - window[0]) * MARGIN;
  const boxes = new Boxes(tree, {
    low: window[0] - extra,
    high: window[1] + extra,
    least: (window[1] - window[0]) / Math.max(request.pixels, 1),
  });
  boxes.collect();
  const columns = boxes.columns();
  return {
    whole: tree.weight[0]!,
    total: tree.total[0]!,
    path: way.slice(1).map((on) => tree.item[on]!),
    extent: [begin, begin + weight],
    zoomed: Math.max(columns.node.indexOf(node), 0),
    window,
    rows: boxes.rows,
    isCut: boxes.isCut,
    boxesColumns: columns,
  };
}

interface Bounds {
  low: number;
  high: number;
  /** Narrower boxes are merged. */
  least: number;
}

class Boxes {
  rows = 0;
  isCut = false;
  private readonly nodes: number[] = [];
  private readonly above: number[] = [];
  private readonly depth: number[] = [];
  /** For merged boxes: their end and their number; 0 for others. */
  private readonly end: number[] = [];
  private readonly many: number[] = [];

  constructor(
    private readonly tree: FlameTree,
    private readonly bounds: Bounds,
  ) {}

  collect(): void {
    this.push(0, 0, 0);
    for (let box = 0; box < this.nodes.length && !this.isCut; box++) {
      if (this.many[box] === 0) this.addUnder(box);
    }
    this.rows = this.depth[this.depth.length - 1]! + 1;
  }

  private addUnder(box: number): void {
    const { tree, bounds } = this;
    const [first, last] = tree.children(this.nodes[box]!);
    const depth = this.depth[box]! + 1;
    for (let child = this.firstVisible(first, last); child < last; child++) {
      const start = tree.start[child]!;
      const weight = tree.weight[child]!;
      if (start >= bounds.high) break;
      if (weight === 0) continue;
      if (weight >= bounds.least) {
        this.push(child, box, depth);
        continue;
      }
      // In the order of cost, all further boxes are no wider, and the last may have no width.
      let until = tree.order === "heavy" ? last : child + 1;
      while (tree.weight[until - 1] === 0) until--;
      const end = tree.start[until - 1]! + tree.weight[until - 1]!;
      this.pushMany({ child, count: until - child, end }, box, depth);
      if (tree.order === "heavy") break;
    }
  }

  private firstVisible(first: number, last: number): number {
    const { start, weight } = this.tree;
    let from = first;
    let to = last;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (start[middle]! + weight[middle]! <= this.bounds.low) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  private push(node: number, above: number, depth: number): void {
    if (this.nodes.length >= MOST_BOXES) {
      this.isCut = true;
      return;
    }
    this.nodes.push(node);
    this.above.push(above);
    this.depth.push(depth);
    this.end.push(0);
    this.many.push(0);
  }

  /** Merges narrow boxes with narrow neighbours. */
  private pushMany(run: { child: number; count: number; end: number }, above: number, depth: number): void {
    const last = this.nodes.length - 1;
    const gap = this.tree.start[run.child]! - this.end[last]!;
    if (this.many[last]! > 0 && this.depth[last] === depth && gap < this.bounds.least) {
      this.end[last] = run.end;
      this.many[last]! += run.count;
      return;
    }
    this.push(run.child, above, depth);
    if (this.isCut) return;
    this.end[last + 1] = run.end;
    this.many[last + 1] = run.count;
  }

  columns(): BoxColumns {
    const { tree, nodes, many, end } = this;
    const columns = emptyColumns(nodes.length);
    columns.depth.set(this.depth);
    columns.node.set(nodes);
    columns.above.set(this.above);
    for (let box = 0; box < nodes.length; box++) {
      const node = nodes[box]!;
      const begin = tree.start[node]!;
      const isMany = many[box]! > 0;
      columns.x0[box] = begin;
      columns.x1[box] = isMany ? end[box]! : begin + tree.weight[node]!;
      columns.function[box] = isMany ? MANY : node === 0 ? ALL : tree.item[node]!;
      columns.self[box] = isMany ? 0 : tree.self[node]!;
      columns.total[box] = isMany ? end[box]! - begin : tree.total[node]!;
      columns.calls[box] = isMany ? many[box]! : tree.calls[node]!;
      columns.times[box] = tree.times[node]!;
    }
    return columns;
  }
}

function emptyColumns(length: number): BoxColumns {
  return {
    x0: new Float64Array(length),
    x1: new Float64Array(length),
    depth: new Uint32Array(length),
    node: new Uint32Array(length),
    function: new Uint32Array(length),
    self: new Float64Array(length),
    total: new Float64Array(length),
    calls: new Float64Array(length),
    times: new Uint32Array(length),
    above: new Uint32Array(length),
  };
}
