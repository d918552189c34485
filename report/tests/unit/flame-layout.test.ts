// The visible boxes, and finding them again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL, type FlameLayout, layoutOf, MANY } from "../../src/engine/flame/layout";
import { flameTreeOf } from "../../src/engine/flame/methods";
import { boxAt, neighbour, pathTo, rowOf, wayTo } from "../../src/page/views/flame/boxes";
import { type Plain, plainTree } from "./sample";
import { randomTree } from "./sample-random";

const [A, B, C, D] = [1, 2, 3, 4] as const;

function layout(
  nodes: Plain[],
  request: Partial<Parameters<typeof layoutOf>[1]> = {},
  mode: "heavy" | "met" = "heavy",
) {
  const tree = flameTreeOf(plainTree(...nodes), { mode, fold: false });
  return layoutOf(tree, { path: [], span: [0, 1], pixels: 100, ...request });
}

/** Formats boxes: `depth: function x0-x1 of caller's box`. */
function boxes({ boxesColumns: of }: FlameLayout): string[] {
  const name = (box: number) =>
    of.function[box] === ALL ? "all" : of.function[box] === MANY ? "many" : of.function[box];
  return Array.from(of.x0, (x0, box) => `${of.depth[box]}: ${name(box)} ${x0}-${of.x1[box]} ^${of.above[box]}`);
}

const SAMPLE: Plain[] = [
  [A, 1, 100, [B, 1, 300, [D, 1, 200]], [C, 1, 100]],
  [D, 1, 300],
];

test("all boxes, row by row", () => {
  const all = layout(SAMPLE);
  assert.deepEqual(boxes(all), [
    "0: all 0-1000 ^0",
    "1: 1 0-700 ^0",
    "1: 4 700-1000 ^0",
    "2: 2 0-500 ^1",
    "2: 3 500-600 ^1",
    "3: 4 0-200 ^3",
  ]);
  assert.equal(all.rows, 4);
  assert.deepEqual([all.whole, all.total, all.zoomed, all.isCut], [1000, 1000, 0, false]);
});

test("a zoom to a box keeps its callers, and removes others", () => {
  const zoomed = layout(SAMPLE, { path: [A, C] });
  assert.deepEqual(
    [zoomed.path, zoomed.extent, zoomed.window],
    [
      [A, C],
      [500, 600],
      [500, 600],
    ],
  );
  const seen = boxes(zoomed).map((line) => line.split(" ")[1]);
  assert.deepEqual(seen, ["all", "1", "2", "3"], "B is within the margin");
  assert.equal(zoomed.boxesColumns.function[zoomed.zoomed], C);
});

test("a part of a box can be visible; of a path that is gone, the remaining part is shown whole", () => {
  assert.deepEqual(layout(SAMPLE, { path: [A], span: [0.5, 0.75] }).window, [350, 525]);
  const gone = layout(SAMPLE, { path: [A, D], span: [0.5, 0.75] });
  assert.deepEqual([gone.path, gone.window], [[A], [0, 700]]);
});

test("boxes narrower than a pixel are merged", () => {
  const narrow: Plain[] = [
    [A, 1, 900],
    [B, 5, 4],
    [C, 6, 3],
    [D, 7, 2],
    [5, 1, 0],
    [6, 1, 91],
  ];
  assert.deepEqual(boxes(layout(narrow)), [
    "0: all 0-1000 ^0",
    "1: 1 0-900 ^0",
    "1: 6 900-991 ^0",
    "1: many 991-1000 ^0",
  ]);
  const met = layout(narrow, {}, "met");
  assert.deepEqual(boxes(met), ["0: all 0-1000 ^0", "1: 1 0-900 ^0", "1: many 900-909 ^0", "1: 6 909-1000 ^0"]);
  for (const of of [layout(narrow), met]) {
    const { boxesColumns } = of;
    const many = boxesColumns.function.indexOf(MANY);
    assert.deepEqual([boxesColumns.calls[many], boxesColumns.total[many]], [3, 9]);
  }
  assert.equal(layout(narrow, { span: [0.99, 1] }).boxesColumns.function.indexOf(MANY), -1);
});

