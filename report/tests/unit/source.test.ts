import assert from "node:assert/strict";
import { test } from "node:test";
import { SelectedTrees } from "../../src/engine/selected";
import { sourceMethods } from "../../src/engine/source";
import { hotLines } from "../../src/page/views/source/hot";
import { type CallSample, reportOf, selectionOf, type TreeSample } from "./sample";

const APP = "/app/main.py";
const LIB = "/lib/json.py";

const open = async (trees: TreeSample[], calls: CallSample[][] = []) => {
  const report = await reportOf({
    functions: [
      { name: "main", file: APP, line: 1 },
      { name: "fib", file: APP, line: 20 },
      { name: "loads", file: LIB, line: 3, origin: "library" },
      { name: "scan", kind: "native", module: "_json.so" },
    ],
    trees,
    calls,
    sources: { [APP]: "def main():\r\n  ü\n" },
  });
  const file = (path: string) => report.names.strings.indexOf(path);
  return { report, file, methods: sourceMethods({ report, trees: new SelectedTrees(report) }) };
};

test("a line has the self costs of all its nodes, and totals that count recursion once", async () => {
  const { file, methods } = await open([
    {
      nodes: [["main", 2, 1, 1, ["fib", 21, 1, 10, ["fib", 21, 1, 100, ["fib", 22, 1, 1000]]], ["fib", 22, 1, 10_000]]],
    },
  ]);
  const { linesColumns: lines, all } = await methods.source(selectionOf(), file(APP));
  assert.equal(all, 11_111);
  assert.deepEqual([...lines.line], [2, 21, 22]);
  assert.deepEqual([...lines.self], [1, 110, 11_000]);
  assert.deepEqual([...lines.total], [11_111, 1110, 11_000]);
  assert.deepEqual([...lines.isWhole], [0, 0, 0]);
});

test("cost without a line is assigned to the function's first line, and marked", async () => {
  const { file, methods } = await open([
    {
      nodes: [
        ["main", 0, 1, 1, ["fib", 0, 1, 10]],
        ["fib", 25, 1, 100],
      ],
    },
  ]);
  const { linesColumns: lines } = await methods.source(selectionOf(), file(APP));
  assert.deepEqual([...lines.line], [1, 20, 25]);
  assert.deepEqual([...lines.self], [1, 10, 100]);
  assert.deepEqual([...lines.isWhole], [1, 1, 0]);
});

test("if only first lines are known, all costs belong to whole functions", async () => {
  const { file, methods } = await open([{ nodes: [["main", 1, 1, 1, ["fib", 20, 1, 10, ["scan", 7, 1, 100]]]] }]);
  const { linesColumns: lines } = await methods.source(selectionOf(), file(APP));
  assert.deepEqual(
    [[...lines.line], [...lines.isWhole]],
    [
      [1, 20],
      [1, 1],
    ],
  );
});

test("two functions in one line are one line", async () => {
  const { file, methods } = await open([{ nodes: [["main", 20, 1, 1, ["fib", 20, 1, 10]]] }]);
  const { linesColumns: lines, functions } = await methods.source(selectionOf(), file(APP));
  assert.deepEqual([[...lines.line], [...lines.self], [...lines.total]], [[20], [11], [11]]);
  assert.deepEqual(functions, [
    { function: 0, line: 1, self: 1, total: 11 },
    { function: 1, line: 20, self: 10, total: 10 },
  ]);
});

test("files are ordered by cost, with and without a text", async () => {
  const { file, methods } = await open([
    { nodes: [["main", 2, 1, 1, ["loads", 4, 1, 10, ["main", 3, 1, 100]], ["scan", 0, 1, 1000]]] },
  ]);
  assert.deepEqual(await methods.sourceFiles(selectionOf()), {
    all: 1111,
    files: [
      { file: file(APP), self: 101, total: 1111, hasText: true },
      { file: file(LIB), self: 10, total: 110, hasText: false },
    ],
  });
  assert.equal((await methods.source(selectionOf(), file(APP))).text, "def main():\r\n  ü\n");
  assert.equal((await methods.source(selectionOf(), file(LIB))).text, null);
});

test("a file without a cost has its text and no lines", async () => {
  const { file, methods } = await open([{ nodes: [["scan", 0, 1, 1]] }]);
  const { linesColumns, text } = await methods.source(selectionOf(), file(APP));
  assert.equal(linesColumns.line.length, 0);
  assert.ok(text);
  assert.deepEqual((await methods.sourceFiles(selectionOf())).files, [
    { file: file(APP), self: 0, total: 0, hasText: true },
  ]);
});

