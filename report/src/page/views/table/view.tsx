// Functions and their costs, and the callers and callees of the selected one.

import { useMemo } from "preact/hooks";
import type { Table } from "../../../engine/table";
import { costText, countText, shareText } from "../../../shared/units";
import { addressed } from "../../address";
import { Choice } from "../../choice";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { measure, names, search, select, selected, selection } from "../../state";
import { useAnswer } from "../../use-answer";
import { columnsOf, placeColumn, sortedRows } from "./columns";
import { CopyButton, tableText } from "./copy";
import { Grid, type GridColumn, orderedBy, type SortOrder } from "./grid";
import { Neighbours } from "./neighbours";

const orderText = addressed("table.order", "self");
const foundText = addressed("table.found", "only");
const panelText = addressed("table.panel", "open");

function orderOf(text: string): SortOrder {
  const [column, way] = text.split(" ");
  return { column: column!, isRising: way === "rising" };
}

function sort(column: GridColumn): void {
  const order = orderedBy(orderOf(orderText.value), column);
  orderText.value = `${order.column}${order.isRising ? " rising" : ""}`;
}

export function TableView() {
  const key = JSON.stringify(selection.value);
  const { value, error, isPending } = useAnswer(key, () => query("table", selection.value));
  if (error) return <Problem what="The table can't be made" why={error} />;
  if (!value) return <p role="status">Counting…</p>;
  return <Functions table={value} isPending={isPending} />;
}

function Functions({ table, isPending }: { table: Table; isPending: boolean }) {
  const costs = table.functionsColumns;
  const found = useFound();
  const order = orderOf(orderText.value);
  const isOnly = foundText.value === "only";
  const filtering = isOnly ? found : null;
  const rows = useMemo(
    () => sortedRows(costs, order, (of) => filtering === null || filtering[of] === 1),
    [table, orderText.value, filtering],
  );
  const columns = useMemo(
    () => [...columnsOf(costs, table.total, table.total), placeColumn(costs)],
    [table, measure.value, names()],
  );
  const current = selected.value;
  const selectedRow = current === null ? -1 : costs.function.indexOf(current);
  const isPanelShown = panelText.value === "open" && current !== null;
  const open = (row: number) => {
    panelText.value = "open";
    select(costs.function[row]!);
    requestAnimationFrame(() => document.querySelector<HTMLElement>(".neighbours table")?.focus());
  };
  return (
    <div class="with-bar functions">
      <div class="bar">
        <Totals table={table} found={found} />
        {found && (
          <Choice
            label="Rows"
            value={isOnly ? "only" : "mark"}
            options={[
              { value: "only", label: "Found rows" },
              { value: "mark", label: "All rows", title: "Highlight the found rows" },
            ]}
            choose={(next) => {
              foundText.value = next;
            }}
          />
        )}
        <button
          type="button"
          aria-pressed={panelText.value === "open"}
          title="Show callers and callees of the selected function"
          onClick={() => {
            panelText.value = panelText.value === "open" ? "closed" : "open";
          }}
        >
          Callers and callees
        </button>
        <CopyButton text={() => tableText(costs, rows)} />
      </div>
      <div class={`rest split ${isPanelShown ? "with-panel" : ""}`} aria-busy={isPending}>
        {rows.length === 0 ? (
          <Nothing isSearch={filtering !== null} />
        ) : (
          <Grid
            label="Functions"
            columns={columns}
            rows={rows}
            order={order}
            sort={sort}
            selected={selectedRow < 0 ? null : selectedRow}
            classOf={(row) => (!isOnly && found?.[costs.function[row]!] === 1 ? "found" : "")}
            choose={(row) => select(costs.function[row]!)}
            open={open}
          />
        )}
        {isPanelShown && <Neighbours of={current} />}
      </div>
    </div>
  );
}

function Nothing({ isSearch }: { isSearch: boolean }) {
  return (
    <p class="nothing">
      {isSearch
        ? "No function has all of these words in its name, file or module. Search for less, or show more kinds of functions."
        : "No visible function has a cost. Show more kinds of functions, or select other threads or another time."}
    </p>
  );
}

/** Shows the number of functions, all or found, and their cost. */
function Totals({ table, found }: { table: Table; found: Uint8Array | null }) {
  const functions = table.functionsColumns.function;
  const text = (cost: number) => costText(measure.value, cost);
  const share = (cost: number) => (table.total > 0 ? ` (${shareText(cost / table.total)})` : "");
  const searched = found ? search.value.trim() : "";
  const { value: cost } = useAnswer(JSON.stringify([selection.value, searched]), async () =>
    searched === "" ? null : query("foundCost", selection.value, searched),
  );
  if (!found) {
    const hidden = table.withoutFrame > 0 ? `, ${text(table.withoutFrame)} of it outside visible functions` : "";
    return (
      <output class="summary">
        {countText(functions.length)} functions, {text(table.total)}
        {hidden}
      </output>
    );
  }
  const count = functions.reduce((sum, of) => sum + found[of]!, 0);
  return (
    <output class="summary" aria-live="polite">
      {countText(count)} of {countText(functions.length)} functions found
      {cost && `: self ${text(cost.self)}${share(cost.self)}, total ${text(cost.total)}${share(cost.total)}`}
    </output>
  );
}
