// Boxes of flame graphs: order, folded recursion, and trees from below.

import assert from "node:assert/strict";
import { test } from "node:test";
import { costliestPath, type FlameOptions, flameTreeOf } from "../../src/engine/flame/methods";
import type { FlameTree } from "../../src/engine/flame/tree";
import { statisticsOf } from "../../src/engine/statistics";
import { plainTree } from "./sample";
import { randomTree } from "./sample-random";

const [A, B, C, D] = [1, 2, 3, 4] as const;

/** Formats a tree: `item start weight self calls`, indented; with ` xN` for folded recursion. */
function text(tree: FlameTree): string[] {
  const lines: string[] = [];
  const write = (node: number, depth: number) => {
    const times = tree.times[node]! > 1 ? ` x${tree.times[node]}` : "";
    const numbers = [tree.item[node], tree.start[node], tree.weight[node], tree.self[node], tree.calls[node]];
    lines.push(`${" ".repeat(depth)}${numbers.join(" ")}${times}`);
    const [from, to] = tree.children(node);
    for (let child = from; child < to; child++) write(child, depth + 1);
  };
  write(0, 0);
  return lines;
}

function flame(tree: Parameters<typeof flameTreeOf>[0], options: Partial<FlameOptions> = {}): FlameTree {
  return flameTreeOf(tree, { mode: "heavy", fold: false, ...options });
}

test("the highest cost is on the left, or the first call", () => {
  const tree = plainTree([A, 1, 1, [B, 2, 10], [C, 3, 30]], [D, 4, 100]);
  assert.deepEqual(text(flame(tree)), [
    "0 0 141 0 0",
    " 4 0 100 100 4",
    " 1 100 41 1 1",
    "  3 100 30 30 3",
    "  2 130 10 10 2",
  ]);
  const met = ["0 0 141 0 0", " 1 0 41 1 1", "  2 0 10 10 2", "  3 10 30 30 3", " 4 41 100 100 4"];
  assert.deepEqual(text(flame(tree, { mode: "met" })), met);
});

test("costs below 0 have no width, and their callees keep their widths", () => {
  const tree = flame(plainTree([A, 1, -50, [B, 1, 20]]));
  assert.deepEqual(text(tree), ["0 0 20 0 0", " 1 0 20 -50 1", "  2 0 20 20 1"]);
  assert.equal(tree.total[1], -30);
});

test("direct recursion is folded to one box, with the callees of all its calls", () => {
  const tree = plainTree([A, 1, 1, [A, 2, 10, [A, 3, 100], [B, 1, 5]], [B, 1, 7, [A, 1, 1000]]]);
  assert.deepEqual(text(flame(tree, { fold: true })), [
    "0 0 1123 0 0",
    " 1 0 1123 111 6 x3",
    "  2 0 1012 12 2",
    "   1 0 1000 1000 1",
  ]);
});

test("from below: functions by self cost, and their callers", () => {
  const tree = plainTree([A, 1, 1, [B, 2, 10, [C, 3, 30]], [C, 4, 60]]);
  assert.deepEqual(text(flame(tree, { mode: "callers" })), [
    "0 0 101 0 0",
    " 3 0 90 0 7",
    "  1 0 60 60 4",
    "  2 60 30 0 3",
    "   1 60 30 30 3",
    " 2 90 10 0 2",
    "  1 90 10 10 2",
    " 1 100 1 1 1",
  ]);
});

test("from below, recursion is folded too", () => {
  const tree = plainTree([A, 1, 0, [B, 1, 1, [B, 1, 10, [B, 1, 100]]]]);
  const lines = ["0 0 111 0 0", " 2 0 111 0 3", "  1 0 111 111 3", " 1 111 0 0 1"];
  assert.deepEqual(text(flame(tree, { mode: "callers", fold: true })), lines);
});

test("a path leads to its box, past hidden functions", () => {
  const tree = flame(plainTree([A, 1, 1, [B, 1, 10, [C, 1, 30]]]));
  const items = (path: number[]) =>
    tree
      .along(path)
      .slice(1)
      .map((node) => tree.item[node]);
  assert.deepEqual(items([A, B, C]), [A, B, C]);
  assert.deepEqual(items([A, D, B]), [A, B]);
  assert.deepEqual(items([D]), []);
});

test("the most expensive path of a function", () => {
  const tree = plainTree([A, 1, 1, [C, 1, 10]], [B, 1, 1, [D, 1, 1, [C, 1, 11]]]);
  assert.deepEqual(costliestPath(tree, C), [B, D, C]);
  assert.equal(costliestPath(tree, 9), null);
});

test("random trees: no cost is lost in either direction", () => {
  const seed = Number(process.env.SEED ?? 20_261_116);
  console.log(`SEED=${seed}`);
  for (let round = 0; round < 30; round++) {
    const tree = randomTree(seed + round, { nodes: 300, functions: 7 });
    const self = statisticsOf(tree, 8).functions.self;
    for (const fold of [false, true]) {
      for (const mode of ["heavy", "met", "callers"] as const) {
        const all = flame(tree, { mode, fold });
        text(all);
        assert.equal(all.weight[0], tree.total[0]);
        assert.equal(sumOfSelf(all), tree.total[0], `${mode} ${fold}`);
        for (let node = 1; node < all.parent.length; node++) {
          const above = all.parent[node]!;
          assert.ok(all.start[node]! >= all.start[above]!);
          assert.ok(all.start[node]! + all.weight[node]! <= all.start[above]! + all.weight[above]!);
        }
      }
      const callers = flame(tree, { mode: "callers", fold });
      const [from, to] = callers.children(0);
      for (let node = from; node < to; node++) assert.equal(callers.total[node], self[callers.item[node]!]);
    }
  }
});

function sumOfSelf(tree: FlameTree): number {
  return tree.self.reduce((sum, cost) => sum + cost, 0);
}
