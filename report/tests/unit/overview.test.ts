import assert from "node:assert/strict";
import { test } from "node:test";
import { overviewMethods } from "../../src/engine/overview";
import { SelectedTrees } from "../../src/engine/selected";
import { dateText } from "../../src/shared/units";
import { type FunctionSample, reportOf, selectionOf } from "./sample";

const FUNCTIONS: FunctionSample[] = [
  { name: "main" },
  { name: "loads", origin: "library" },
  { name: "scan", kind: "native", origin: "library" },
  { name: "eval", kind: "native", origin: "interpreter" },
  { name: "phase", kind: "span" },
  { name: "unused" },
];

const open = async () => {
  const report = await reportOf({
    functions: FUNCTIONS,
    trees: [
      {
        self: 1,
        nodes: [["main", 1, 1, 2, ["eval", 0, 1, 4, ["loads", 1, 1, 8, ["scan", 0, 1, 16]]], ["phase", 0, 1, 32]]],
      },
    ],
  });
  return overviewMethods({ report, trees: new SelectedTrees(report) });
};

test("costs are divided by the origin of the code, whatever is visible", async () => {
  const divided = { program: 2, libraries: 8, native: 16, interpreter: 4, labels: 32, unknown: 1 };
  for (const filter of [{}, { internals: true }, { native: false, python: false }]) {
    const { division, total } = await (await open()).overview(selectionOf("time", filter), 3);
    assert.deepEqual(division, divided);
    assert.equal(total, 63);
  }
});

test("the most expensive functions come first, and no more than requested", async () => {
  const methods = await open();
  const { bySelf, byTotal, functions } = await methods.overview(selectionOf("time", { internals: true }), 3);
  assert.deepEqual(
    bySelf.map((top) => [FUNCTIONS[top.function]!.name, top.self]),
    [
      ["phase", 32],
      ["scan", 16],
      ["loads", 8],
    ],
  );
  assert.deepEqual(
    byTotal.map((top) => [FUNCTIONS[top.function]!.name, top.total]),
    [
      ["main", 62],
      ["phase", 32],
      ["eval", 28],
    ],
  );
  assert.equal(functions, 5);
});

test("a report without runs has none", async () => {
  assert.deepEqual(await (await open()).runs(), []);
});

test("the wall clock is larger than a number can hold", () => {
  assert.match(dateText("1794804425015125543"), /2026/);
  assert.equal(dateText("0"), "");
});
