import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallGraph, GraphArrow, GraphBox } from "../../src/engine/graph/methods";
import { shortened } from "../../src/engine/graph/text-size";
import { fitting, showing, zoomed } from "../../src/page/views/graph/camera";
import { heatFill, heatLine } from "../../src/page/views/graph/heat";
import { neighbour, stepOf } from "../../src/page/views/graph/keys";
import { arrival, arrowHead, arrowPath, loopPath } from "../../src/page/views/graph/shapes";

function box(of: number, x: number, y: number): GraphBox {
  return { of, calls: 1, self: 1, total: 1, x, y, width: 100, height: 50, title: "", place: "", lines: [] };
}

function arrow(from: number, to: number, total: number): GraphArrow {
  return { from, to, calls: 1, total, points: [], label: null, text: "" };
}

test("keys lead to the heaviest caller and callee, and along a row", () => {
  const graph: CallGraph = {
    direction: "down",
    total: 10,
    width: 500,
    height: 300,
    boxes: [box(9, 200, 30), box(8, 100, 130), box(7, 300, 130), box(6, 450, 140)],
    arrows: [arrow(0, 1, 2), arrow(0, 2, 5), arrow(0, 0, 9), arrow(1, 3, 1), arrow(2, 3, 3)],
    functionsLeftOut: 0,
    isFull: false,
    edgesLeftOut: 0,
  };
  assert.equal(neighbour(graph, 0, "callee"), 2);
  assert.equal(neighbour(graph, 3, "caller"), 2);
  assert.equal(neighbour(graph, 0, "caller"), undefined);
  assert.equal(neighbour(graph, 1, "after"), 2);
  assert.equal(neighbour(graph, 3, "before"), 2);
  assert.equal(neighbour(graph, 1, "before"), undefined);
  assert.deepEqual(
    ["ArrowUp", "ArrowDown", "ArrowRight", "x"].map((key) => stepOf(graph, key)),
    ["caller", "callee", "after", undefined],
  );
  const across = {
    ...graph,
    direction: "right" as const,
    boxes: graph.boxes.map((of) => ({ ...of, x: of.y, y: of.x })),
  };
  assert.equal(stepOf(across, "ArrowRight"), "callee");
  assert.equal(stepOf(across, "ArrowUp"), "before");
  assert.equal(neighbour(across, 1, "after"), 2);
});

test("a camera shows everything, keeps the point of a zoom, and shows a box", () => {
  const all = fitting({ width: 2000, height: 500 }, { width: 1000, height: 800 });
  assert.deepEqual(all, { scale: 0.5, x: 0, y: 275 });
  assert.equal(fitting({ width: 10, height: 10 }, { width: 1000, height: 800 }).scale, 1);
  const closer = zoomed(all, 2, 300, 400);
  assert.equal(closer.scale, 1);
  assert.equal((300 - closer.x) / closer.scale, (300 - all.x) / all.scale);
  assert.equal((400 - closer.y) / closer.scale, (400 - all.y) / all.scale);
  const window = { width: 1000, height: 800 };
  const target = { x: 1800, y: 100, width: 100, height: 50 };
  const moved = showing(closer, target, window);
  assert.ok((target.x + 50) * moved.scale + moved.x <= 1000);
  assert.deepEqual(showing(moved, target, window), moved);
});

test("colours belong to the theme and are between the limits", () => {
  assert.match(heatFill(0, false), /^hsl\(214 50% 95%\)$/);
  assert.match(heatFill(1, true), /^hsl\(4 58% 31%\)$/);
  assert.equal(heatFill(7, false), heatFill(1, false));
  assert.equal(heatFill(-0.3, false), heatFill(0.3, false));
  assert.notEqual(heatLine(0.5, true), heatLine(0.5, false));
});

test("arrows go through their points, and their heads point where they arrive", () => {
  assert.equal(arrowPath([0, 0, 10, 20], "down"), "M0.0 0.0 C0.0 10.0 10.0 10.0 10.0 20.0");
  assert.equal(arrowPath([0, 0, 10, 20], "right"), "M0.0 0.0 C5.0 0.0 5.0 20.0 10.0 20.0");
  assert.deepEqual(arrival([0, 0, 10, 20], "down"), [0, 1]);
  assert.deepEqual(arrival([0, 20, 10, 0], "down"), [0, -1]);
  assert.deepEqual(arrival([0, 20, 10, 0], "right"), [1, 0]);
  assert.equal(arrowHead([0, 0, 10, 20], [0, 1], 10), "M10.0 20.0 L14.5 10.0 L5.5 10.0 Z");
});

test("loops go out beside a box or below it, and come back", () => {
  const [beside, below] = [
    [50, 10, 84, 20, 50, 30],
    [10, 50, 20, 84, 30, 50],
  ];
  assert.equal(loopPath(beside!), "M50.0 10.0 C84.0 10.0 84.0 30.0 50.0 30.0");
  assert.equal(loopPath(below!), "M10.0 50.0 C10.0 84.0 30.0 84.0 30.0 50.0");
  assert.deepEqual(arrival(beside!, "loop"), [-1, 0]);
  assert.deepEqual(arrival(below!, "loop"), [0, -1]);
});

test("long names keep both ends", () => {
  assert.equal(shortened("short"), "short");
  const long = shortened(`begin${"x".repeat(100)}end`);
  assert.equal(long.length, 34);
  assert.ok(long.startsWith("begin") && long.endsWith("end"));
});
