// The text of a file, with the costs of its lines.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LineCalls } from "../../../engine/call-lines";
import type { FunctionCost, SourceText } from "../../../engine/source";
import type { FunctionIndex, StringIndex } from "../../../shared/format";
import { functionName } from "../../../shared/names";
import { costText, shareText } from "../../../shared/units";
import { measure, names, select, selected } from "../../state";
import { bringRowIntoView, useVisibleRows } from "../../visible-rows";
import { Chip, PathText } from "../table/cells";
import { hotLines, onHotKey } from "./hot";
import { type LineCost, LineRow } from "./line";
import { opensOf } from "./python";

const ROW = 20;
const HEADER = 26;

interface Properties {
  source: SourceText;
  file: StringIndex;
  isPending: boolean;
}

export function FileText({ source, file, isPending }: Properties) {
  const path = names().strings[file] ?? "";
  return (
    <section class="file" aria-label={path} aria-busy={isPending}>
      {source.text === null ? <WithoutText source={source} path={path} /> : <Lines source={source} path={path} />}
    </section>
  );
}

/** Costs by line. */
function costsOf(source: SourceText): Map<number, LineCost> {
  const { line, self, total, isWhole } = source.linesColumns;
  return new Map(
    Array.from(line, (at, row) => [at, { self: self[row]!, total: total[row]!, isWhole: isWhole[row] === 1 }]),
  );
}

/** Lines as Python counts them. */
function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.length > 1 && lines[lines.length - 1] === "") lines.pop();
  return lines;
}

function functionsByLine(functions: FunctionCost[]): Map<number, FunctionCost[]> {
  const byLine = new Map<number, FunctionCost[]>();
  for (const cost of functions) byLine.set(cost.line, [...(byLine.get(cost.line) ?? []), cost]);
  return byLine;
}

/** Returns the calls by line; `null` if they are unknown. */
function callsByLine({ totals, calls }: SourceText): Map<number, LineCalls> | null {
  return totals === "calls" ? new Map(calls.map((of) => [of.line, of])) : null;
}

function Lines({ source, path }: { source: SourceText; path: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(0);
  const lines = useMemo(() => linesOf(source.text!), [source.text]);
  const opens = useMemo(() => (/\.pyi?$/.test(path) ? opensOf(lines) : null), [lines]);
  const longest = useMemo(() => lines.reduce((most, line) => Math.max(most, line.length), 0), [lines]);
  const costs = useMemo(() => costsOf(source), [source]);
  const hot = useMemo(() => hotLines(source.linesColumns, source.totals === "calls"), [source]);
  const functions = useMemo(() => functionsByLine(source.functions), [source]);
  const calls = useMemo(() => callsByLine(source), [source]);
  const { from, to } = useVisibleRows(scroller, lines.length, ROW);
  const of = selected.value;
  const ofLine = of === null ? 0 : names().functions.line[of]!;

  const goTo = (line: number) => {
    setCursor(line);
    bringRowIntoView(scroller.current!, line - 1, ROW, HEADER);
  };
  useEffect(() => {
    const first = ofLine > 0 ? ofLine : (hot.byCost[0] ?? 0);
    if (first > 0) goTo(first);
  }, [of, source.text]);
  const goAlong = (step: 1 | -1) => {
    const next = hot.from(cursor, step);
    if (next !== undefined) goTo(next);
  };
  useEffect(() => onHotKey(goAlong));

  return (
    <>
      <div class="bar">
        <PathText path={path} />
        <button
          type="button"
          disabled={hot.byLine.length === 0}
          title="Previous hot line (p)"
          onClick={() => goAlong(-1)}
        >
          ↑ Hot
        </button>
        <button type="button" disabled={hot.byLine.length === 0} title="Next hot line (n)" onClick={() => goAlong(1)}>
          ↓ Hot
        </button>
      </div>
      {source.changed && (
        <p class="changed" role="note">
          This file was modified after the recording: lines may have moved.
        </p>
      )}
      {source.totals === "part" && (
        <p class="changed" role="note">
          Times of calls from lines are known only for the whole recording. Clear the range to see them.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys. */}
      <section class="lines" ref={scroller} tabIndex={0} aria-label="Lines">
        <table aria-rowcount={lines.length + 1} style={{ minWidth: `calc(${Math.min(longest, 500)}ch + 330px)` }}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">Self</th>
              {calls ? (
                <th scope="col" title="The time of calls made from the line">
                  In calls
                </th>
              ) : (
                <th scope="col">Total</th>
              )}
              <th scope="col">Line</th>
              <th scope="col" class="code">
                Text
              </th>
            </tr>
          </thead>
          <tbody>
            <Gap rows={from} />
            {lines.slice(from, to).map((text, index) => {
              const line = from + index + 1;
              return (
                <LineRow
                  key={line}
                  line={line}
                  text={text}
                  open={opens?.[line - 1]}
                  cost={costs.get(line)}
                  all={source.all}
                  functions={functions.get(line)}
                  calls={calls === null ? null : calls.get(line)}
                  isCurrent={line === cursor}
                />
              );
            })}
            <Gap rows={lines.length - to} />
          </tbody>
        </table>
      </section>
    </>
  );
}

function Gap({ rows }: { rows: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused.
    <tr class="gap" aria-hidden="true">
      <td colSpan={4} style={{ height: `${rows * ROW}px` }} />
    </tr>
  );
}

/** Shows a file without its text: the functions in it. */
function WithoutText({ source, path }: { source: SourceText; path: string }) {
  return (
    <>
      <div class="bar">
        <PathText path={path} />
      </div>
      <div class="without-text-note">
        <p>
          The text was not available when the report was made. Make the report where the file is, to see the costs of
          its lines.
        </p>
        <ul>
          {source.functions.map((cost) => (
            <li key={cost.function}>
              <FunctionButton of={cost.function} /> line {cost.line}: self {costText(measure.value, cost.self)}, total{" "}
              {costText(measure.value, cost.total)} {source.all > 0 && `(${shareText(cost.total / source.all)})`}
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

export function FunctionButton({ of }: { of: FunctionIndex }) {
  return (
    <button type="button" class="function-button" aria-pressed={selected.value === of} onClick={() => select(of)}>
      <Chip of={of} />
      <bdi>{functionName(names(), of)}</bdi>
    </button>
  );
}
