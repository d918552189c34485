// Tiles, their visible part, and searches in them agree with a scan of all spans.

import assert from "node:assert/strict";
import { test } from "node:test";
import { addActivity } from "../../src/engine/timeline/activity";
import { aroundOf, longestIn, nextOf } from "../../src/engine/timeline/search";
import { densePlaces, detailOf, FAILED, spanPlaces } from "../../src/engine/timeline/tiles";
import { DENSE, levelOf, spansOf, type Window } from "../../src/engine/timeline/visible-spans";
import { LEVELS, randomOf, randomSpans, type SpanSample, timelineOf } from "./timeline-sample";

const SEEDS = [1, 20, 300, 4000];
const LENGTH = 60_000;
const window = (from: number, to: number, pixelNs: number): Window => ({
  from,
  to,
  pixelNs,
  depthLimit: Infinity,
  most: Infinity,
});
const reaches = (span: SpanSample, { from, to }: Window) => span.begin < to && span.begin + span.extent >= from;

function* samples() {
  for (const seed of SEEDS) {
    const random = randomOf(seed);
    const spans = randomSpans(random, LENGTH);
    yield { seed, random, spans, ...timelineOf([spans]) };
  }
}

test("a tile contains its spans with their details", async () => {
  const spans = [
    { begin: 10, extent: 50, depth: 0, frame: 3 },
    { begin: 12, extent: 20, depth: 1, frame: 0, flags: FAILED, detail: { error: "ValueError: no" } },
  ];
  const { tiles, info } = timelineOf([spans]);
  const tile = await tiles.get(spanPlaces(info, info.tracks[0]!, 0)[0]!);
  assert.deepEqual([...tile.begin], [10, 12]);
  assert.deepEqual([...tile.frame], [4, 1], "frames are one more, so that none is 0");
  assert.deepEqual([...tile.flags!], [0, FAILED]);
  assert.deepEqual(detailOf(tile, 0), {});
  assert.deepEqual(detailOf(tile, 1), { error: "ValueError: no" });
});

test("the least recently requested tiles are dropped", async () => {
  const spans = randomSpans(randomOf(5), LENGTH);
  const { tiles, info } = timelineOf([spans], 16, 16 * 32 * 4);
  const places = LEVELS.flatMap((_, level) => spanPlaces(info, info.tracks[0]!, level));
  assert.ok(places.length > 10);
  const first = await tiles.get(places[0]!);
  for (const place of places) {
    await tiles.get(place);
    assert.equal(await tiles.get(places[0]!), first, "it was requested last");
    assert.ok(tiles.size <= 16 * 32 * 4);
  }
  for (const place of places.slice(1)) await tiles.get(place);
  assert.notEqual(await tiles.get(places[0]!), first, "it was decoded again");
});

test("the level is as fine as half a pixel, and coarser if there are too many rows", () => {
  const { info } = timelineOf([randomSpans(randomOf(9), LENGTH)]);
  const track = info.tracks[0]!;
  assert.equal(levelOf(info, track, window(0, LENGTH, 1)), 0);
  assert.equal(levelOf(info, track, window(0, LENGTH, 199)), 0);
  assert.equal(levelOf(info, track, window(0, LENGTH, 200)), 1);
  assert.equal(levelOf(info, track, window(0, LENGTH, 1e9)), 3);
  assert.ok(levelOf(info, track, { ...window(0, LENGTH, 1), most: 50 }) > 0);
});

test("long spans are visible themselves, and shorter ones in a piece", async () => {
  for (const { seed, random, spans, tiles, info } of samples()) {
    for (let round = 0; round < 20; round++) {
      const from = random(LENGTH);
      const seen = window(from, from + 1 + random(LENGTH - from), [1, 50, 300, 2000, 20_000][round % 5]!);
      const { level, spanColumns } = await spansOf(tiles, info, info.tracks[0]!, seen);
      const rows = [...spanColumns.begin.keys()].map((row) => ({
        begin: spanColumns.begin[row]!,
        extent: spanColumns.extent[row]!,
        depth: spanColumns.depth[row]!,
        frame: spanColumns.frame[row]! - 1,
        isDense: spanColumns.flags[row] === DENSE,
      }));
      const keyOf = (of: SpanSample) => [of.begin, of.extent, of.depth, of.frame].join(" ");
      const alone = new Set(rows.filter((row) => !row.isDense).map(keyOf));
      for (const span of spans.filter((of) => reaches(of, seen))) {
        const isLong = span.extent >= Math.max(LEVELS[level]!, seen.pixelNs);
        if (isLong) assert.ok(alone.has(keyOf(span)), `seed ${seed}: ${keyOf(span)}`);
        const isNear = rows.some(
          (row) =>
            row.depth === span.depth &&
            row.begin < span.begin + span.extent + seen.pixelNs &&
            row.begin + row.extent > span.begin - seen.pixelNs,
        );
        assert.ok(isNear, `seed ${seed}: nothing is at ${keyOf(span)}`);
      }
      assert.ok(rows.every((row) => reaches(row, seen)));
      for (let row = 1; row < rows.length; row++) {
        const [before, here] = [rows[row - 1]!, rows[row]!];
        assert.ok(before.begin < here.begin || (before.begin === here.begin && before.depth <= here.depth));
      }
    }
  }
});