const CALLS: CallSample[][] = [
  [
    ["main", 2, "fib", 1, 90, 90],
    ["main", 2, "scan", 4, 5, 5],
    ["fib", 21, "fib", 3, 45, 45],
    ["loads", 7, "scan", 1, 8, 8],
  ],
  [["main", 2, "fib", 2, 10, 4]],
];
const TRACED: TreeSample[] = [
  { thread: 0, nodes: [["main", 1, 1, 5, ["fib", 20, 1, 45, ["fib", 20, 3, 45]], ["scan", 0, 4, 5]]] },
  { thread: 1, nodes: [["main", 1, 1, 0, ["fib", 20, 2, 10]]] },
];

test("if calls have lines, the total of a line is that of its calls, and self costs stay with the function", async () => {
  const { file, methods } = await open(TRACED, CALLS);
  const source = await methods.source(selectionOf(), file(APP));
  assert.equal(source.totals, "calls");
  assert.deepEqual([...source.linesColumns.line], [1, 2, 20, 21]);
  assert.deepEqual([...source.linesColumns.self], [5, 0, 100, 0]);
  assert.deepEqual([...source.linesColumns.total], [0, 99, 0, 45]);
  assert.deepEqual([...source.linesColumns.isWhole], [1, 0, 1, 0]);
  assert.deepEqual(source.calls, [
    {
      line: 2,
      total: 99,
      called: [
        { function: 1, calls: 3, total: 100 },
        { function: 3, calls: 4, total: 5 },
      ],
      others: 0,
    },
    { line: 21, total: 45, called: [{ function: 1, calls: 3, total: 45 }], others: 0 },
  ]);
});

test("calls of the selected threads count, and hidden functions are not named", async () => {
  const { file, methods } = await open(TRACED, CALLS);
  const second = await methods.source({ ...selectionOf(), threads: [1] }, file(APP));
  assert.deepEqual(second.calls, [{ line: 2, total: 4, called: [{ function: 1, calls: 2, total: 10 }], others: 0 }]);
  const python = await methods.source(selectionOf("time", { native: false }), file(APP));
  assert.deepEqual(
    python.calls.map(({ total, called }) => [total, called.map((of) => of.function)]),
    [
      [99, [1]],
      [45, [1]],
    ],
  );
  // loads() belongs to a library, and is not in the trees.
  assert.deepEqual((await methods.source(selectionOf(), file(LIB))).calls, []);
  const all = await methods.source(selectionOf("time", { internals: true }), file(LIB));
  assert.deepEqual(
    all.calls.map((of) => of.line),
    [7],
  );
});

test("a line lists the most expensive functions, and the number of the others", async () => {
  const functions = Array.from({ length: 12 }, (_, of) => ({ name: `f${of}`, file: APP, line: 10 + of }));
  const report = await reportOf({
    functions,
    trees: TRACED.slice(0, 0),
    calls: [functions.map(({ name }, of) => ["f0", 3, name, 1, of, of])],
  });
  const methods = sourceMethods({ report, trees: new SelectedTrees(report) });
  const { calls } = await methods.source(selectionOf(), report.names.strings.indexOf(APP));
  assert.deepEqual(
    calls.map(({ total, called, others }) => [total, called.map((of) => of.function), others]),
    [[66, [11, 10, 9, 8, 7, 6, 5, 4], 4]],
  );
});

test("calls have lines only for time, and only for the whole recording", async () => {
  const memory: TreeSample = { measure: "bytes", nodes: [["main", 2, 1, 100]] };
  const { file, methods, report } = await open([...TRACED, memory], CALLS);
  const bytes = await methods.source(selectionOf("bytes"), file(APP));
  assert.deepEqual([bytes.totals, bytes.calls, [...bytes.linesColumns.total]], ["trees", [], [100]]);
  report.head.timeline = { levels: [0], tracks: [], counters: [] };
  report.head.durationNs = 1000;
  const part = await methods.source({ ...selectionOf(), range: [10, 20] }, file(APP));
  assert.deepEqual([part.totals, part.calls], ["part", []]);
  const { totals } = await methods.source({ ...selectionOf(), range: [0, 1001] }, file(APP));
  assert.equal(totals, "calls");
});

test("hot lines have the highest self or total cost", () => {
  const columns = {
    line: Uint32Array.of(1, 2, 20, 21),
    self: Float64Array.of(5, 0, 100, 0),
    total: Float64Array.of(0, 99, 0, 45),
    isWhole: Uint8Array.of(1, 0, 1, 0),
  };
  assert.deepEqual(hotLines(columns).byCost, [20, 1]);
  const hot = hotLines(columns, true);
  assert.deepEqual(hot.byCost, [20, 2, 21, 1]);
  assert.deepEqual([hot.from(2, 1), hot.from(2, -1), hot.from(1, -1)], [20, 1, 21]);
});
