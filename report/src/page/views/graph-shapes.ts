// Lines of arrows.

/** A smooth path through points, x and y in turn, that leaves and enters boxes straight down or up. */
export function arrowPath(points: number[]): string {
  let path = `M${near(points[0]!)} ${near(points[1]!)}`;
  for (let at = 2; at < points.length; at += 2) {
    const [fromX, fromY, x, y] = [points[at - 2]!, points[at - 1]!, points[at]!, points[at + 1]!];
    const middle = near((fromY + y) / 2);
    path += ` C${near(fromX)} ${middle} ${near(x)} ${middle} ${near(x)} ${near(y)}`;
  }
  return path;
}

/** The path of what calls itself: out of the right side of a box, and back into it. */
export function loopPath(points: number[]): string {
  const [x, above, out, , , below] = points as [number, number, number, number, number, number];
  return `M${near(x)} ${near(above)} C${near(out)} ${near(above)} ${near(out)} ${near(below)} ${near(x)} ${near(below)}`;
}

/** The head of an arrow at the end of these points, which comes from above (0, 1), below (0, -1) or the right (-1, 0). */
export function arrowHead(points: number[], [alongX, alongY]: [number, number], size: number): string {
  const [x, y] = points.slice(-2) as [number, number];
  const corner = (side: number) =>
    `${near(x - alongX * size + side * alongY * size * 0.45)} ${near(y - alongY * size - side * alongX * size * 0.45)}`;
  return `M${near(x)} ${near(y)} L${corner(1)} L${corner(-1)} Z`;
}

/** The way on which an arrow arrives. */
export function arrival(points: number[], isLoop: boolean): [number, number] {
  if (isLoop) return [-1, 0];
  return points.at(-1)! >= points.at(-3)! ? [0, 1] : [0, -1];
}

/** Points with the last one moved back, so that a thick line does not reach over the head of its arrow. */
export function withoutHead(points: number[], [alongX, alongY]: [number, number], size: number): number[] {
  const [x, y] = points.slice(-2) as [number, number];
  return [...points.slice(0, -2), x - alongX * size, y - alongY * size];
}

function near(value: number): string {
  return value.toFixed(1);
}
