import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../../src/engine/decode";
import { hostCurve } from "../../src/engine/memory/curve";
import { FREE, PENDING, type SegmentColumns, segmentsOf, TAKEN } from "../../src/engine/memory/segments";
import { Stacks, shownFrames } from "../../src/engine/memory/stacks";
import { nearestMark } from "../../src/page/views/memory/marks";
import { blockAt, boxesOf, layOut, ROW } from "../../src/page/views/memory/ribbon";
import { fragmentation, neverFreed, poolWords } from "../../src/shared/memory";
import { SHOW_DEFAULT } from "../../src/shared/selection";
import { column, reportOf } from "./sample";

function columns(...of: number[][]): Columns {
  return new Columns(Uint8Array.from(of.flatMap(column)));
}

/** Two segments of one pool and one of another: of 100 bytes, of 60 with a hole before its block, and of 40. */
function segments(): SegmentColumns {
  return segmentsOf(
    columns(
      [1000, 5000, 9000],
      [100, 60, 40],
      [0, 0, 1],
      [0, 7, 0],
      [1, 0, 2],
      [3, 1, 1],
      [0, 0, 0, 20, 0],
      [30, 50, 20, 40, 40],
      [25, 0, 20, 40, 33],
      [3, 0, 2, 3, 1],
      [4, 0, 2, 4, 1],
    ),
  );
}

test("the curve of a device has pending and reserved memory", () => {
  const { time, taken, inMemory, host } = hostCurve(columns([5, 10], [1, 2], [0, 3], [8, 16]));
  assert.deepEqual(
    [[...time], [...taken], [...host!.pending], [...host!.reserved]],
    [
      [5, 15],
      [1, 2],
      [0, 3],
      [8, 16],
    ],
  );
  assert.ok(inMemory.every(Number.isNaN));
});

test("stacks are paths of frames, outermost first", () => {
  const stacks = new Stacks(columns([0, 1, 1, 2], [0, 7, 8, 9]));
  assert.deepEqual(
    [0, 1, 2, 3].map((node) => stacks.frames(node)),
    [[], [7], [7, 8], [7, 9]],
  );
});

test("a stack has the frames that a filter shows, or all if it shows none", async () => {
  const report = await reportOf({
    functions: [
      { name: "main" },
      { name: "empty", origin: "library" },
      { name: "inside", origin: "library" },
      { name: "eval", origin: "interpreter" },
    ],
    trees: [{ nodes: [["main", 1, 0, 0, ["empty", 2, 0, 0, ["inside", 3, 0, 0, ["eval", 4, 0, 0]]]]] }],
  });
  const frames = [0, 1, 2, 3].map((of) => report.names.frames.function.indexOf(of));
  const shown = (filter: object) =>
    shownFrames(report.names, frames, { ...SHOW_DEFAULT, ...filter }).map((frame) => frames.indexOf(frame));
  assert.deepEqual(shown({}), [0, 1]);
  assert.deepEqual(shown({ internals: true }), [0, 1, 2, 3]);
  assert.deepEqual(shown({ only: "nothing of it" }), [0, 1, 2, 3]);
});

test("blocks are at their offsets in their segments", () => {
  const { segmentsColumns, blocksColumns } = segments();
  assert.deepEqual([...segmentsColumns.firstBlock], [0, 3, 4, 5]);
  assert.deepEqual([...blocksColumns.segment], [0, 0, 0, 1, 2]);
  assert.deepEqual([...blocksColumns.offset], [0, 30, 80, 20, 0]);
  assert.deepEqual([...blocksColumns.use], [TAKEN, FREE, PENDING, TAKEN, TAKEN]);
});

test("segments have the length of their size, and continue in the next row", () => {
  // 200 bytes in 4 rows of 50 pixels: a pixel is a byte.
  const ribbon = layOut(segments(), 50, 4);
  const first = ribbon.pieces.filter((piece) => piece.segment === 0);
  assert.deepEqual(
    first.map(({ left, width, from, to }) => [left, width, from, to]),
    [
      [0, 50, 0, 50],
      [0, 50, 50, 100],
    ],
  );
  for (const segment of [0, 1, 2]) {
    const wide = ribbon.pieces.filter((piece) => piece.segment === segment).reduce((sum, of) => sum + of.width, 0);
    assert.equal(wide, [100, 60, 40][segment]);
  }
  assert.ok(ribbon.pieces.every(({ left, width }) => left >= 0 && left + width <= 50));
  assert.deepEqual(
    ribbon.labels.map((label) => label.pool),
    [0, 1],
  );
  assert.ok(ribbon.pieces.every(({ top }) => top + ROW <= ribbon.height));
});

test("a block is found where it is drawn, and nothing between blocks", () => {
  for (const [width, rows] of [
    [50, 4],
    [333, 2],
    [7, 10],
  ] as const) {
    const all = segments();
    const ribbon = layOut(all, width, rows);
    const { segment, offset, size } = all.blocksColumns;
    for (let block = 0; block < size.length; block++) {
      const pieces = ribbon.pieces.filter((piece) => piece.segment === segment[block]);
      const boxes = boxesOf(pieces, offset[block]!, offset[block]! + size[block]!);
      assert.ok(boxes.length > 0);
      for (const box of boxes) {
        assert.equal(blockAt(all, ribbon, box.left + box.width / 2, box.top + ROW / 2), block);
        assert.equal(blockAt(all, ribbon, box.left + box.width / 2, box.top - 1), null);
      }
    }
    const hole = boxesOf(
      ribbon.pieces.filter((piece) => piece.segment === 1),
      0,
      20,
    )[0]!;
    assert.equal(blockAt(all, ribbon, hole.left + hole.width / 2, hole.top + 1), null);
  }
});

test("an empty tree has an empty layout", () => {
  const none = segmentsOf(columns(...Array.from({ length: 11 }, () => [])));
  assert.deepEqual(layOut(none, 100, 8), { pieces: [], labels: [], height: 0 });
});

test("memory from before the recording is no leak of it", () => {
  const amount = (bytes: number, blocks: number) => ({ bytes, blocks });
  const left = neverFreed({ live: amount(10, 3), fromBefore: amount(4, 1) } as Parameters<typeof neverFreed>[0]);
  assert.deepEqual(left, amount(6, 2));
  assert.deepEqual(["default", "graph 3", "pool 3"].map(poolWords), ["default pool", "graph 3 pool", "pool 3"]);
});

test("the fragmentation of several processes is summed up", () => {
  assert.equal(fragmentation([]), null);
  assert.equal(fragmentation([{ free: 0, largestFree: 0 }]), null);
  assert.equal(fragmentation([{ free: 100, largestFree: 75 }]), 0.25);
  const whole = { free: 100, largestFree: 100 };
  assert.equal(fragmentation([whole, whole]), 0, "each has one free block");
  assert.equal(fragmentation([whole, { free: 300, largestFree: 100 }]), 0.5);
});

test("a click selects the nearest mark", () => {
  assert.equal(nearestMark([], 10), null);
  assert.equal(nearestMark([17, 3], 10), null);
  assert.equal(nearestMark([5, 9, 30], 10), 1);
  assert.equal(nearestMark([16], 10), 0);
});
