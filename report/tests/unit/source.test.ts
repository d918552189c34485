import assert from "node:assert/strict";
import { test } from "node:test";
import { SelectedTrees } from "../../src/engine/selected";
import { sourceMethods } from "../../src/engine/source";
import { reportOf, selectionOf, type TreeSample } from "./sample";

const APP = "/app/main.py";
const LIB = "/lib/json.py";

const open = async (trees: TreeSample[]) => {
  const report = await reportOf({
    functions: [
      { name: "main", file: APP, line: 1 },
      { name: "fib", file: APP, line: 20 },
      { name: "loads", file: LIB, line: 3, origin: "library" },
      { name: "scan", kind: "native", module: "_json.so" },
    ],
    trees,
    sources: { [APP]: "def main():\r\n  ü\n" },
  });
  const file = (path: string) => report.names.strings.indexOf(path);
  return { file, methods: sourceMethods({ report, trees: new SelectedTrees(report) }) };
};

test("a line has the own costs of all nodes there, and totals that count recursion once", async () => {
  const { file, methods } = await open([
    {
      nodes: [["main", 2, 1, 1, ["fib", 21, 1, 10, ["fib", 21, 1, 100, ["fib", 22, 1, 1000]]], ["fib", 22, 1, 10_000]]],
    },
  ]);
  const { linesColumns: lines, all } = await methods.source(selectionOf(), file(APP));
  assert.equal(all, 11_111);
  assert.deepEqual([...lines.line], [2, 21, 22]);
  assert.deepEqual([...lines.own], [1, 110, 11_000]);
  assert.deepEqual([...lines.total], [11_111, 1110, 11_000]);
  assert.deepEqual([...lines.isWhole], [0, 0, 0]);
});

test("what has no line stands at the function's first one, and says so", async () => {
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
  assert.deepEqual([...lines.own], [1, 10, 100]);
  assert.deepEqual([...lines.isWhole], [1, 1, 0]);
});

test("where only first lines are known, all costs are of whole functions", async () => {
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
  assert.deepEqual([[...lines.line], [...lines.own], [...lines.total]], [[20], [11], [11]]);
  assert.deepEqual(functions, [
    { function: 0, line: 1, own: 1, total: 11 },
    { function: 1, line: 20, own: 10, total: 10 },
  ]);
});

test("files are told by cost, with and without a text", async () => {
  const { file, methods } = await open([
    { nodes: [["main", 2, 1, 1, ["loads", 4, 1, 10, ["main", 3, 1, 100]], ["scan", 0, 1, 1000]]] },
  ]);
  assert.deepEqual(await methods.sourceFiles(selectionOf()), {
    all: 1111,
    files: [
      { file: file(APP), own: 101, total: 1111, hasText: true },
      { file: file(LIB), own: 10, total: 110, hasText: false },
    ],
  });
  assert.equal((await methods.source(selectionOf(), file(APP))).text, "def main():\r\n  ü\n");
  assert.equal((await methods.source(selectionOf(), file(LIB))).text, null);
});

test("a file that cost nothing has its text and no lines", async () => {
  const { file, methods } = await open([{ nodes: [["scan", 0, 1, 1]] }]);
  const { linesColumns, text } = await methods.source(selectionOf(), file(APP));
  assert.equal(linesColumns.line.length, 0);
  assert.ok(text);
  assert.deepEqual((await methods.sourceFiles(selectionOf())).files, [
    { file: file(APP), own: 0, total: 0, hasText: true },
  ]);
});
