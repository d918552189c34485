// The overview of a recording: the first view that people see.

import type { Overview, Top } from "../../../engine/overview";
import { costText, MEASURE_LABELS, shareText } from "../../../shared/units";
import { addressWith } from "../../address";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { useFound } from "../../search-results";
import { head, measure, selection } from "../../state";
import { useAnswer } from "../../use-answer";
import { Divided } from "./division";
import { Facts, MemoryFacts } from "./facts";
import { FunctionLink } from "./link";
import { Runs } from "./runs";
import { Threads } from "./threads";

const TOP = 10;

export function OverviewView() {
  const key = JSON.stringify(selection.value);
  const { value, error, isPending } = useAnswer(key, () => query("overview", selection.value, TOP));
  if (error) return <Problem what="The overview can't be made" why={error} />;
  return (
    <div class="overview" aria-busy={isPending}>
      <Facts functions={value?.functions} />
      <Remarks />
      <MemoryFacts />
      {value && <Costs overview={value} />}
      <Runs />
      <Threads />
      <footer>Written by Stackweave {head().version}. This page is one file, and loads nothing from a network.</footer>
    </div>
  );
}

function Remarks() {
  if (head().remarks.length === 0) return null;
  return (
    <ul class="remarks" aria-label="Remarks">
      {head().remarks.map((remark) => (
        <li key={remark}>{remark}</li>
      ))}
    </ul>
  );
}

function Costs({ overview }: { overview: Overview }) {
  if (head().trees.length === 0)
    return <p class="nothing">The recording has no costs. The timeline shows its events.</p>;
  if (overview.byTotal.length === 0)
    return (
      <p class="nothing">No visible function has a cost. Show more kinds of functions, or select other threads.</p>
    );
  const isTime = measure.value === "time" || measure.value === "samples";
  return (
    <>
      {isTime && <Divided division={overview.division} />}
      <div class="tops">
        <TopList
          title="Highest self cost"
          list={overview.bySelf}
          cost={(top) => top.self}
          all={overview.total}
          order="self"
        />
        <TopList
          title="Highest total cost"
          list={overview.byTotal}
          cost={(top) => top.total}
          all={overview.total}
          order="total"
        />
      </div>
    </>
  );
}

interface TopListProperties {
  title: string;
  list: Top[];
  cost(top: Top): number;
  all: number;
  order: "self" | "total";
}

function TopList({ title, list, cost, all, order }: TopListProperties) {
  const found = useFound();
  return (
    <section class="card">
      <h2>
        {title} <span class="dim">{MEASURE_LABELS[measure.value]}</span>
      </h2>
      <ol class="top-list">
        {list.map((top) => (
          <li key={top.function} class={found?.[top.function] === 1 ? "found" : ""}>
            <span class="fill" style={{ width: `${all > 0 ? Math.min(100, (100 * cost(top)) / all) : 0}%` }} />
            <FunctionLink of={top.function} />
            <span class="amount">{costText(measure.value, cost(top))}</span>
            <span class="share">{all > 0 ? shareText(cost(top) / all) : ""}</span>
          </li>
        ))}
      </ol>
      <a class="more" href={addressWith({ view: "table", "table.order": order })}>
        All functions
      </a>
    </section>
  );
}
