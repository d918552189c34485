// Statistics in the terms of cProfile, computed by hand.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SelectedTrees } from "../../src/engine/selected";
import { type Statistics, type StatisticsColumns, statisticsOf } from "../../src/engine/statistics";
import { tableMethods } from "../../src/engine/table";
import { plainTree, reportOf, selectionOf } from "./sample";

const [A, B, C] = [0, 1, 2] as const;

/** calls, primitive calls, self, total */
function row(columns: StatisticsColumns, at: number): number[] {
  return [columns.calls[at]!, columns.primitiveCalls[at]!, columns.self[at]!, columns.total[at]!];
}

function edge({ edges }: Statistics, caller: number, callee: number): number[] | undefined {
  const at = edges.caller.findIndex((from, index) => from === caller && edges.callee[index] === callee);
  return at < 0 ? undefined : [...row(edges, at), edges.totalOfAll[at]!];
}

test("a function on two paths is counted together", () => {
  const all = statisticsOf(plainTree([A, 1, 1, [B, 2, 10, [C, 4, 100]], [C, 3, 1000]]), 3);
  assert.deepEqual(row(all.functions, A), [1, 1, 1, 1111]);
  assert.deepEqual(row(all.functions, B), [2, 2, 10, 110]);
  assert.deepEqual(row(all.functions, C), [7, 7, 1100, 1100]);
  assert.deepEqual(edge(all, B, C), [4, 4, 100, 100, 100]);
  assert.deepEqual(edge(all, A, C), [3, 3, 1000, 1000, 1000]);
  assert.equal(edge(all, C, A), undefined);
  assert.equal(all.edges.caller.length, 3);
});

test("recursion is not counted twice in totals, and its calls are not primitive", () => {
  const all = statisticsOf(plainTree([A, 1, 1, [A, 2, 10, [A, 4, 100]]]), 1);
  assert.deepEqual(row(all.functions, A), [7, 1, 111, 111]);
  assert.equal(all.functions.totalOfAll[A], 321);
  // The edge A -> A is open once it is entered: the third call is inside the second.
  assert.deepEqual(edge(all, A, A), [6, 2, 110, 110, 210]);
  assert.deepEqual(row(all.outermost, A), [1, 1, 1, 111]);
});

test("recursion through another function keeps each pair's own count", () => {
  const all = statisticsOf(plainTree([A, 1, 1, [B, 1, 10, [A, 1, 100, [B, 1, 1000]]]]), 2);
  assert.deepEqual(row(all.functions, A), [2, 1, 101, 1111]);
  assert.deepEqual(row(all.functions, B), [2, 1, 1010, 1110]);
  assert.deepEqual(edge(all, A, B), [2, 1, 1010, 1110, 2110]);
  assert.deepEqual(edge(all, B, A), [1, 1, 100, 1100, 1100]);
});

test("calls without a caller are outermost, and the sums over callers are consistent", () => {
  const all = statisticsOf(plainTree([A, 1, 1, [B, 2, 10]], [B, 4, 100, [B, 8, 1000]]), 2);
  assert.deepEqual(row(all.outermost, B), [4, 4, 100, 1100]);
  assert.deepEqual(edge(all, A, B), [2, 2, 10, 10, 10]);
  assert.deepEqual(edge(all, B, B), [8, 8, 1000, 1000, 1000]);
  assert.deepEqual(row(all.functions, B), [14, 6, 1110, 1110]);
  assert.equal(all.functions.totalOfAll[B], 1100 + 10 + 1000);
});

test("sums hold for random trees", () => {
  const seed = Number(process.env.SEED ?? 20_261_116);
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  type Node = Parameters<typeof plainTree>[number];
  const node = (depth: number): Node => {
    const below = depth === 0 ? [] : Array.from({ length: random(4) }, () => node(depth - 1));
    return [random(5), 1 + random(9), random(100), ...below];
  };
  for (let round = 0; round < 50; round++) {
    const tree = plainTree(...Array.from({ length: 1 + random(3) }, () => node(6)));
    const { functions, outermost, edges } = statisticsOf(tree, 5);
    for (let of = 0; of < 5; of++) {
      const into = [...edges.callee.keys()].filter((at) => edges.callee[at] === of);
      const out = [...edges.caller.keys()].filter((at) => edges.caller[at] === of);
      const sum = (rows: number[], column: Float64Array) => rows.reduce((all, at) => all + column[at]!, 0);
      const where = `function ${of}, round ${round}, seed ${seed}`;
      assert.equal(functions.calls[of], sum(into, edges.calls) + outermost.calls[of]!, where);
      assert.equal(functions.self[of], sum(into, edges.self) + outermost.self[of]!, where);
      assert.equal(functions.totalOfAll[of], functions.self[of]! + sum(out, edges.totalOfAll), where);
    }
  }
});

test("statistics of a tree are computed once", () => {
  const tree = plainTree([A, 1, 1]);
  assert.equal(statisticsOf(tree, 1), statisticsOf(tree, 1));
});

test("the table has each function of the tree, and its neighbours", async () => {
  const report = await reportOf({
    functions: [{ name: "unused" }, { name: "main" }, { name: "step" }, { name: "fib" }],
    trees: [{ self: 3, nodes: [["main", 2, 1, 5, ["fib", 1, 1, 7, ["fib", 1, 2, 11]], ["step", 9, 4, 0]]] }],
  });
  const methods = tableMethods({ report, trees: new SelectedTrees(report) });
  const table = await methods.table(selectionOf());
  assert.deepEqual([...table.functionsColumns.function], [1, 2, 3]);
  assert.deepEqual([table.total, table.withoutFrame], [26, 3]);
  assert.deepEqual(row(table.functionsColumns, 2), [3, 1, 18, 18]);
  const fib = await methods.neighbours(selectionOf(), 3);
  assert.deepEqual(fib.of, { calls: 3, primitiveCalls: 1, self: 18, total: 18 });
  assert.deepEqual([...fib.callersColumns.function], [1, 3]);
  assert.deepEqual(row(fib.callersColumns, 0), [1, 1, 7, 18]);
  assert.deepEqual(row(fib.callersColumns, 1), [2, 2, 11, 11]);
  assert.deepEqual([...fib.calleesColumns.function], [3]);
  assert.equal(fib.outermost.calls, 0);
  const again = await methods.table(selectionOf());
  assert.notEqual(again.functionsColumns.self.buffer, table.functionsColumns.self.buffer);
});
