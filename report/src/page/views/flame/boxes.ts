// Finds boxes in a layout: under the pointer, beside each other, on the path to the root.

import { ALL, type FlameLayout, MANY } from "../../../engine/flame/layout";

export type Direction = "caller" | "callee" | "left" | "right";

export const ROW = 20;

/** Returns the box at a position of a row. */
export function boxAt(layout: FlameLayout, x: number, row: number, slack: number): number | null {
  const { x0, x1, depth } = layout.boxesColumns;
  let [from, to] = rowOf(layout, row);
  while (from < to) {
    const middle = (from + to) >> 1;
    if (x1[middle]! + slack < x) from = middle + 1;
    else to = middle;
  }
  const isHit = from < x0.length && depth[from] === row && x0[from]! - slack <= x;
  return isHit ? from : null;
}

/** Returns the boxes of a row: from the first number up to the second. */
export function rowOf({ boxesColumns: { depth } }: FlameLayout, row: number): [number, number] {
  return [firstOf(depth, row), firstOf(depth, row + 1)];
}

function firstOf(depth: Uint32Array, row: number): number {
  let from = 0;
  let to = depth.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (depth[middle]! < row) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Returns the functions from the root to a box, for the address. Merged boxes have the path of their parent. */
export function pathTo({ boxesColumns: { above, function: functions } }: FlameLayout, box: number): number[] {
  const path: number[] = [];
  for (let at = box; at !== above[at]; at = above[at]!) if (functions[at] !== MANY) path.push(functions[at]!);
  return path.reverse();
}

/** Returns all boxes from the root to a box. */
export function wayTo({ boxesColumns: { above } }: FlameLayout, box: number): number[] {
  const way = [box];
  for (let at = box; at !== above[at]; at = above[at]!) way.push(above[at]!);
  return way.reverse();
}

/** Returns the neighbour of a box in the direction of a key. Of its callees: the widest. */
export function neighbour(layout: FlameLayout, box: number, direction: Direction): number {
  const { above, depth, x0, x1 } = layout.boxesColumns;
  if (direction === "caller") return above[box]!;
  if (direction === "left") return box > 0 && depth[box - 1] === depth[box] ? box - 1 : box;
  if (direction === "right") return depth[box + 1] === depth[box] ? box + 1 : box;
  const [from, to] = rowOf(layout, depth[box]! + 1);
  let widest = box;
  let width = 0;
  for (let at = from; at < to; at++) {
    if (above[at] === box && x1[at]! - x0[at]! > width) {
      widest = at;
      width = x1[at]! - x0[at]!;
    }
  }
  return widest;
}

/** Returns whether a box stands for a function. */
export function isFunction(of: number): boolean {
  return of !== ALL && of !== MANY;
}
