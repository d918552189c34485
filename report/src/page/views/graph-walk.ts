// Ways through a call graph with keys: up to who calls, down to what is called, sideways to what stands beside.

import type { CallGraph } from "../../engine/graph";

export type Direction = "up" | "down" | "left" | "right";

/** The place of the box that an arrow key leads to. */
export function neighbour(graph: CallGraph, from: number, direction: Direction): number | undefined {
  if (direction === "left" || direction === "right") return beside(graph, from, direction === "left" ? -1 : 1);
  const ends = graph.arrows
    .filter((arrow) => arrow.from !== arrow.to && (direction === "up" ? arrow.to : arrow.from) === from)
    .sort((a, b) => Math.abs(b.total) - Math.abs(a.total));
  const heaviest = ends[0];
  return heaviest && (direction === "up" ? heaviest.from : heaviest.to);
}

function beside(graph: CallGraph, from: number, side: -1 | 1): number | undefined {
  const here = graph.boxes[from]!;
  let best: number | undefined;
  for (const [place, box] of graph.boxes.entries()) {
    const away = (box.x - here.x) * side;
    const isInRow = Math.abs(box.y - here.y) < (box.height + here.height) / 2;
    if (place === from || !isInRow || away <= 0) continue;
    if (best === undefined || away < (graph.boxes[best]!.x - here.x) * side) best = place;
  }
  return best;
}
