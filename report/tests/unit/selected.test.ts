// Views follow the rules of `View` in `crates/stackweave-profile/src/aggregate/view.rs`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SelectedTrees } from "../../src/engine/selected";
import type { MeasureName } from "../../src/shared/format";
import type { Filter, Selection } from "../../src/shared/selection";
import { type FunctionSample, type NodeSample, reportOf, selectionOf, type TreeSample, treeText } from "./sample";

const FUNCTIONS: FunctionSample[] = [
  { name: "main", file: "/app/main.py", line: 1 },
  { name: "step", file: "/app/main.py", line: 9 },
  { name: "loads", file: "/lib/json.py", line: 3, origin: "library" },
  { name: "decode", file: "/lib/json.py", line: 30, origin: "library" },
  { name: "scan", kind: "native", origin: "library", module: "_json.so" },
  { name: "eval", kind: "native", origin: "interpreter", module: "libpython.so" },
  { name: "kernel", kind: "native", module: "app.so" },
  { name: "phase", kind: "span" },
];

async function shown(trees: TreeSample[], selection: Selection, lines = false): Promise<string[]> {
  const report = await reportOf({ functions: FUNCTIONS, trees });
  return treeText(await new SelectedTrees(report).get(selection, { lines }), report.names);
}

const nodes = (...of: NodeSample[]): TreeSample[] => [{ nodes: of }];
const filtered = (filter: Partial<Filter>, measure: MeasureName = "time") => selectionOf(measure, filter);
const ALL: Partial<Filter> = { internals: true };

test("with internals everything is visible, and totals are sums", async () => {
  const tree = nodes(["main", 2, 1, 5, ["eval", 0, 3, 7, ["step", 9, 3, 11]], ["loads", 4, 2, 13]]);
  assert.deepEqual(await shown(tree, filtered(ALL)), [
    "root 0 0 36",
    "  main 1 5 36",
    "    eval 3 7 18",
    "      step 3 11 11",
    "    loads 2 13 13",
  ]);
});

test("the cost of a hidden frame counts for its nearest visible caller, its calls for no caller", async () => {
  const tree = nodes(["main", 2, 1, 5, ["eval", 0, 3, 7, ["step", 9, 3, 11]]]);
  assert.deepEqual(await shown(tree, filtered({})), ["root 0 0 23", "  main 1 12 23", "    step 3 11 11"]);
});

test("for measures other than time, calls move with the cost", async () => {
  const tree: TreeSample[] = [{ measure: "bytes", nodes: [["main", 2, 1, 5, ["eval", 0, 3, 7, ["step", 9, 4, 11]]]] }];
  assert.deepEqual(await shown(tree, filtered({}, "bytes")), ["root 0 0 23", "  main 4 12 23", "    step 4 11 11"]);
});

test("allocations are the calls of bytes", async () => {
  const tree: TreeSample[] = [{ measure: "bytes", nodes: [["main", 2, 1, 500, ["eval", 0, 3, 70]]] }];
  assert.deepEqual(await shown(tree, filtered({}, "allocations")), ["root 0 0 4", "  main 4 4 4"]);
});

test("cost without a visible caller is the root's self cost", async () => {
  assert.deepEqual(await shown(nodes(["eval", 0, 1, 7, ["main", 1, 1, 2]]), filtered({})), [
    "root 0 7 9",
    "  main 1 2 2",
  ]);
});

test("only functions of a library that other code called are visible, also through the interpreter", async () => {
  const inside: NodeSample = ["loads", 4, 1, 1, ["eval", 0, 1, 10, ["decode", 31, 1, 100, ["scan", 0, 1, 1000]]]];
  assert.deepEqual(await shown(nodes(["main", 2, 1, 1000, inside]), filtered({})), [
    "root 0 0 2111",
    "  main 1 1000 2111",
    "    loads 1 1111 1111",
  ]);
});

test("a library that the program calls back is visible again", async () => {
  const inside: NodeSample = ["loads", 4, 1, 1, ["decode", 31, 1, 10, ["step", 9, 1, 100, ["decode", 31, 1, 1000]]]];
  assert.deepEqual(await shown(nodes(inside), filtered({})), [
    "root 0 0 1111",
    "  loads 1 11 1111",
    "    step 1 100 1100",
    "      decode 1 1000 1000",
  ]);
});

test("a call inside a library stays hidden even if its caller is hidden", async () => {
  const tree = nodes(["main", 2, 1, 100, ["loads", 4, 1, 10, ["scan", 0, 1, 100]]]);
  assert.deepEqual(await shown(tree, filtered({ python: false })), ["root 0 210 210"]);
  assert.deepEqual(await shown(tree, filtered({ ...ALL, python: false })), ["root 0 110 210", "  scan 1 100 100"]);
});

/** Three quarters of the time are inside of a library, in `scan` and, less than one fiftieth of it, in `decode`. */
const MOSTLY_LIBRARY: NodeSample = ["main", 2, 1, 250, ["loads", 4, 1, 0, ["decode", 31, 1, 14, ["scan", 0, 1, 736]]]];

