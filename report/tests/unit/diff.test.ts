// Changes between two recordings, computed by hand with the rules of `stackweave diff`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { diffMethods } from "../../src/engine/diff/methods";
import { AFTER, BEFORE, diffTreeOf, greatestChange, scalesOf } from "../../src/engine/diff/tree";
import { SelectedTrees } from "../../src/engine/selected";
import { type NodeSample, plainTree, reportOf, selectionOf } from "./sample";
import { randomTree } from "./sample-random";

const [A, B, C, D] = [1, 2, 3, 4] as const;
const BOTH = BEFORE | AFTER;

test("each path is included once, with the costs of both sides", () => {
  const before = plainTree([A, 1, 10, [B, 1, 20], [C, 1, 5]]);
  const after = plainTree([D, 1, 7], [A, 2, 11, [C, 3, 50, [B, 1, 1]]]);
  const { before: first, after: second, sides } = diffTreeOf(before, after);
  const rows = Array.from(first.item, (item, node) => [
    item,
    first.item[first.parent[node]!],
    first.total[node],
    second.total[node],
    second.calls[node],
    sides[node],
  ]);
  assert.deepEqual(rows, [
    [0, 0, 35, 69, 0, BOTH],
    [A, 0, 35, 62, 2, BOTH],
    [B, A, 20, 0, 0, BEFORE],
    [C, A, 5, 51, 3, BOTH],
    [D, 0, 0, 7, 1, AFTER],
    [B, C, 0, 1, 1, AFTER],
  ]);
  assert.equal(greatestChange(first.self, second.self, [1, 1]), 45);
});

test("shares refer to each side's total; without a cost there are none", () => {
  assert.deepEqual(scalesOf(200, 50, true), [1 / 200, 1 / 50]);
  assert.deepEqual(scalesOf(0, 50, true), [0, 1 / 50]);
  assert.deepEqual(scalesOf(200, 50, false), [1, 1]);
});

test("random trees: both sides keep their costs by function", () => {
  const seed = Number(process.env.SEED ?? 20_261_116);
  console.log(`SEED=${seed}`);
  for (let round = 0; round < 30; round++) {
    const trees = [0, 1].map((side) => randomTree(seed + 2 * round + side, { nodes: 200, functions: 6 }));
    const { before, after } = diffTreeOf(trees[0]!, trees[1]!);
    for (const [merged, tree] of [
      [before, trees[0]!],
      [after, trees[1]!],
    ] as const) {
      assert.equal(merged.total[0], tree.total[0]);
      assert.deepEqual(ownByFunction(merged), ownByFunction(tree));
    }
  }
});

function ownByFunction({ item, self }: { item: Uint32Array; self: Float64Array }): number[] {
  const sums = new Array<number>(7).fill(0);
  for (let node = 1; node < item.length; node++) sums[item[node]!]! += self[node]!;
  return sums;
}

const BEFORE_NODES: NodeSample[] = [["main", 1, 1, 100, ["work", 2, 4, 400], ["old", 3, 1, 300]]];
const AFTER_NODES: NodeSample[] = [["main", 1, 1, 110, ["work", 2, 4, 200, ["work", 2, 1, 50]], ["new", 4, 2, 40]]];

async function methods() {
  const report = await reportOf({
    functions: ["main", "work", "old", "new"].map((name) => ({ name })),
    trees: [{ nodes: AFTER_NODES }, { nodes: BEFORE_NODES, side: "before" }],
  });
  return diffMethods({ report, trees: new SelectedTrees(report) });
}

test("functions of both recordings, in the terms of statistics", async () => {
  const { totals, functionsColumns: of } = await (await methods()).diffTable(selectionOf());
  assert.deepEqual(totals, [800, 400]);
  assert.deepEqual([...of.function], [0, 1, 2, 3]);
  assert.deepEqual([...of.beforeSelf], [100, 400, 300, 0]);
  assert.deepEqual([...of.afterSelf], [110, 250, 0, 40]);
  assert.deepEqual([...of.beforeTotal], [800, 400, 300, 0]);
  assert.deepEqual([...of.afterTotal], [400, 250, 0, 40], "recursion counts once");
  assert.deepEqual([...of.afterCalls], [1, 5, 0, 2]);
  assert.deepEqual([...of.sides], [BOTH, BOTH, BEFORE, AFTER]);
});

test("boxes have the width of one side and the costs of both", async () => {
  const request = { path: [], span: [0, 1] as [number, number], pixels: 400 };
  const all = await methods();
  const boxes = async (width: "before" | "after", shares: boolean) => {
    const layout = await all.diffFlame(selectionOf(), { width, shares }, request);
    const { x0, x1, function: functions } = layout.boxesColumns;
    const { beforeSelf, afterSelf, sides } = layout.sidesColumns;
    const lines = Array.from(x0, (_, box) =>
      [functions[box], x1[box]! - x0[box]!, beforeSelf[box], afterSelf[box], sides[box]].join(" "),
    );
    return { lines: lines.slice(1), greatest: layout.greatestSelf, total: layout.total };
  };
  assert.deepEqual(await boxes("after", false), {
    lines: ["0 400 100 110 3", "1 250 400 200 3", "3 40 0 40 2", "1 50 0 50 2"],
    greatest: 300,
    total: 400,
  });
  assert.deepEqual(await boxes("before", true), {
    lines: ["0 800 100 110 3", "1 400 400 200 3", "2 300 300 0 1"],
    greatest: 300 / 800,
    total: 800,
  });
});

test("threads and times of one recording do not restrict the other", async () => {
  const table = await (await methods()).diffTable({ ...selectionOf(), threads: [5], range: [1, 2] });
  assert.deepEqual(table.totals, [800, 400]);
});
