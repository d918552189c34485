// The part of a call graph that is worth a box: a picture of everything shows nothing.

import type { FunctionIndex } from "../../shared/format";
import type { EdgeColumns, Statistics } from "../statistics";

/** A function and its cost. */
export interface GraphFunction {
  of: FunctionIndex;
  calls: number;
  self: number;
  total: number;
}

/** Calls from one function to another, by their indexes in the pruned graph. */
export interface GraphCalls {
  from: number;
  to: number;
  calls: number;
  total: number;
}

export interface PrunedGraph {
  functions: GraphFunction[];
  edges: GraphCalls[];
  /** The cost that is left out because it is too low. */
  functionsLeftOut: number;
  /** Whether more functions have enough cost. */
  isFull: boolean;
  edgesLeftOut: number;
}

export interface PruneOptions {
  /** The minimum total cost of a function. */
  least: number;
  /** The maximum number of functions. */
  most: number;
  /** The functions that are always included. */
  keep: FunctionIndex | null;
}

/** The minimum cost of an edge, as a part of that of a function. */
const EDGE_PART = 0.2;
/** The maximum number of edges besides one path to each function: each edge makes layout slower, and more are not readable. */
const MOST_OTHERS = 120;

/** Returns the functions with the highest cost, and the calls between them. `there` has a 1 for each function to consider. */
export function pruneGraph({ functions, edges }: Statistics, there: Uint32Array, options: PruneOptions): PrunedGraph {
  const { calls, self, total } = functions;
  const weight = (of: number) => (of === options.keep ? Number.POSITIVE_INFINITY : Math.abs(total[of]!));
  const enough = [...there].filter((of) => weight(of) > 0 && weight(of) >= options.least);
  const heavy = enough.sort((a, b) => weight(b) - weight(a) || a - b).slice(0, options.most);
  const place = new Map(heavy.map((of, index) => [of, index]));
  const [kept, edgesLeftOut] = cutEdges(edges, place, options.least * EDGE_PART);
  return {
    functions: heavy.map((of) => ({ of, calls: calls[of]!, self: self[of]!, total: total[of]! })),
    edges: kept,
    functionsLeftOut: there.length - heavy.length,
    isFull: heavy.length < enough.length,
    edgesLeftOut,
  };
}

/** Edges with enough cost, and for each function the heaviest edge to it, so that no box with a visible caller is isolated. */
function cutEdges(edges: EdgeColumns, place: Map<FunctionIndex, number>, least: number): [GraphCalls[], number] {
  const all: GraphCalls[] = [];
  for (let edge = 0; edge < edges.caller.length; edge++) {
    const from = place.get(edges.caller[edge]!);
    const to = place.get(edges.callee[edge]!);
    if (from === undefined || to === undefined) continue;
    all.push({ from, to, calls: edges.calls[edge]!, total: edges.total[edge]! });
  }
  all.sort((a, b) => Math.abs(b.total) - Math.abs(a.total) || a.from - b.from || a.to - b.to);
  const reached = new Set<number>();
  let others = 0;
  const kept = all.filter((edge) => {
    if (edge.from !== edge.to && !reached.has(edge.to)) {
      reached.add(edge.to);
      return true;
    }
    return Math.abs(edge.total) >= least && ++others <= MOST_OTHERS;
  });
  return [kept, all.length - kept.length];
}