test("in a program that is mostly libraries, functions inside them that take the time are visible", async () => {
  assert.deepEqual(await shown(nodes(MOSTLY_LIBRARY), filtered({})), [
    "root 0 0 1000",
    "  main 1 250 1000",
    "    loads 1 14 750",
    "      scan 1 736 736",
  ]);
  const less: NodeSample = ["main", 2, 1, 251, ["loads", 4, 1, 0, ["decode", 31, 1, 14, ["scan", 0, 1, 735]]]];
  assert.deepEqual((await shown(nodes(less), filtered({}))).slice(2), ["    loads 1 749 749"]);
});

test("they are determined for the selected threads, and hidden by filters as others are", async () => {
  const trees: TreeSample[] = [
    { thread: 0, nodes: [MOSTLY_LIBRARY] },
    { thread: 1, nodes: [["main", 2, 1, 5000]] },
  ];
  assert.equal((await shown(trees, filtered({}))).length, 3);
  assert.equal((await shown(trees, { ...filtered({}), threads: [0] })).length, 4);
  assert.equal((await shown(nodes(MOSTLY_LIBRARY), filtered({ native: false }))).length, 3);
});

test("calls and bytes never make functions inside libraries visible", async () => {
  const tree: TreeSample[] = [{ measure: "bytes", nodes: [MOSTLY_LIBRARY] }];
  assert.equal((await shown(tree, filtered({}, "bytes"))).length, 3);
});

test("what is hidden is counted", async () => {
  const hidden = async (tree: TreeSample[], filter: Partial<Filter>) =>
    new SelectedTrees(await reportOf({ functions: FUNCTIONS, trees: tree })).hidden(filtered(filter));
  const inside: NodeSample = ["loads", 4, 1, 1, ["eval", 0, 1, 10, ["decode", 31, 1, 100]]];
  const program: NodeSample = ["main", 2, 1, 889, inside];
  assert.deepEqual(await hidden(nodes(program), {}), { functions: 2, self: 110, costly: 0, total: 1000 });
  assert.deepEqual(await hidden(nodes(program), ALL), { functions: 0, self: 0, costly: 0, total: 1000 });
  assert.deepEqual(await hidden(nodes(program), { only: "main" }), { functions: 0, self: 0, costly: 0, total: 1000 });
  assert.deepEqual(await hidden(nodes(MOSTLY_LIBRARY), {}), { functions: 1, self: 14, costly: 1, total: 1000 });
});

test("kinds, libraries and words hide functions without their callees", async () => {
  const tree = nodes(["main", 2, 1, 1, ["kernel", 0, 1, 10, ["phase", 0, 1, 100]], ["loads", 4, 1, 1000]]);
  assert.deepEqual(await shown(tree, filtered({ native: false })), [
    "root 0 0 1111",
    "  main 1 11 1111",
    "    phase 1 100 100",
    "    loads 1 1000 1000",
  ]);
  assert.deepEqual((await shown(tree, filtered({ libraries: false })))[1], "  main 1 1001 1111");
  assert.deepEqual(await shown(tree, filtered({ only: "JSON loa" })), ["root 0 111 1111", "  loads 1 1000 1000"]);
});

test("lines of a function are merged, unless they are distinguished", async () => {
  const tree = nodes(["main", 2, 1, 1, ["step", 10, 1, 10]], ["main", 3, 1, 100, ["step", 10, 1, 1000]]);
  assert.deepEqual(await shown(tree, filtered({})), ["root 0 0 1111", "  main 2 101 1111", "    step 2 1010 1010"]);
  assert.deepEqual(await shown(tree, filtered({}), true), [
    "root 0 0 1111",
    "  main:2 1 1 11",
    "    step:10 1 10 10",
    "  main:3 1 100 1100",
    "    step:10 1 1000 1000",
  ]);
});

test("threads are merged or selected; the other side's threads can't be selected", async () => {
  const trees: TreeSample[] = [
    { thread: 0, self: 2, nodes: [["main", 1, 1, 1]] },
    { thread: 1, nodes: [["main", 1, 1, 10]] },
    { thread: 0, side: "before", nodes: [["main", 1, 1, 100]] },
    { thread: 0, measure: "samples", nodes: [["main", 1, 1, 1000]] },
  ];
  assert.deepEqual(await shown(trees, filtered({})), ["root 0 2 13", "  main 2 11 11"]);
  assert.deepEqual(await shown(trees, { ...filtered({}), threads: [1] }), ["root 0 0 10", "  main 1 10 10"]);
  const report = await reportOf({ functions: FUNCTIONS, trees });
  const before = await new SelectedTrees(report).get({ ...filtered({}), threads: [1] }, { side: "before" });
  assert.deepEqual(treeText(before, report.names), ["root 0 0 100", "  main 1 100 100"]);
});

test("self costs can be negative", async () => {
  assert.deepEqual(await shown(nodes(["main", 1, 1, -5, ["step", 9, 1, 3]]), filtered({})), [
    "root 0 0 -2",
    "  main 1 -5 -2",
    "    step 1 3 3",
  ]);
});
