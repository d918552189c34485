// The columns of the tables of functions, and sorting by them.

import type { FunctionIndex, MeasureName } from "../../../shared/format";
import type { Names } from "../../../shared/names";
import { costText, countedText } from "../../../shared/units";
import { measure, names } from "../../state";
import { Cost, callsText, FunctionName, Place } from "./cells";
import type { GridColumn, SortOrder } from "./grid";

/** Functions with their costs, by row. */
export interface Costs {
  function: Uint32Array;
  calls: Float64Array;
  primitiveCalls: Float64Array;
  self: Float64Array;
  total: Float64Array;
}

/** Returns the total per call; for memory, the size of a block. `undefined` if that has no meaning. */
export function perCall(of: MeasureName, costs: Costs, row: number): number | undefined {
  const [cost, calls] =
    of === "time" ? [costs.total[row]!, costs.primitiveCalls[row]!] : [costs.self[row]!, costs.calls[row]!];
  return calls > 0 ? cost / calls : undefined;
}

/** Returns whether calls matter more than costs. */
export function hasCalls(of: MeasureName): boolean {
  return of !== "samples" && of !== "allocations";
}

function titleCase(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Returns the columns. Bars and shares of self and total costs refer to `ownAll` and `totalAll`. */
export function columnsOf(costs: Costs, selfAll: number, totalAll: number): GridColumn[] {
  const { function: functions, calls, primitiveCalls, self, total } = costs;
  const of = measure.value;
  const counted = countedText(of);
  const columns: GridColumn[] = [
    {
      name: "self",
      label: "Self",
      title: "Cost of the function without its callees",
      cell: (row) => <Cost cost={self[row]!} all={selfAll} />,
    },
    {
      name: "total",
      label: "Total",
      title: "Cost with callees; recursive calls are not counted twice",
      cell: (row) => <Cost cost={total[row]!} all={totalAll} />,
    },
  ];
  if (hasCalls(of)) {
    const unit = of === "time" ? "call" : "block";
    columns.push(
      {
        name: "calls",
        label: titleCase(counted),
        title: of === "time" ? "Calls; 10/2: two of the ten calls were not recursive" : `Number of ${counted}`,
        cell: (row) => callsText(calls[row]!, of === "time" ? primitiveCalls[row]! : calls[row]!),
      },
      {
        name: "per-call",
        label: `Per ${unit}`,
        title: of === "time" ? "Total for each call that was not recursive" : "Self for each block",
        cell: (row) => {
          const cost = perCall(of, costs, row);
          return cost === undefined ? "" : costText(of, cost);
        },
      },
    );
  }
  columns.push({
    name: "name",
    label: "Function",
    title: "The function's name",
    isText: true,
    cell: (row) => <FunctionName of={functions[row]!} />,
  });
  return columns;
}

export const placeColumn = (costs: Costs): GridColumn => ({
  name: "place",
  label: "Location",
  title: "File and line, or the module of native code",
  isText: true,
  cell: (row) => <Place of={costs.function[row]!} />,
});

/** Returns the rows for which `takes` is true, sorted. Equal rows are in the order of their total, then of the function. */
export function sortedRows(costs: Costs, order: SortOrder, takes: (of: FunctionIndex) => boolean): Uint32Array {
  const { function: functions, total } = costs;
  const rows: number[] = [];
  for (let row = 0; row < functions.length; row++) if (takes(functions[row]!)) rows.push(row);
  const sign = order.isRising ? 1 : -1;
  const keys = sortKeys(costs, order.column);
  rows.sort((a, b) => sign * (keys[a]! - keys[b]!) || total[b]! - total[a]! || a - b);
  return Uint32Array.from(rows);
}

function sortKeys(costs: Costs, column: string): Float64Array {
  const { functions } = names();
  if (column === "name") {
    const ranks = textRanks(names());
    return Float64Array.from(costs.function, (of) => ranks[functions.name[of]!]!);
  }
  if (column === "place") {
    const ranks = textRanks(names());
    const rank = (of: FunctionIndex) => ranks[(functions.file[of]! || functions.module[of]!) - 1] ?? -1;
    return Float64Array.from(costs.function, (of) => rank(of) * 2 ** 24 + functions.line[of]!);
  }
  if (column === "calls") return costs.calls;
  if (column === "per-call") return costs.self.map((_, row) => perCall(measure.value, costs, row) ?? -1);
  return column === "total" ? costs.total : costs.self;
}

const ranksOf = new WeakMap<Names, Uint32Array>();

/** Returns the rank of each text, so that rows are sorted by comparing numbers. */
function textRanks(known: Names): Uint32Array {
  let ranks = ranksOf.get(known);
  if (!ranks) {
    const lowered = known.strings.map((text) => text.toLowerCase());
    const order = Array.from(lowered.keys()).sort((a, b) => {
      const [x, y] = [lowered[a]!, lowered[b]!];
      return x < y ? -1 : x > y ? 1 : a - b;
    });
    ranks = new Uint32Array(order.length);
    for (const [rank, text] of order.entries()) ranks[text] = rank;
    ranksOf.set(known, ranks);
  }
  return ranks;
}