test("a pixel and a depth have one piece of shorter spans, but all failed ones", async () => {
  const spans = Array.from({ length: 90 }, (_, at) => ({
    begin: at,
    extent: 1,
    depth: 0,
    frame: 1,
    flags: at === 40 || at === 41 ? FAILED : 0,
  }));
  const { tiles, info } = timelineOf([spans], 1000);
  const { spanColumns } = await spansOf(tiles, info, info.tracks[0]!, window(0, 90, 30));
  assert.deepEqual([...spanColumns.begin], [0, 29, 40, 41, 59, 89]);
});

test("the number of depths is limited", async () => {
  const { tiles, info } = timelineOf([randomSpans(randomOf(2), LENGTH)]);
  const { spanColumns } = await spansOf(tiles, info, info.tracks[0]!, { ...window(0, LENGTH, 1), depthLimit: 2 });
  assert.equal(Math.max(...spanColumns.depth), 1);
});

test("the next span of a function is found, and the one before", async () => {
  for (const { seed, random, spans, tiles, info } of samples()) {
    const searched = { tiles, info, tracks: [0], isWanted: () => true };
    const ofFrame = spans.filter((span) => span.frame === 3).sort((a, b) => a.begin - b.begin || a.depth - b.depth);
    for (let round = 0; round < 20; round++) {
      const time = random(LENGTH);
      const later = await nextOf(searched, (frame) => frame === 3, { time, track: 0, depth: 99 }, 1);
      assert.equal(later?.begin, ofFrame.find((span) => span.begin > time)?.begin, `seed ${seed}, after ${time}`);
      const earlier = await nextOf(searched, (frame) => frame === 3, { time, track: 0, depth: -1 }, -1);
      const expected = ofFrame.filter((span) => span.begin < time).pop();
      assert.equal(earlier?.begin, expected?.begin, `seed ${seed}, before ${time}`);
    }
    const walked: number[] = [];
    let at = { time: -1, track: 0, depth: 0 };
    for (;;) {
      const found = await nextOf(searched, (frame) => frame === 3, at, 1);
      if (!found) break;
      walked.push(found.begin);
      at = { time: found.begin, track: found.track, depth: found.depth };
    }
    assert.deepEqual(
      walked,
      ofFrame.map((span) => span.begin),
      `seed ${seed}`,
    );
  }
});

test("an obsolete search ends", async () => {
  const { tiles, info } = timelineOf([randomSpans(randomOf(2), LENGTH)]);
  const searched = { tiles, info, tracks: [0], isWanted: () => false };
  assert.equal(await nextOf(searched, () => true, { time: -1, track: 0, depth: 0 }, 1), null);
});

test("the longest spans are those with the longest visible part, without those that cover the window", async () => {
  for (const { seed, random, spans, tiles, info } of samples()) {
    const searched = { tiles, info, tracks: [0], isWanted: () => true };
    for (let round = 0; round < 20; round++) {
      const from = random(LENGTH);
      const to = from + 1 + random(LENGTH - from);
      const seenOf = ({ begin, extent }: SpanSample) =>
        begin < from && begin + extent > to ? 0 : Math.min(begin + extent, to) - Math.max(begin, from);
      const expected = spans
        .map(seenOf)
        .filter((seen) => seen > 0)
        .sort((a, b) => b - a);
      const found = await longestIn(searched, { from, to }, 5, () => true);
      assert.deepEqual(found.map(seenOf), expected.slice(0, 5), `seed ${seed}, ${from} to ${to}`);
      const around = spans.filter((span) => span.begin < from && span.begin + span.extent > to);
      assert.deepEqual(
        await aroundOf(tiles, info, info.tracks[0]!, { from, to }),
        around.sort((a, b) => a.depth - b.depth).map((span) => span.frame),
        `seed ${seed}, ${from} to ${to}`,
      );
    }
    const others = await longestIn(searched, { from: 0, to: LENGTH }, 5, (frame) => frame !== 2);
    assert.ok(others.every((span) => span.frame !== 2));
  }
});

test("the activity adds up to the time of all spans", async () => {
  for (const { seed, spans, tiles, info } of samples()) {
    for (const pixelNs of [1, 300, 20_000]) {
      const end = LENGTH + 10_000;
      const pieces = new Float64Array(100);
      await addActivity(tiles, info, info.tracks[0]!, window(0, end, pixelNs), pieces);
      const sum = pieces.reduce((a, b) => a + b, 0) * (end / pieces.length);
      const expected = spans.reduce((total, span) => total + span.extent, 0);
      assert.ok(Math.abs(sum - expected) < 1, `seed ${seed}, ${pixelNs}: ${sum}, not ${expected}`);
    }
  }
});

test("the first level has no pieces", () => {
  const { info } = timelineOf([randomSpans(randomOf(2), LENGTH)]);
  assert.deepEqual(densePlaces(info.tracks[0]!, 0), []);
});
