// Where the boxes and arrows of a call graph are.

import { Graph, layout } from "@dagrejs/dagre";
import type { GraphCalls, GraphFunction } from "./graph-cut";

export interface Size {
  width: number;
  height: number;
}

/** The middle of a box, and its size. */
export interface Box extends Size {
  x: number;
  y: number;
}

/** The way of an arrow, x and y in turn, and where its label is if it has one. */
export interface Way {
  points: number[];
  label: Box | null;
}

export interface Layout extends Size {
  boxes: Box[];
  ways: Way[];
}

const MARGIN = 24;
/** How far the arrow of a function that calls itself goes out of its box. */
const LOOP = 34;
/** Arrows end on the flat part of a box. */
const FLAT = 0.42;

/** Callers above what they call. The same graph always looks the same, and a smaller cut of it much like it. */
export function layOut(
  { functions, edges }: { functions: GraphFunction[]; edges: GraphCalls[] },
  boxes: Size[],
  labels: (Size | null)[],
): Layout {
  const graph = new Graph({ directed: true, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 26, ranksep: 40, edgesep: 14, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const loops = new Map<number, Size>();
  for (const [place, { from, to }] of edges.entries()) {
    if (from === to) loops.set(from, labels[place] ?? { width: 0, height: 0 });
  }
  for (const place of depthFirst(functions.length, edges)) {
    const { width, height } = boxes[place]!;
    graph.setNode(String(place), { width: width + loopRoom(loops.get(place)), height });
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
  const laid = boxes.map((size, place): Box => {
    const { x, y } = graph.node(String(place)) as Box;
    return { ...size, x: x - loopRoom(loops.get(place)) / 2, y };
  });
  return {
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    boxes: laid,
    ways: edges.map(({ from, to }, place) => {
      const label = labels[place] ?? null;
      if (from === to) return loopOf(laid[from]!, label);
      return wayOf(graph.edge(String(from), String(to)), laid[from]!, laid[to]!, label);
    }),
  };
}

/** What a loop takes to the right of its box. */
function loopRoom(label: Size | undefined): number {
  return label === undefined ? 0 : LOOP + label.width;
}

function loopOf(box: Box, label: Size | null): Way {
  const right = box.x + box.width / 2;
  const [above, below] = [box.y - box.height / 4, box.y + box.height / 4];
  return {
    points: [right, above, right + LOOP, box.y, right, below],
    label: label && { ...label, x: right + LOOP * 0.8 + label.width / 2, y: box.y },
  };
}

/** From the lower side of the caller to the upper one of what it calls; the other way round if that stands above. */
function wayOf(edge: unknown, from: Box, to: Box, size: Size | null): Way {
  const { points = [], x, y } = edge as { points?: { x: number; y: number }[]; x?: number; y?: number };
  const inner = points.slice(1, -1);
  const down = to.y >= from.y ? 1 : -1;
  const near = (box: Box, toward: number) =>
    Math.min(box.x + box.width * FLAT, Math.max(box.x - box.width * FLAT, toward));
  const first = { x: near(from, inner[0]?.x ?? to.x), y: from.y + (down * from.height) / 2 };
  const last = { x: near(to, inner.at(-1)?.x ?? from.x), y: to.y - (down * to.height) / 2 };
  return {
    points: [first, ...inner, last].flatMap((point) => [point.x, point.y]),
    label: size && x !== undefined && y !== undefined ? { ...size, x, y } : null,
  };
}

/**
 * The places of functions, each behind a caller, the heaviest calls first: dagre begins with boxes in this order, so what is
 * left out by a higher limit takes few others with it.
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
