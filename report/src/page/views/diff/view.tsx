// Changes since an earlier recording: as a flame graph, and by function.

import type { Signal } from "@preact/signals";
import type { DiffTable } from "../../../engine/diff/methods";
import { Choice, type Option } from "../../choice";
import { isDark } from "../../colours";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { head, range, selection, threads } from "../../state";
import { useAnswer } from "../../use-answer";
import { changeClass, DiffFlame } from "./flame";
import { changeColour, cost, difference, differenceText, growthOf, least, shown, sideText, unit, width } from "./state";
import { DiffFunctions } from "./table";

export function DiffView() {
  const key = JSON.stringify(selection.value);
  const { value, error } = useAnswer(key, () => query("diffTable", selection.value));
  if (error) return <Problem what="The recordings can't be compared" why={error} />;
  if (!value) return <p role="status">Comparing…</p>;
  return (
    <div class="with-bar diff">
      <div class="bar">
        <Bar />
      </div>
      <Summary table={value} />
      <div class={`rest diff-${shown.value}`}>
        {shown.value !== "table" && (
          <section class="diff-graph" aria-label="By path">
            <DiffFlame />
          </section>
        )}
        {shown.value !== "graph" && (
          <section class="diff-functions" aria-label="By function">
            <DiffFunctions table={value} />
          </section>
        )}
      </div>
    </div>
  );
}

function Chosen({ label, of, options }: { label: string; of: Signal<string>; options: Option<string>[] }) {
  const choose = (chosen: string) => {
    of.value = chosen;
  };
  return <Choice label={label} value={of.value} options={options} choose={choose} />;
}

function Bar() {
  return (
    <>
      <Chosen
        label="Compare"
        of={unit}
        options={[
          { value: "costs", label: "Absolute", title: "Compare absolute costs" },
          { value: "shares", label: "Shares", title: "Compare shares of each total: for runs of different length" },
        ]}
      />
      <Chosen
        label="Cost"
        of={cost}
        options={[
          { value: "self", label: "Self", title: "The cost of functions without their callees" },
          { value: "total", label: "Total", title: "The cost with callees" },
        ]}
      />
      <Chosen
        label="Width of boxes"
        of={width}
        options={[
          { value: "after", label: "Widths after", title: "Widths are the costs after the change" },
          {
            value: "before",
            label: "Widths before",
            title: "Widths are the costs before: also shows what has disappeared",
          },
        ]}
      />
      <Chosen
        label="Order"
        of={shown}
        options={[
          { value: "both", label: "Both" },
          { value: "graph", label: "Graph" },
          { value: "table", label: "Table" },
        ]}
      />
      <select
        aria-label="Minimum change of a row"
        title="Minimum change of a row, as a share of the greater total"
        value={least.value}
        onChange={(event) => {
          least.value = event.currentTarget.value;
        }}
      >
        <option value="0">All functions</option>
        <option value="0.1">Changed by 0.1% or more</option>
        <option value="1">Changed by 1% or more</option>
        <option value="5">Changed by 5% or more</option>
      </select>
      <Legend />
    </>
  );
}

function Legend() {
  const parts = [-1, -0.4, -0.08, 0, 0.08, 0.4, 1];
  return (
    <span class="diff-legend">
      less
      {parts.map((part) => (
        <span key={part} class="swatch" style={{ background: changeColour(part, isDark()) }} />
      ))}
      more
    </span>
  );
}

/** Shows the totals of both recordings. */
function Summary({ table }: { table: DiffTable }) {
  const [before, after] = table.totals;
  const all = { before, after };
  const isPart = threads.value !== null || range.value !== null;
  const isShares = unit.value === "shares";
  return (
    <p class="diff-summary" role="status">
      Before: <strong>{head().before?.title}</strong>. {isShares ? "Shares of each total are compared." : ""}
      {!isShares && (
        <>
          In total {sideText(before)} before, {sideText(after)} after:{" "}
          <span class={`by ${changeClass(difference(all))}`}>
            {differenceText(all)} {growthOf(all, 3)}
          </span>
          .
        </>
      )}
      {isPart && " All threads and the whole recordings are compared: threads and times do not correspond."}
    </p>
  );
}
