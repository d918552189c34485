// The callers and callees of a function. A click goes to one of them; "back" returns.

import { useMemo, useState } from "preact/hooks";
import type { NeighbourColumns, Numbers } from "../../../engine/table";
import type { FunctionIndex } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { costText, countedText, countText, shareText } from "../../../shared/units";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { measure, names, select, selection } from "../../state";
import { useAnswer } from "../../use-answer";
import { Chip, callsText } from "./cells";
import { columnsOf, hasCalls, sortedRows } from "./columns";
import { Grid, orderedBy, type SortOrder } from "./grid";

export function Neighbours({ of }: { of: FunctionIndex }) {
  const key = JSON.stringify([selection.value, of]);
  const { value, error } = useAnswer(key, () =>
    query("neighbours", selection.value, of).then((neighbours) => ({ ...neighbours, function: of })),
  );
  if (error) return <Problem what="Callers and callees can't be counted" why={error} />;
  if (!value) return <aside class="neighbours" aria-label="Callers and callees" />;
  if (value.of.calls === 0 && value.of.total === 0) return <Hidden of={value.function} />;
  const text = (cost: number) => costText(measure.value, cost);
  const share = (cost: number) => (value.all > 0 ? ` (${shareText(cost / value.all)})` : "");
  const top = value.outermost;
  const isCalled = top.calls > 0 || top.total !== 0;
  const itself = `${text(value.of.self)}${value.of.total > 0 ? ` (${shareText(value.of.self / value.of.total)})` : ""}`;
  return (
    <aside class="neighbours" aria-label="Callers and callees">
      <Title of={value.function} />
      <p class="sums">
        self {text(value.of.self)}
        {share(value.of.self)}, total {text(value.of.total)}
        {share(value.of.total)}
        {hasCalls(measure.value) && `, ${callsOf(value.of)}`}
      </p>
      <Side
        title="Callers"
        about={isCalled ? `from the top of the stack: ${text(top.total)}` : ""}
        empty="No visible function called it."
        costs={value.callersColumns}
        all={value.of.total}
      />
      <Side
        title="Callees"
        about={`itself: ${itself}`}
        empty="It called no visible function."
        costs={value.calleesColumns}
        all={value.of.total}
      />
    </aside>
  );
}

/** Explains that the selected function is not visible. */
function Hidden({ of }: { of: FunctionIndex }) {
  return (
    <aside class="neighbours" aria-label="Callers and callees">
      <Title of={of} />
      <p class="sums">
        It is not among the functions that are shown. Show more kinds of functions, for example with “Internals”, or
        other threads or another time.
      </p>
    </aside>
  );
}

function Title({ of }: { of: FunctionIndex }) {
  const name = functionName(names(), of);
  return (
    <h2 title={name}>
      <Chip of={of} />
      <bdi>{name}</bdi>
    </h2>
  );
}

function callsOf(numbers: Numbers): string {
  const isTime = measure.value === "time";
  const counted = countedText(measure.value);
  const calls = callsText(numbers.calls, isTime ? numbers.primitiveCalls : numbers.calls);
  return `${calls} ${calls === "1" ? counted.replace(/s$/, "") : counted}`;
}

interface SideProperties {
  title: string;
  about: string;
  empty: string;
  costs: NeighbourColumns;
  /** The whole for bars and shares. */
  all: number;
}

function Side({ title, about, empty, costs, all }: SideProperties) {
  const [order, setOrder] = useState<SortOrder>({ column: "total", isRising: false });
  const found = useFound();
  const rows = useMemo(() => sortedRows(costs, order, () => true), [costs, order]);
  const columns = useMemo(() => columnsOf(costs, all, all), [costs, all, measure.value]);
  const go = (row: number) => select(costs.function[row]!);
  return (
    <section class={`side ${rows.length === 0 ? "empty" : ""}`}>
      <h3>
        {title} <span class="about">{[countText(rows.length), about].filter(Boolean).join(", ")}</span>
      </h3>
      {rows.length === 0 ? (
        <p class="nothing">{empty}</p>
      ) : (
        <Grid
          label={title}
          columns={columns}
          rows={rows}
          order={order}
          sort={(column) => setOrder(orderedBy(order, column))}
          selected={null}
          classOf={(row) => (found?.[costs.function[row]!] === 1 ? "found" : "")}
          choose={go}
          open={go}
        />
      )}
    </section>
  );
}
