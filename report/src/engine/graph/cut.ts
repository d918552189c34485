// What of a call graph is worth a box: a picture of everything shows nothing.

import type { FunctionIndex } from "../../shared/format";
import type { EdgeColumns, Statistics } from "../statistics";

/** A function and what it cost. */
export interface GraphFunction {
  of: FunctionIndex;
  calls: number;
  self: number;
  total: number;
}

/** Calls from one function to another; both by their place in the cut. */
export interface GraphCalls {
  from: number;
  to: number;
  calls: number;
  total: number;
}

export interface CutGraph {
  functions: GraphFunction[];
  edges: GraphCalls[];
  /** What is not in the picture because it cost less. */
  functionsLeftOut: number;
  /** Whether there are more that cost enough. */
  isFull: boolean;
  edgesLeftOut: number;
}

export interface CutOptions {
  /** What a function has to cost with all that it calls. */
  least: number;
  /** How many functions there may be. */
  most: number;
  /** What stays, however little it cost. */
  keep: FunctionIndex | null;
}

/** An edge may cost so much less than a function. */
const EDGE_PART = 0.2;
/** So many edges besides the ways to each function: layout takes longer with each, and more are not readable. */
const MOST_OTHERS = 120;

/** Of the functions that are `there`, those that cost most, and the calls between them. */
export function cutGraph({ functions, edges }: Statistics, there: Uint32Array, options: CutOptions): CutGraph {
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

/** Edges that cost enough, and of each function the heaviest one to it: no box stands alone that has a caller in the picture. */
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
