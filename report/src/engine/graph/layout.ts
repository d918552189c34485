// The positions of the boxes and arrows of a call graph.

import { Graph, layout } from "@dagrejs/dagre";
import type { GraphCalls, GraphFunction } from "./prune";

export interface Size {
  width: number;
  height: number;
}

/** The centre of a box, and its size. */
export interface PlacedBox extends Size {
  x: number;
  y: number;
}

/** The points of an arrow, x and y in turn, and the position of its label, if it has one. */
export interface Way {
  points: number[];
  label: PlacedBox | null;
}

/** The direction from callers to callees. */
export type GraphDirection = "down" | "right";

export interface GraphLayout extends Size {
  boxes: PlacedBox[];
  ways: Way[];
}

const MARGIN = 24;
/** The distance that the arrow of a recursive function extends beyond its box. */
const LOOP = 34;
/** Arrows end on the flat part of a box's edge. */
const FLAT = 0.42;
const SPACES = {
  down: { rankdir: "TB", nodesep: 26, ranksep: 40, edgesep: 14 },
  right: { rankdir: "LR", nodesep: 14, ranksep: 44, edgesep: 10 },
} as const;

/** Lays out callers above or left of their callees. Equal graphs get equal layouts, and a smaller cut a similar one. */
export function layOut(
  { functions, edges }: { functions: GraphFunction[]; edges: GraphCalls[] },
  boxes: Size[],
  labels: (Size | null)[],
  direction: GraphDirection,
): GraphLayout {
  const graph = new Graph({ directed: true, multigraph: false });
  graph.setGraph({ ...SPACES[direction], marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const loops = new Map<number, Size>();
  for (const [place, { from, to }] of edges.entries()) {
    if (from === to) loops.set(from, labels[place] ?? { width: 0, height: 0 });
  }
  for (const place of depthFirst(functions.length, edges)) {
    const { width, height } = boxes[place]!;
    const room = loopRoom(loops.get(place), direction);
    graph.setNode(String(place), { width: width + room.width, height: height + room.height });
  }
  const heaviest = Math.max(1, ...edges.map((edge) => Math.abs(edge.total)));
  for (const [place, edge] of edges.entries()) {
    if (edge.from === edge.to) continue;
    graph.setEdge(String(edge.from), String(edge.to), {
      weight: 1 + Math.round((8 * Math.abs(edge.total)) / heaviest),
      minlen: 1,
      labelpos: "c",
      width: labels[place]?.width ?? 0,
      height: labels[place]?.height ?? 0,
    });
  }
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as Partial<Size>;
  const laid = boxes.map((size, place): PlacedBox => {
    const { x, y } = graph.node(String(place)) as PlacedBox;
    const room = loopRoom(loops.get(place), direction);
    return { ...size, x: x - room.width / 2, y: y - room.height / 2 };
  });
  return {
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    boxes: laid,
    ways: edges.map(({ from, to }, place) => {
      const label = labels[place] ?? null;
      const ends = [laid[from]!, laid[to]!] as const;
      if (from === to) return direction === "down" ? loopBeside(ends[0], label) : loopBelow(ends[0], label);
      return wayOf(graph.edge(String(from), String(to)) as DagreEdge, ends, label, direction);
    }),
  };
}

/** Returns the space that a loop needs beside or below its box, away from other arrows. */
function loopRoom(label: Size | undefined, direction: GraphDirection): Size {
  if (label === undefined) return { width: 0, height: 0 };
  return direction === "down" ? { width: LOOP + label.width, height: 0 } : { width: 0, height: LOOP + label.height };
}

function loopBeside(box: PlacedBox, label: Size | null): Way {
  const right = box.x + box.width / 2;
  const [above, below] = [box.y - box.height / 4, box.y + box.height / 4];
  return {
    points: [right, above, right + LOOP, box.y, right, below],
    label: label && { ...label, x: right + LOOP * 0.8 + label.width / 2, y: box.y },
  };
}

function loopBelow(box: PlacedBox, label: Size | null): Way {
  const bottom = box.y + box.height / 2;
  const [left, right] = [box.x - box.width / 5, box.x + box.width / 5];
  return {
    points: [left, bottom, box.x, bottom + LOOP, right, bottom],
    label: label && { ...label, x: box.x, y: bottom + LOOP * 0.8 + label.height / 2 },
  };
}

interface Point {
  x: number;
  y: number;
}

interface DagreEdge extends Partial<Point> {
  points?: Point[];
}

/** Returns the points from the far side of the caller to the near side of the callee; reversed if the callee comes first. */
function wayOf(
  edge: DagreEdge,
  [from, to]: readonly [PlacedBox, PlacedBox],
  size: Size | null,
  direction: GraphDirection,
): Way {
  const { points = [], x, y } = edge;
  const inner = points.slice(1, -1);
  const near = (middle: number, length: number, toward: number) =>
    Math.min(middle + length * FLAT, Math.max(middle - length * FLAT, toward));
  const end = (box: PlacedBox, toward: Point, side: number): Point =>
    direction === "down"
      ? { x: near(box.x, box.width, toward.x), y: box.y + (side * box.height) / 2 }
      : { x: box.x + (side * box.width) / 2, y: near(box.y, box.height, toward.y) };
  const forward = (direction === "down" ? to.y >= from.y : to.x >= from.x) ? 1 : -1;
  const way = [end(from, inner[0] ?? to, forward), ...inner, end(to, inner.at(-1) ?? from, -forward)];
  return {
    points: way.flatMap((point) => [point.x, point.y]),
    label: size && x !== undefined && y !== undefined ? { ...size, x, y } : null,
  };
}

/**
 * Orders functions, each after a caller, the heaviest calls first. dagre starts with boxes in this order, so a higher limit
 * changes little in the rest of the layout.
 */
function depthFirst(functions: number, edges: GraphCalls[]): number[] {
  const callees: number[][] = Array.from({ length: functions }, () => []);
  const isCalled = new Uint8Array(functions);
  for (const { from, to } of edges) {
    if (from === to) continue;
    callees[from]!.push(to);
    isCalled[to] = 1;
  }
  const order: number[] = [];
  const isThere = new Uint8Array(functions);
  const visit = (first: number) => {
    const stack = [first];
    while (stack.length > 0) {
      const place = stack.pop()!;
      if (isThere[place]) continue;
      isThere[place] = 1;
      order.push(place);
      stack.push(...callees[place]!.slice().reverse());
    }
  };
  for (let place = 0; place < functions; place++) if (!isCalled[place]) visit(place);
  for (let place = 0; place < functions; place++) visit(place);
  return order;
}
