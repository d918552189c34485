// The figures of the page are those of the exports and of the commands.

import assert from "node:assert/strict";
import type { DiffTable } from "../../src/engine/diff/methods";
import type { TrackContents } from "../../src/engine/timeline/methods";
import type { Head } from "../../src/shared/format";
import { functionName, type Names } from "../../src/shared/names";
import { countText, timeText } from "../../src/shared/units";
import { inBrowsers } from "./browsers";
import {
  amountsOf,
  amountsOfHeap,
  assertSameRows,
  EVERYTHING,
  expected,
  queried,
  type Row,
  rowsOf,
  selectionOf,
} from "./numbers";
import { Opened } from "./opened";

inBrowsers(["chromium", "firefox"], "functions have the numbers of pstats, and of stackweave top", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  const { calls } = expected;
  const everything = await rowsOf(opened.page, selectionOf("time", EVERYTHING));
  const asPstats = everything.map(
    ([name, file, line, ...[all, primitive, self, total]]) =>
      [file ?? "~", line ?? 0, name, primitive, all, self, total] as const,
  );
  assertSameRows(
    asPstats.map((row) => [...row]),
    calls.pstats.map((row) => [...row]),
    "pstats",
  );
  assertSameRows(everything, calls.everything, "top --all");
  assertSameRows(await rowsOf(opened.page, selectionOf("time")), calls.default, "top");
  await opened.close();
});

/** Formats calls like `10/2`: two of ten calls were not inside another one. */
function callsAs(calls: number, primitive: number): string {
  return calls === primitive ? countText(calls) : `${countText(calls)}/${countText(primitive)}`;
}

inBrowsers(["chromium"], "the table shows the numbers that it has", async (browser) => {
  const opened = await Opened.open(browser, "calls", {
    address: "view=table&show=python+native+libraries+internals",
    height: 6000,
  });
  const cells = (name: string) =>
    opened.page.$$eval(`#view tbody td.${name}`, (found) =>
      found.map((cell) => (cell as HTMLElement).innerText.trim()),
    );
  const amounts = (name: string) =>
    opened.page.$$eval(`#view tbody td.${name} .amount`, (found) => found.map((cell) => cell.textContent!.trim()));
  const shown = [await cells("name"), await cells("calls"), await amounts("self"), await amounts("total")];
  const rows = shown[0]!.map((_, row) => shown.map((column) => column[row]!));
  const wanted = expected.calls.everything.map(([name, , , calls, primitive, self, total]) => [
    name,
    callsAs(calls, primitive),
    timeText(self),
    timeText(total),
  ]);
  assertSameRows(rows, wanted, "the table");
  await opened.close();
});

inBrowsers(
  ["chromium", "firefox"],
  "functions of a time have the numbers of stackweave top --start --end",
  async (browser) => {
    for (const name of ["calls", "inside"] as const) {
      const opened = await Opened.open(browser, name);
      const { startNs, endNs, rows } = expected[name].range;
      const ofRange = await rowsOf(opened.page, selectionOf("time", {}, [startNs, endNs]));
      assertSameRows(ofRange, rows, `a range of ${name}`);
      await opened.close();
    }
  },
);

inBrowsers(["chromium"], "changes have the numbers of both recordings", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  const { names } = await queried<{ names: Names }>(opened.page, "open");
  const table = await queried<DiffTable>(opened.page, "diffTable", selectionOf("time"));
  const columns = table.functionsColumns;
  const sideOf = (calls: Float64Array, self: Float64Array, total: Float64Array) =>
    Array.from(columns.function, (of, row) => [functionName(names, of), calls[row]!, self[row]!, total[row]!] as const)
      .filter(([, ...numbers]) => numbers.some((number) => number !== 0))
      .map((row) => [...row]);
  const wanted = (rows: Row[]) => rows.map(([name, , , calls, , self, total]) => [name, calls, self, total]);
  assertSameRows(
    sideOf(columns.beforeCalls, columns.beforeSelf, columns.beforeTotal),
    wanted(expected.calls.before),
    "before",
  );
  assertSameRows(
    sideOf(columns.afterCalls, columns.afterSelf, columns.afterTotal),
    wanted(expected.calls.default),
    "after",
  );
  await opened.close();
});

inBrowsers(["chromium"], "the timeline has the spans of the export to Chrome's format", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  const { head } = await queried<{ head: Head }>(opened.page, "open");
  let spans = 0;
  for (const track of head.timeline!.tracks.keys()) {
    const window = { from: 0, to: head.durationNs, pixelNs: 0, depthLimit: 10_000, most: Number.MAX_SAFE_INTEGER };
    const { level, spanColumns } = await queried<TrackContents>(opened.page, "timeline", track, window);
    assert.equal(level, 0, "each span by itself");
    spans += spanColumns.begin.length;
  }
  assert.equal(spans, expected.calls.spans);
  await opened.close();
});

inBrowsers(["chromium"], "memory has the numbers of stackweave top and heap", async (browser) => {
  const opened = await Opened.open(browser, "memory");
  for (const [measure, wanted] of Object.entries(expected.memory.measures)) {
    const rows = await rowsOf(opened.page, selectionOf(measure as "peak"));
    assertSameRows(rows, wanted, measure);
  }
  const { head } = await queried<{ head: Head }>(opened.page, "open");
  const [device] = head.memory!.devices;
  const { heap } = expected.memory;
  assert.deepEqual(amountsOf(device!), amountsOfHeap(heap.totals));
  for (const part of ["threads", "allocators"] as const) {
    const named = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    const wanted = heap[part].map((row) => [row.name, amountsOfHeap(row)]);
    assert.deepEqual(named(device![part].map((row) => [row.name, amountsOf(row)])), named(wanted), part);
  }
  await opened.close();
});