test("a tree without a cost", () => {
  const empty = layout([[A, 1, 0]]);
  assert.deepEqual([boxes(empty), empty.whole], [["0: all 0-0 ^0"], 0]);
});

test("there are never more boxes than can be drawn", () => {
  const wide = Array.from({ length: 15_000 }, (_, item): Plain => [item + 1, 1, 1, [A, 1, 1]]);
  const cut = layout(wide, { pixels: 1e9 });
  assert.equal(cut.boxesColumns.x0.length, 20_000);
  assert.ok(cut.isCut);
  assert.equal(cut.rows, 3);
});

test("random trees: rows are sorted, boxes inside of their callers, and none is missing", () => {
  const seed = Number(process.env.SEED ?? 20_261_116);
  console.log(`SEED=${seed}`);
  for (let round = 0; round < 50; round++) {
    const tree = randomTree(seed + round, { nodes: 400, functions: 9 });
    for (const mode of ["heavy", "met", "callers"] as const) {
      const from = (round % 10) / 20;
      const flame = flameTreeOf(tree, { mode, fold: round % 2 === 0 });
      const all = layoutOf(flame, { path: [], span: [from, from + 0.3], pixels: 200 });
      const { x0, x1, depth, above } = all.boxesColumns;
      const pixel = (all.window[1] - all.window[0]) / 200;
      for (let box = 1; box < x0.length; box++) {
        assert.equal(depth[box], depth[above[box]!]! + 1);
        assert.ok(x0[box]! >= x0[above[box]!]!);
        assert.ok(x1[box]! > all.window[0] - 0.5 * 200 * pixel - 1e-6);
        if (depth[box] === depth[box - 1]) assert.ok(x0[box]! >= x1[box - 1]! - 1e-6);
      }
      if (mode !== "callers") assertFilled(all, pixel);
    }
  }
});

/** Asserts that the self cost of a box is the part that is in no box below it. */
function assertFilled(
  { boxesColumns: { x0, x1, self, above, function: functions }, window }: FlameLayout,
  pixel: number,
): void {
  const inside = new Float64Array(x0.length);
  for (let box = 1; box < x0.length; box++) inside[above[box]!]! += x1[box]! - x0[box]!;
  for (let box = 0; box < x0.length; box++) {
    const isInSight = x0[box]! >= window[0] && x1[box]! <= window[1];
    if (!isInSight || functions[box] === MANY) continue;
    const missing = x1[box]! - x0[box]! - inside[box]! - self[box]!;
    assert.ok(missing <= pixel + 1e-6, `box ${box} lacks ${missing}`);
  }
}

test("boxes are found by place, by keys and by path", () => {
  const all = layout(SAMPLE);
  assert.equal(boxAt(all, 550, 2, 0), 4);
  assert.equal(boxAt(all, 650, 2, 0), null);
  assert.equal(boxAt(all, 601, 2, 2), 4);
  assert.equal(boxAt(all, 100, 9, 0), null);
  assert.deepEqual(rowOf(all, 2), [3, 5]);
  assert.deepEqual(pathTo(all, 5), [A, B, D]);
  assert.deepEqual(wayTo(all, 5), [0, 1, 3, 5]);
  assert.equal(neighbour(all, 5, "caller"), 3);
  assert.equal(neighbour(all, 0, "caller"), 0);
  assert.equal(neighbour(all, 1, "callee"), 3);
  assert.equal(neighbour(all, 5, "callee"), 5);
  assert.equal(neighbour(all, 3, "right"), 4);
  assert.equal(neighbour(all, 4, "right"), 4);
  assert.equal(neighbour(all, 4, "left"), 3);
  assert.equal(neighbour(all, 3, "left"), 3);
});
