// Runs of a timing recorder: compilations, queries and so on, as `stackweave phases` shows them.

import { useState } from "preact/hooks";
import type { RunInfo } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { countText, shareText, timeText } from "../../../shared/units";
import { addressed } from "../../address";
import { Choice } from "../../choice";
import { query } from "../../engine";
import { Problem } from "../../problem";
import { chooseRange, head, names, range } from "../../state";
import { useAnswer } from "../../use-answer";
import { FunctionLink } from "./link";

const orderText = addressed("runs.order", "time");
const FEW = 25;
const FEW_PHASES = 12;

export function Runs() {
  const { value: runs, error } = useAnswer("runs", async () => (head().runs === null ? [] : query("runs")));
  const [isAll, setAll] = useState(false);
  if (error) return <Problem what="Runs can't be read" why={error} />;
  if (!runs || runs.length === 0) return null;
  const isLongest = orderText.value === "long";
  const sorted = isLongest ? [...runs].sort((a, b) => b.durationNs - a.durationNs) : runs;
  const failed = runs.filter((run) => run.failed).length;
  const outermost = runs.filter((run) => run.parent === null).reduce((sum, run) => sum + run.durationNs, 0);
  const most = Math.max(...runs.map((run) => run.durationNs));
  return (
    <section class="card runs">
      <div class="card-title">
        <h2>
          Runs{" "}
          <span class="dim">
            {countText(runs.length)}, {timeText(outermost)}
            {failed > 0 && `, ${countText(failed)} failed`}
          </span>
        </h2>
        <Choice
          label="Order of runs"
          value={isLongest ? "long" : "time"}
          options={[
            { value: "time", label: "In order of start" },
            { value: "long", label: "Longest first" },
          ]}
          choose={(next) => {
            orderText.value = next;
          }}
        />
      </div>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                #
              </th>
              <th scope="col">Run</th>
              <th scope="col" class="number began">
                Began
              </th>
              <th scope="col" class="number">
                Took
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, isAll ? sorted.length : FEW).map((run) => (
              <Run key={run.number} run={run} most={most} />
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > FEW && !isAll && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {countText(sorted.length)} runs
        </button>
      )}
    </section>
  );
}

function stateOf(run: RunInfo): string {
  if (run.failed) return "failed";
  if (run.unfinished) return "not finished when the recording ended";
  return run.leftOpen ? "has phases that were never ended" : "";
}

function Run({ run, most }: { run: RunInfo; most: number }) {
  const entries = Object.entries(run.attributes);
  const sentences = entries.filter(([name]) => isSentence(name));
  const others = entries.filter(([name]) => !isSentence(name));
  const state = stateOf(run);
  const thread = run.thread === null ? undefined : head().threads[run.thread];
  return (
    <tr class={run.failed ? "failed" : ""}>
      <td class="number">{run.number}</td>
      <td>
        <FunctionLink of={run.function} />
        {state && <span class="state">{state}</span>}
        {sentences.map(([name, value]) => (
          <p key={name} class="summary">
            <span class="dim">{nameText(name)}:</span> {valueText(value)}
          </p>
        ))}
        {others.length > 0 && <p class="summary dim">{attributesText(others)}</p>}
        {(others.length > 0 || run.phases.length > 0) && (
          <details>
            <summary>{phasesText(run) || "Attributes"}</summary>
            <Phases run={run} />
            <dl class="attributes">
              {run.parent !== null && <Attribute name="part of run" value={run.parent} />}
              {thread && head().threads.length > 1 && (
                <Attribute name="thread" value={`${thread.name} (${thread.tid})`} />
              )}
              {others.map(([name, value]) => (
                <Attribute key={name} name={name} value={value} />
              ))}
            </dl>
          </details>
        )}
      </td>
      <td class="number began">
        <Began run={run} />
      </td>
      <td class="number cost">
        <span class="fill" style={{ width: `${most > 0 ? (100 * run.durationNs) / most : 0}%` }} />
        <span class="amount">{timeText(run.durationNs)}</span>
      </td>
    </tr>
  );
}

/** Shows the start of a run; if there is a timeline, a click selects the time of the run. */
function Began({ run }: { run: RunInfo }) {
  if (head().timeline === null || run.durationNs === 0) return <>{timeText(run.beganNs)}</>;
  const [from, to] = [run.beganNs, run.beganNs + run.durationNs];
  const isChosen = range.value?.[0] === from && range.value[1] === to;
  return (
    <button
      type="button"
      class="quiet"
      aria-pressed={isChosen}
      title={isChosen ? "Select the whole recording" : "Select the time of this run, in all views"}
      onClick={() => chooseRange(isChosen ? null : [from, to])}
    >
      {timeText(run.beganNs)}
    </button>
  );
}

/** Returns whether an attribute is shown as a sentence: the reason of a failure is always visible. */
function isSentence(name: string): boolean {
  return /reason|error/.test(name);
}

function nameText(name: string): string {
  return name.replaceAll("_", " ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join("; ");
  if (typeof value === "number") return Number.isInteger(value) ? countText(value) : String(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns the phases with the highest self time. */
function phasesText({ phases, durationNs }: RunInfo): string {
  const sorted = [...phases].sort((a, b) => b.selfNs - a.selfNs);
  const few = sorted.slice(0, 3).map(({ function: of, selfNs }) => {
    const share = durationNs > 0 ? ` (${shareText(selfNs / durationNs)})` : "";
    return `${functionName(names(), of)} ${timeText(selfNs)}${share}`;
  });
  const more = sorted.length - few.length;
  return [...few, ...(more > 0 ? [`${countText(more)} more`] : [])].join(", ");
}

/** Returns the most important details in one line, without zeros and without those that are shown above. */
function attributesText(attributes: [string, unknown][]): string {
  return attributes
    .filter(([name, value]) => value !== 0 && value !== null && !["function", "file", "line"].includes(name))
    .slice(0, 8)
    .map(([name, value]) => `${nameText(name)} ${shortened(valueText(value))}`)
    .join(", ");
}

function shortened(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 39)}…`;
}

function Attribute({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{nameText(name)}</dt>
      <dd>{valueText(value)}</dd>
    </>
  );
}

function Phases({ run }: { run: RunInfo }) {
  const [isAll, setAll] = useState(false);
  if (run.phases.length === 0) return null;
  const sorted = [...run.phases].sort((a, b) => b.selfNs - a.selfNs);
  const all = Math.max(run.durationNs, 1);
  return (
    <>
      <ol class="top-list">
        {sorted.slice(0, isAll ? sorted.length : FEW_PHASES).map((phase) => (
          <li key={phase.function} title={`${countText(phase.calls)} calls, ${timeText(phase.totalNs)} total`}>
            <span class="fill" style={{ width: `${Math.min(100, (100 * phase.selfNs) / all)}%` }} />
            <FunctionLink of={phase.function} />
            <span class="amount">{timeText(phase.selfNs)}</span>
            <span class="share">{shareText(phase.selfNs / all)}</span>
          </li>
        ))}
      </ol>
      {sorted.length > FEW_PHASES && !isAll && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {countText(sorted.length)} phases
        </button>
      )}
    </>
  );
}
