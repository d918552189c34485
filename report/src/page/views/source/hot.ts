// The most expensive lines of a file, and the keys that go from one to the next.

import type { LineColumns } from "../../../engine/source";

/** The maximum number of hot lines of a file. A line with less than a thousandth of the cost of the hottest is not hot. */
const MOST = 20;
const LEAST = 0.001;

export interface HotLines {
  byCost: number[];
  byLine: number[];
  /** The next hot line after or before a line; after the last one follows the first. */
  from(line: number, step: 1 | -1): number | undefined;
}

/** Lines are hot by self cost, or without any by total cost; with `byBoth` by the greater one. */
export function hotLines(columns: LineColumns, byBoth = false): HotLines {
  const { self, total } = columns;
  const hasSelf = self.some((cost) => cost > 0);
  const costs = byBoth ? self.map((cost, row) => Math.max(cost, total[row]!)) : hasSelf ? self : total;
  const rows = [...costs.keys()].sort((a, b) => costs[b]! - costs[a]!);
  const most = rows.length > 0 ? costs[rows[0]!]! : 0;
  const byCost = rows
    .filter((row) => costs[row]! > 0 && costs[row]! >= most * LEAST)
    .slice(0, MOST)
    .map((row) => columns.line[row]!);
  const byLine = [...byCost].sort((a, b) => a - b);
  return {
    byCost,
    byLine,
    from: (line, step) =>
      step > 0
        ? (byLine.find((hot) => hot > line) ?? byLine[0])
        : (byLine.filter((hot) => hot < line).pop() ?? byLine[byLine.length - 1]),
  };
}

/** Calls `go` for the keys n and p, unless the user is typing. Returns a function that removes the handler. */
export function onHotKey(go: (step: 1 | -1) => void): () => void {
  const listen = (event: KeyboardEvent) => {
    const isWriting = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || isWriting || document.querySelector("dialog[open]")) return;
    const step = ({ n: 1, p: -1 } as const)[event.key.toLowerCase() as "n" | "p"];
    if (step === undefined) return;
    go(step);
    event.preventDefault();
  };
  document.addEventListener("keydown", listen);
  return () => document.removeEventListener("keydown", listen);
}
