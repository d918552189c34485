// Changes by function: before, after, difference and ratio.

import { useMemo } from "preact/hooks";
import type { DiffTable } from "../../../engine/diff/methods";
import { functionName, placeOf } from "../../../shared/names";
import { addressed } from "../../address";
import { useFound } from "../../search-results";
import { measure, names, search, select, selected, show } from "../../state";
import { FunctionName, Place } from "../table/cells";
import { Grid, type GridColumn, orderedBy, type SortOrder } from "../table/grid";
import { changeClass } from "./flame";
import {
  type Change,
  difference,
  differenceText,
  growthOf,
  isTotal,
  least,
  onlyText,
  shownChange,
  sideText,
  unit,
} from "./state";

const orderText = addressed("diff.order", "change");

function order(): SortOrder {
  const [column, way] = orderText.value.split(" ");
  return { column: column!, isRising: way === "rising" };
}

function sort(column: GridColumn): void {
  const next = orderedBy(order(), column);
  orderText.value = `${next.column}${next.isRising ? " rising" : ""}`;
}

export function DiffFunctions({ table }: { table: DiffTable }) {
  const found = useFound();
  const { function: functions, sides } = table.functionsColumns;
  const changes = useMemo(() => changesOf(table), [table, unit.value, isTotal()]);
  const rows = useMemo(
    () => rowsOf(table, changes, found),
    [table, changes, found, orderText.value, least.value, names()],
  );
  const columns = useMemo(() => columnsOf(table, changes), [table, changes, measure.value, names()]);
  const current = selected.value;
  if (rows.length === 0) return <p class="nothing">{nothing()}</p>;
  return (
    <Grid
      label="Functions that changed"
      columns={columns}
      rows={rows}
      order={order()}
      sort={sort}
      selected={current === null ? null : functions.indexOf(current)}
      classOf={(row) => `${changeClass(difference(changes[row]!))} ${onlyText(sides[row]!)}`}
      choose={(row) => select(functions[row]!)}
      open={(row) => show("table", functions[row]!)}
    />
  );
}

function nothing(): string {
  if (search.value.trim() !== "") return "No function that was found changed by that much.";
  return "No function changed by that much. Choose a smaller change, or show more kinds of functions.";
}

/** Returns the changes by row, as shown. */
function changesOf({ functionsColumns: columns, totals }: DiffTable): Change[] {
  const [before, after] = isTotal()
    ? [columns.beforeTotal, columns.afterTotal]
    : [columns.beforeSelf, columns.afterSelf];
  return Array.from(before, (cost, row) => shownChange({ before: cost, after: after[row]! }, totals));
}

/** Returns the rows with enough change, sorted. */
function rowsOf(table: DiffTable, changes: Change[], found: Uint8Array | null): Uint32Array {
  const whole = shownChange({ before: table.totals[0], after: table.totals[1] }, table.totals);
  const enough = (Number(least.value) / 100) * Math.max(Math.abs(whole.before), Math.abs(whole.after));
  const { function: functions } = table.functionsColumns;
  const rows: number[] = [];
  for (let row = 0; row < changes.length; row++) {
    const by = Math.abs(difference(changes[row]!));
    const isEnough = least.value === "0" || (by !== 0 && by >= enough);
    if (isEnough && (found === null || found[functions[row]!])) rows.push(row);
  }
  const { column, isRising } = order();
  const keys = keysOf(table, changes, column);
  const sign = isRising ? 1 : -1;
  rows.sort((a, b) => {
    const [x, y] = [keys[a]!, keys[b]!];
    return x === y ? a - b : x < y ? -sign : sign;
  });
  return Uint32Array.from(rows);
}

function keysOf({ functionsColumns }: DiffTable, changes: Change[], column: string): (number | string)[] {
  const functions = Array.from(functionsColumns.function);
  if (column === "name") return functions.map((of) => functionName(names(), of).toLowerCase());
  if (column === "place") return functions.map((of) => placeOf(names(), of).toLowerCase());
  if (column === "before") return changes.map((change) => change.before);
  if (column === "after") return changes.map((change) => change.after);
  if (column === "ratio") return changes.map(({ before, after }) => (before === 0 ? Infinity : after / before));
  return changes.map((change) => Math.abs(difference(change)));
}

function columnsOf({ functionsColumns }: DiffTable, changes: Change[]): GridColumn[] {
  const { function: functions, sides } = functionsColumns;
  const side = (row: number, only: "new" | "gone", text: string) => (onlyText(sides[row]!) === only ? "–" : text);
  return [
    {
      name: "name",
      label: "Function",
      title: "Sort by name",
      isText: true,
      cell: (row) => <FunctionName of={functions[row]!} />,
    },
    {
      name: "before",
      label: "Before",
      title: "Sort by the cost before",
      cell: (row) => side(row, "new", sideText(changes[row]!.before)),
    },
    {
      name: "after",
      label: "After",
      title: "Sort by the cost after",
      cell: (row) => side(row, "gone", sideText(changes[row]!.after)),
    },
    {
      name: "change",
      label: "Change",
      title: "Sort by the change, up or down",
      cell: (row) => differenceText(changes[row]!),
    },
    {
      name: "ratio",
      label: "Ratio",
      title: "Sort by the change in percent",
      cell: (row) => growthOf(changes[row]!, sides[row]!),
    },
    {
      name: "place",
      label: "File",
      title: "Sort by file",
      isText: true,
      cell: (row) => <Place of={functions[row]!} />,
    },
  ];
}
