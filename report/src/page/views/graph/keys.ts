// Moves through a call graph with keys: to callers, to callees, and to neighbours.

import type { CallGraph } from "../../../engine/graph/methods";

export type Step = "caller" | "callee" | "before" | "after";

const STEPS: Record<CallGraph["direction"], Record<string, Step>> = {
  down: { ArrowUp: "caller", ArrowDown: "callee", ArrowLeft: "before", ArrowRight: "after" },
  right: { ArrowLeft: "caller", ArrowRight: "callee", ArrowUp: "before", ArrowDown: "after" },
};

/** Returns the meaning of a key, in a graph that goes down or to the right. */
export function stepOf(graph: CallGraph, key: string): Step | undefined {
  return STEPS[graph.direction][key];
}

/** Returns the index of the box that a step leads to. */
export function neighbour(graph: CallGraph, from: number, step: Step): number | undefined {
  if (step === "before" || step === "after") return beside(graph, from, step === "before" ? -1 : 1);
  const ends = graph.arrows
    .filter((arrow) => arrow.from !== arrow.to && (step === "caller" ? arrow.to : arrow.from) === from)
    .sort((a, b) => Math.abs(b.total) - Math.abs(a.total));
  const heaviest = ends[0];
  return heaviest && (step === "caller" ? heaviest.from : heaviest.to);
}

/** Returns the next box in the same row, or in the same column if the graph goes to the right. */
function beside(graph: CallGraph, from: number, side: -1 | 1): number | undefined {
  const isDown = graph.direction === "down";
  const along = (box: { x: number; y: number }) => (isDown ? box.x : box.y) * side;
  const here = graph.boxes[from]!;
  let best: number | undefined;
  for (const [place, box] of graph.boxes.entries()) {
    const isInRow = isDown
      ? Math.abs(box.y - here.y) < (box.height + here.height) / 2
      : Math.abs(box.x - here.x) < (box.width + here.width) / 2;
    if (place === from || !isInRow || along(box) <= along(here)) continue;
    if (best === undefined || along(box) < along(graph.boxes[best]!)) best = place;
  }
  return best;
}
