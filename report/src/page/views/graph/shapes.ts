// The shapes of arrows.

import type { GraphDirection } from "../../../engine/graph/layout";

/** Returns a smooth path through points, x and y in turn, that leaves and enters boxes in the direction of the graph. */
export function arrowPath(points: number[], direction: GraphDirection): string {
  let path = `M${near(points[0]!)} ${near(points[1]!)}`;
  for (let at = 2; at < points.length; at += 2) {
    const [fromX, fromY, x, y] = [points[at - 2]!, points[at - 1]!, points[at]!, points[at + 1]!];
    const [middleX, middleY] = [(fromX + x) / 2, (fromY + y) / 2];
    const bends = direction === "down" ? [fromX, middleY, x, middleY] : [middleX, fromY, middleX, y];
    path += ` C${[...bends, x, y].map(near).join(" ")}`;
  }
  return path;
}

/** Returns the path of a recursive call: out of the right or the lower side of a box, and back into it. */
export function loopPath(points: number[]): string {
  const [x, y, outX, outY, endX, endY] = points as [number, number, number, number, number, number];
  const bends = isBeside(points) ? [outX, y, outX, endY] : [x, outY, endX, outY];
  return `M${near(x)} ${near(y)} C${[...bends, endX, endY].map(near).join(" ")}`;
}

/** Returns whether a loop leaves on the right side of its box. One below the box extends further down than it begins. */
function isBeside(points: number[]): boolean {
  return points[2]! > Math.max(points[0]!, points[4]!);
}

/** Returns the head of an arrow at the last of these points, which arrives downwards (0, 1), to the left (-1, 0), and so on. */
export function arrowHead(points: number[], [alongX, alongY]: [number, number], size: number): string {
  const [x, y] = points.slice(-2) as [number, number];
  const corner = (side: number) =>
    `${near(x - alongX * size + side * alongY * size * 0.45)} ${near(y - alongY * size - side * alongX * size * 0.45)}`;
  return `M${near(x)} ${near(y)} L${corner(1)} L${corner(-1)} Z`;
}

/** Returns the direction in which an arrow arrives. */
export function arrival(points: number[], kind: GraphDirection | "loop"): [number, number] {
  if (kind === "loop") return isBeside(points) ? [-1, 0] : [0, -1];
  if (kind === "right") return points.at(-2)! >= points.at(-4)! ? [1, 0] : [-1, 0];
  return points.at(-1)! >= points.at(-3)! ? [0, 1] : [0, -1];
}

/** Returns the points with the last one moved back, so that a thick line does not cover the head of its arrow. */
export function withoutHead(points: number[], [alongX, alongY]: [number, number], size: number): number[] {
  const [x, y] = points.slice(-2) as [number, number];
  return [...points.slice(0, -2), x - alongX * size, y - alongY * size];
}

function near(value: number): string {
  return value.toFixed(1);
}
