// Numbers on the page are those of the exports, and of the commands.

import { countText, timeText } from "../../src/shared/units";
import { inBrowsers } from "./browsers";
import { assertSameRows, EVERYTHING, expected, rowsOf, selectionOf } from "./numbers";
import { Opened } from "./opened";

inBrowsers(["chromium", "firefox"], "functions have the numbers of pstats, and of stackweave top", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  const { calls } = expected;
  const everything = await rowsOf(opened.page, selectionOf("time", EVERYTHING));
  const asPstats = everything.map(
    ([name, file, line, ...[all, primitive, own, total]]) =>
      [file ?? "~", line ?? 0, name, primitive, all, own, total] as const,
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

/** `10/2`: two of ten calls were not inside of another. */
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
  const shown = [await cells("name"), await cells("calls"), await amounts("own"), await amounts("total")];
  const rows = shown[0]!.map((_, row) => shown.map((column) => column[row]!));
  const wanted = expected.calls.everything.map(([name, , , calls, primitive, own, total]) => [
    name,
    callsAs(calls, primitive),
    timeText(own),
    timeText(total),
  ]);
  assertSameRows(rows, wanted, "the table");
  await opened.close();
});

inBrowsers(["chromium"], "memory has the numbers of stackweave top and heap", async (browser) => {
  const opened = await Opened.open(browser, "memory");
  for (const [measure, wanted] of Object.entries(expected.memory.measures)) {
    const rows = await rowsOf(opened.page, selectionOf(measure as "peak"));
    assertSameRows(rows, wanted, measure);
  }
  await opened.close();
});
