// The visible part of the width, and its text in the address.

import assert from "node:assert/strict";
import { test } from "node:test";
import { between, pathOf, pathText, scaled, spanOf, spanText, within } from "../../src/page/views/flame/window";

test("zooming keeps the place under the pointer", () => {
  const [from, to] = scaled([100, 200], 0.5, 125);
  assert.deepEqual([from, to], [112.5, 162.5]);
  assert.equal((125 - from) / (to - from), 0.25);
});

test("a span stays inside, and keeps its width if it can", () => {
  assert.deepEqual(within([-10, 20], [0, 100]), [0, 30]);
  assert.deepEqual(within([90, 120], [0, 100]), [70, 100]);
  assert.deepEqual(within([-10, 200], [0, 100]), [0, 100]);
});

test("the interpolation between two spans begins and ends at them", () => {
  assert.deepEqual(between([0, 10], [4, 6], 0), [0, 10]);
  assert.deepEqual(between([0, 10], [4, 6], 1), [4, 6]);
});

test("spans and paths are read back from the address, and nonsense selects everything", () => {
  assert.equal(spanText([0, 1]), "");
  assert.equal(spanText([1e-12, 1 - 1e-12]), "", "what zooming in and out again gives");
  assert.deepEqual(spanOf(spanText([0.25, 0.5])), [0.25, 0.5]);
  const narrow = spanOf(spanText([0.123456789, 0.123456799]));
  assert.ok(Math.abs(narrow[1] - narrow[0] - 1e-8) < 1e-11);
  for (const text of ["", "x~y", "0.5~0.2", "-1~2", "0.5"]) assert.deepEqual(spanOf(text), [0, 1]);
  assert.deepEqual(pathOf(pathText([12, 0, 7])), [12, 0, 7]);
  for (const text of ["", "a.b", "-3"]) assert.deepEqual(pathOf(text), []);
});
