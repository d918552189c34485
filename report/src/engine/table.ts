// Functions and what they cost.

import type { Selection } from "../shared/selection";
import type { Context } from "./methods";
import { type StatisticsColumns, statisticsOf } from "./statistics";

export interface Table {
  /** What all of it cost, and what of it no frame has that is seen. */
  total: number;
  withoutFrame: number;
  /** Functions that cost something or were called. */
  functionsColumns: { function: Uint32Array } & StatisticsColumns;
}

export function tableMethods({ report, trees }: Context) {
  return {
    async table(selection: Selection): Promise<Table> {
      const tree = await trees.get(selection);
      const all = statisticsOf(tree, report.names.functions.name.length);
      const there = new Set(tree.item.subarray(1));
      const rows = Uint32Array.from([...there].sort((a, b) => a - b));
      const pick = (column: Float64Array) => Float64Array.from(rows, (of) => column[of]!);
      return {
        total: tree.total[0]!,
        withoutFrame: tree.own[0]!,
        functionsColumns: {
          function: rows,
          calls: pick(all.calls),
          primitiveCalls: pick(all.primitiveCalls),
          own: pick(all.own),
          total: pick(all.total),
        },
      };
    },
  };
}
