import assert from "node:assert/strict";
import { test } from "node:test";
import { hotLines } from "../../src/page/views/source/hot";

function columns(costs: [line: number, self: number, total: number][]) {
  return {
    line: Uint32Array.from(costs, ([line]) => line),
    self: Float64Array.from(costs, ([, self]) => self),
    total: Float64Array.from(costs, ([, , total]) => total),
    isWhole: new Uint8Array(costs.length),
  };
}

test("keys visit hot lines in the order of the file, and wrap around its ends", () => {
  const hot = hotLines(
    columns([
      [3, 10, 10],
      [7, 500, 500],
      [9, 0, 600],
      [20, 40, 40],
      [21, 0.01, 1],
    ]),
  );
  assert.deepEqual(hot.byCost, [7, 20, 3]);
  assert.deepEqual(
    [0, 3, 7, 20].map((line) => hot.from(line, 1)),
    [3, 7, 20, 3],
  );
  assert.deepEqual(
    [0, 3, 7, 99].map((line) => hot.from(line, -1)),
    [20, 20, 3, 20],
  );
});

test("at most twenty lines are hot", () => {
  const hot = hotLines(columns(Array.from({ length: 50 }, (_, at) => [at + 1, 100 + at, 0])));
  assert.deepEqual(
    hot.byLine,
    Array.from({ length: 20 }, (_, at) => 31 + at),
  );
});

test("if no line has self cost, the totals determine the hot lines", () => {
  assert.deepEqual(
    hotLines(
      columns([
        [1, 0, 5],
        [2, 0, 9],
      ]),
    ).byCost,
    [2, 1],
  );
  assert.equal(hotLines(columns([])).from(1, 1), undefined);
});
