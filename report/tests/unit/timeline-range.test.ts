// Trees of a range follow the rules of `crates/stackweave-profile/src/aggregate/span_tree.rs`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenRange } from "../../src/engine/selected";
import { type Range, RangeTrees, Superseded } from "../../src/engine/timeline/range-tree";
import { FOUND_OPEN } from "../../src/engine/timeline/tiles";
import type { CallTree } from "../../src/engine/tree";
import type { Head } from "../../src/shared/format";
import { selectionOf } from "./sample";
import { randomOf, randomSpans, type SpanSample, timelineOf } from "./timeline-sample";

/** Calls, total and self time by path. */
type Costs = Record<string, [calls: number, total: number, self: number]>;

function costsOf(tree: CallTree): Costs {
  const paths = [""];
  const costs: Costs = {};
  for (let node = 1; node < tree.length; node++) {
    paths[node] = `${paths[tree.parent[node]!]}/${tree.item[node]}`;
    costs[paths[node]!] = [tree.calls[node]!, tree.total[node]!, tree.self[node]!];
  }
  return costs;
}

/** Computes the same by hand: spans have a path, are cut, and their time is subtracted from their caller. */
function expectedCosts(spans: SpanSample[], [from, to]: Range): Costs {
  const costs: Costs = {};
  const open: { path: string; end: number }[] = [];
  for (const { begin, extent, depth, frame } of [...spans].sort((a, b) => a.begin - b.begin || a.depth - b.depth)) {
    open.length = depth;
    const above = open[depth - 1]?.path ?? "";
    const path = `${above}/${frame}`;
    open.push({ path, end: begin + extent });
    if (begin >= to || (begin + extent <= from && begin < from)) continue;
    const time = Math.min(begin + extent, to) - Math.max(begin, from);
    costs[path] ??= [0, 0, 0];
    costs[path][0]++;
    costs[path][1] += time;
    costs[path][2] += time;
    if (above) costs[above]![2] -= time;
  }
  return costs;
}

async function treesOf(tracks: SpanSample[][], range: Range, threads: number[] | null = null): Promise<Costs[]> {
  const { info, tiles } = timelineOf(tracks);
  return (await new RangeTrees(info, tiles).get(range, threads)).map(costsOf);
}

test("spans are cut to the range, and those outside are not counted", async () => {
  const spans: [frame: number, begin: number, end: number][] = [
    [1, 0, 9],
    [2, 0, 10],
    [3, 0, 11],
    [4, 10, 10],
    [5, 19, 30],
    [6, 20, 30],
    [7, 0, 100],
  ];
  // Each is on a separate track, because they are not nested.
  const tracks = spans.map(([frame, begin, end]) => [{ frame, begin, extent: end - begin, depth: 0 }]);
  const costs = Object.assign({}, ...(await treesOf(tracks, [10, 20])));
  assert.deepEqual(costs, { "/3": [1, 1, 1], "/4": [1, 0, 0], "/5": [1, 1, 1], "/7": [1, 10, 10] });
});

test("a span that was open before the recording is no call", async () => {
  const spans = [{ frame: 1, begin: 0, extent: 50, depth: 0, flags: FOUND_OPEN }];
  assert.deepEqual(await treesOf([spans], [10, 20]), [{ "/1": [0, 10, 10] }]);
});

test("the tree of any range is that of a scan of all spans", async () => {
  for (const seed of [1, 22, 333, 4444]) {
    const random = randomOf(seed);
    const spans = randomSpans(random, 30_000);
    for (let round = 0; round < 25; round++) {
      const from = random(30_000);
      const range: Range = [from, from + 1 + random(30_000)];
      const [costs] = await treesOf([spans], range);
      assert.deepEqual(costs, expectedCosts(spans, range), `seed ${seed}, ${range}`);
    }
    const edge = spans[random(spans.length)]!;
    for (const range of [
      [edge.begin, edge.begin + edge.extent + 1],
      [0, edge.begin + 1],
    ] as Range[]) {
      assert.deepEqual((await treesOf([spans], range))[0], expectedCosts(spans, range), `seed ${seed}, ${range}`);
    }
  }
});

test("only the requested threads are counted", async () => {
  const span = (frame: number): SpanSample[] => [{ frame, begin: 0, extent: 50, depth: 0 }];
  assert.deepEqual(await treesOf([span(1), span(2), span(3)], [0, 10], [0, 2]), [
    { "/1": [1, 10, 10] },
    { "/3": [1, 10, 10] },
  ]);
});

test("a range is dropped when another is selected, and not when it is requested again", async () => {
  const { info, tiles } = timelineOf([randomSpans(randomOf(3), 30_000)]);
  const trees = new RangeTrees(info, tiles);
  const first = trees.get([0, 20_000], null);
  const same = trees.get([0, 20_000], null);
  assert.equal((await same)[0], (await first)[0]);
  const given = trees.get([10, 20_000], null);
  const newer = trees.get([20, 20_000], null);
  await assert.rejects(given, Superseded);
  assert.equal((await newer).length, 1);
});

test("a range applies only to time, and not if it is the whole recording", () => {
  const head = { durationNs: 100, timeline: timelineOf([[{ begin: 0, extent: 9, depth: 0, frame: 0 }]]).info } as Head;
  const ranged = { ...selectionOf("time"), range: [10, 20] as Range };
  assert.deepEqual(chosenRange(head, ranged, "after"), [10, 20]);
  assert.equal(chosenRange(head, ranged, "before"), null);
  assert.equal(chosenRange(head, { ...ranged, measure: "bytes" }, "after"), null);
  assert.equal(chosenRange(head, { ...ranged, range: [0, 101] }, "after"), null);
  assert.equal(chosenRange({ ...head, timeline: null }, ranged, "after"), null);
});
