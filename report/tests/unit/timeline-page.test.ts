// The positions of items in the timeline.

import assert from "node:assert/strict";
import { test } from "node:test";
import { niceStep, ticksOf } from "../../src/page/views/timeline/axis";
import { layoutOf, placeAt, type TrackPlace } from "../../src/page/views/timeline/layout";
import type { Head, TrackInfo } from "../../src/shared/format";
import { momentText } from "../../src/shared/units";

test("steps are round numbers", () => {
  const steps = [1, 1.1, 7, 30, 999, 1001, 3e5, 1e9, 1.1e9, 6e9, 40e9, 200e9, 4000e9].map(niceStep);
  assert.deepEqual(steps, [1, 2, 10, 50, 1000, 2000, 5e5, 1e9, 2e9, 10e9, 60e9, 300e9, 7200e9]);
});

test("ticks are in the window, and not more than requested", () => {
  for (const [from, to] of [
    [0, 3600e9],
    [123, 4567],
    [1e9 + 3, 1e9 + 53],
    [5e11, 5e11 + 1000],
  ] as const) {
    const { step, times } = ticksOf(from, to, 8);
    assert.ok(times.length >= 2 && times.length <= 9, `${times}`);
    assert.ok(times.every((time) => time >= from && time <= to && time % step === 0));
  }
});

test("moments have the digits that their steps need", () => {
  assert.equal(momentText(250, 50, 900), "250 ns");
  assert.equal(momentText(1500, 100, 9000), "1.5 us");
  assert.equal(momentText(12e9, 1e9, 50e9), "12 s");
  assert.equal(momentText(12.3456789e9, 100, 50e9), "12.3456789 s");
  assert.equal(momentText(3723.5e9, 1e8), "1:02:03.5");
  assert.equal(momentText(65e9, 1e9), "1:05");
});

const track = (thread: number, depth: number): TrackInfo =>
  ({ thread, depth, beganNs: 0, endedNs: 1, spans: 1, levels: [], dense: [], instants: null }) as TrackInfo;

function headOf(depths: number[], processes = 1): Head {
  return {
    processes: Array.from({ length: processes }, (_, pid) => ({ pid })),
    threads: depths.map((_, of) => ({ process: of % processes, tid: of, name: "" })),
    timeline: {
      levels: [0],
      tracks: depths.map((depth, of) => track(of, depth)),
      counters: [{ name: "x", process: 0, block: 0 }],
    },
  } as unknown as Head;
}

const tracksOf = (head: Head, threads: number[] | null, opened: string[] = [], width = 1000) =>
  layoutOf(head, threads, new Set(opened), width).places.filter((of): of is TrackPlace => of.kind === "track");

test("tracks follow each other without a gap", () => {
  const layout = layoutOf(headOf([3, 40, 7, 1], 2), null, new Set(), 1000);
  assert.deepEqual(
    layout.places.map((of) => of.kind),
    ["process", "counter", "track", "track", "process", "track", "track"],
  );
  let top = 0;
  for (const place of layout.places) {
    assert.equal(place.top, top);
    assert.equal(placeAt(layout, top + 1), place);
    top += place.height;
  }
  assert.equal(layout.height, top);
});

test("deep tracks are cut until all rows are requested", () => {
  const head = headOf([3, 40]);
  const [small, deep] = tracksOf(head, null);
  assert.deepEqual([small!.rows, small!.more], [3, null]);
  assert.deepEqual([deep!.rows, deep!.more], [24, "more"]);
  const [, whole] = tracksOf(head, null, ["e1"]);
  assert.deepEqual([whole!.rows, whole!.more], [40, "fewer"]);
  const [, closed] = tracksOf(head, null, ["c1", "e1"]);
  assert.ok(closed!.isClosed && closed!.height < small!.height);
});

test("one thread alone is larger, with all of its rows", () => {
  const [alone] = tracksOf(headOf([3, 40]), [1]);
  const [, among] = tracksOf(headOf([3, 40]), null);
  assert.deepEqual([alone!.track, alone!.rows, alone!.more], [1, 40, null]);
  assert.ok(alone!.rowHeight > among!.rowHeight);
});

test("a closed process shows nothing but its name", () => {
  const layout = layoutOf(headOf([3, 40], 2), null, new Set(["p0"]), 1000);
  assert.deepEqual(
    layout.places.map((of) => of.kind),
    ["process", "process", "track"],
  );
});

test("on a narrow page names are above their tracks", () => {
  const [track] = tracksOf(headOf([3]), null, [], 390);
  assert.ok(track!.rowsTop > track!.top);
  assert.equal(tracksOf(headOf([3]), null)[0]!.rowsTop, tracksOf(headOf([3]), null)[0]!.top);
});
