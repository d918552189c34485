// Functions and their costs, callers and callees.

import type { FunctionIndex } from "../shared/format";
import type { Selection } from "../shared/selection";
import type { Context } from "./methods";
import { type EdgeColumns, type StatisticsColumns, statisticsOf } from "./statistics";

export interface Table {
  /** The total cost, and the part of it without a visible frame. */
  total: number;
  withoutFrame: number;
  /** Functions with a cost or with calls. */
  functionsColumns: { function: Uint32Array } & StatisticsColumns;
}

/** The figures of one function, or of one pair of caller and callee. */
export interface Numbers {
  calls: number;
  primitiveCalls: number;
  self: number;
  total: number;
}

/** The callers or callees of a function, each with the callee's cost when the caller called it. */
export type NeighbourColumns = { function: Uint32Array } & StatisticsColumns;

export interface Neighbours {
  /** The total cost. */
  all: number;
  of: Numbers;
  /** The cost without a caller. */
  outermost: Numbers;
  callersColumns: NeighbourColumns;
  calleesColumns: NeighbourColumns;
}

export function tableMethods({ report, trees }: Context) {
  const functions = report.names.functions.name.length;
  return {
    async table(selection: Selection): Promise<Table> {
      const tree = await trees.get(selection);
      const there = new Uint8Array(functions);
      for (let node = 1; node < tree.length; node++) there[tree.item[node]!] = 1;
      const rows = rowsWhere(functions, (of) => there[of] === 1);
      const columns = { function: rows, ...picked(statisticsOf(tree, functions).functions, rows) };
      return { total: tree.total[0]!, withoutFrame: tree.self[0]!, functionsColumns: columns };
    },

    /** Returns the callers and callees of a function. */
    async neighbours(selection: Selection, of: FunctionIndex): Promise<Neighbours> {
      const tree = await trees.get(selection);
      const statistics = statisticsOf(tree, functions);
      const { edges } = statistics;
      return {
        all: tree.total[0]!,
        of: numbersOf(statistics.functions, of),
        outermost: numbersOf(statistics.outermost, of),
        callersColumns: others(edges, edges.callee, edges.caller, of),
        calleesColumns: others(edges, edges.caller, edges.callee, of),
      };
    },
  };
}

function others(edges: EdgeColumns, near: Uint32Array, far: Uint32Array, of: FunctionIndex): NeighbourColumns {
  const rows = rowsWhere(near.length, (edge) => near[edge] === of);
  return { function: Uint32Array.from(rows, (edge) => far[edge]!), ...picked(edges, rows) };
}

function rowsWhere(count: number, is: (row: number) => boolean): Uint32Array {
  const rows: number[] = [];
  for (let row = 0; row < count; row++) if (is(row)) rows.push(row);
  return Uint32Array.from(rows);
}

function picked(from: StatisticsColumns, rows: Uint32Array): StatisticsColumns {
  const pick = (column: Float64Array) => Float64Array.from(rows, (row) => column[row]!);
  return {
    calls: pick(from.calls),
    primitiveCalls: pick(from.primitiveCalls),
    self: pick(from.self),
    total: pick(from.total),
  };
}

function numbersOf(from: StatisticsColumns, row: number): Numbers {
  return {
    calls: from.calls[row] ?? 0,
    primitiveCalls: from.primitiveCalls[row] ?? 0,
    self: from.self[row] ?? 0,
    total: from.total[row] ?? 0,
  };
}
