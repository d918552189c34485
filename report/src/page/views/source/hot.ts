// The lines of a file that cost most, and the keys that go from one to the next.

import type { LineColumns } from "../../../engine/source";

/** No more than so many lines of a file are hot, and none that costs less than a thousandth of the hottest. */
const MOST = 20;
const LEAST = 0.001;

export interface HotLines {
  byCost: number[];
  byLine: number[];
  /** The next hot line behind a line or before it; from the end it goes on at the other end. */
  from(line: number, step: 1 | -1): number | undefined;
}

/** Lines are hot by their self costs, or if there are none by their totals; `byBoth`: by whatever is more. */
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

/** Calls back for the keys n and p, unless the user is typing. Returns a function that ends it. */
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
