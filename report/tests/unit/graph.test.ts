import assert from "node:assert/strict";
import { test } from "node:test";
import { type GraphDirection, layOut } from "../../src/engine/graph/layout";
import { pathsThrough } from "../../src/engine/graph/paths";
import { pruneGraph } from "../../src/engine/graph/prune";
import { statisticsOf } from "../../src/engine/statistics";
import { type CallTree, TreeBuilder } from "../../src/engine/tree";

/** A tree of rows: a path of functions, calls, self cost. */
function treeOf(rows: [number[], number, number][]): CallTree {
  const builder = new TreeBuilder(false);
  for (const [path, calls, self] of rows) {
    let node = 0;
    for (const of of path) node = builder.child(node, of);
    builder.add(node, calls, self);
  }
  return builder.finish();
}

const [MAIN, FIB, READ, WRITE, LITTLE] = [0, 1, 2, 3, 4];
const TREE = treeOf([
  [[MAIN], 1, 10],
  [[MAIN, FIB], 2, 20],
  [[MAIN, FIB, FIB], 8, 30],
  [[MAIN, READ], 1, 5],
  [[MAIN, READ, FIB], 1, 15],
  [[MAIN, WRITE], 1, 19],
  [[MAIN, WRITE, LITTLE], 3, 1],
]);

function cut(tree: CallTree, options: { least?: number; most?: number; keep?: number | null } = {}) {
  const there = Uint32Array.from(new Set(tree.item.subarray(1)));
  return pruneGraph(statisticsOf(tree, 5), there, { least: 0, most: 150, keep: null, ...options });
}

test("boxes and arrows have the costs of Statistics", () => {
  const { functions, edges, functionsLeftOut, edgesLeftOut } = cut(TREE);
  assert.deepEqual(functions, [
    { of: MAIN, calls: 1, self: 10, total: 100 },
    { of: FIB, calls: 11, self: 65, total: 65 },
    { of: READ, calls: 1, self: 5, total: 20 },
    { of: WRITE, calls: 1, self: 19, total: 20 },
    { of: LITTLE, calls: 3, self: 1, total: 1 },
  ]);
  assert.deepEqual(edges, [
    { from: 0, to: 1, calls: 2, total: 50 },
    { from: 1, to: 1, calls: 8, total: 30 },
    { from: 0, to: 2, calls: 1, total: 20 },
    { from: 0, to: 3, calls: 1, total: 20 },
    { from: 2, to: 1, calls: 1, total: 15 },
    { from: 3, to: 4, calls: 3, total: 1 },
  ]);
  assert.deepEqual([functionsLeftOut, edgesLeftOut], [0, 0]);
});

test("functions with too little cost are left out and counted", () => {
  const { functions, edges, functionsLeftOut, isFull } = cut(TREE, { least: 20 });
  assert.deepEqual(
    functions.map(({ of }) => of),
    [MAIN, FIB, READ, WRITE],
  );
  assert.equal(functionsLeftOut, 1);
  assert.equal(isFull, false);
  assert.ok(edges.every(({ from, to }) => from < 4 && to < 4));
});

test("a cheap arrow stays if it is the only one to a box", () => {
  const tree = treeOf([
    [[MAIN], 1, 900],
    [[MAIN, READ], 1, 1],
    [[READ], 1, 50],
    [[WRITE, READ], 1, 5],
    [[WRITE], 1, 44],
  ]);
  const { edges, edgesLeftOut } = cut(tree, { least: 40 });
  // WRITE to READ costs more than MAIN to READ, so that one is the way to READ; the other one is under a fifth of 40.
  assert.deepEqual(edges, [{ from: 2, to: 1, calls: 1, total: 5 }]);
  assert.equal(edgesLeftOut, 1);
});

test("the number of boxes is limited to the heaviest, and those that must stay", () => {
  const { functions, isFull, functionsLeftOut } = cut(TREE, { most: 2, keep: LITTLE });
  assert.deepEqual(
    functions.map(({ of }) => of),
    [LITTLE, MAIN],
  );
  assert.equal(isFull, true);
  assert.equal(functionsLeftOut, 3);
});

test("paths through a function have its cost, and not that of its siblings", () => {
  const through = pathsThrough(TREE, FIB);
  const { functions } = cut(through);
  assert.deepEqual(functions, [
    { of: MAIN, calls: 1, self: 0, total: 65 },
    { of: FIB, calls: 11, self: 65, total: 65 },
    { of: READ, calls: 1, self: 0, total: 15 },
  ]);
  assert.equal(pathsThrough(TREE, 77).length, 1);
});

test("callers come before callees, boxes do not overlap, and a loop stays outside its box", () => {
  for (const direction of ["down", "right"] as const) checkLayout(direction);
});

function checkLayout(direction: GraphDirection) {
  const isDown = direction === "down";
  const graph = cut(TREE);
  const sizes = graph.functions.map(({ of }) => ({ width: 100 + 30 * of, height: 50 }));
  const labels = graph.edges.map(() => ({ width: 60, height: 15 }));
  const { boxes, ways, width, height } = layOut(graph, sizes, labels, direction);
  for (const [place, { from, to }] of graph.edges.entries()) {
    const [first, second] = [boxes[from]!, boxes[to]!];
    const { points, label } = ways[place]!;
    const [right, bottom] = [first.x + first.width / 2, first.y + first.height / 2];
    if (from === to) {
      assert.equal(isDown ? points[0] : points[1], isDown ? right : bottom);
      assert.ok(isDown ? label!.x - label!.width / 2 >= right : label!.y - label!.height / 2 >= bottom);
      continue;
    }
    const entry = isDown ? second.y - second.height / 2 : second.x - second.width / 2;
    assert.ok((isDown ? bottom : right) < entry);
    assert.equal(isDown ? points[1] : points[0], isDown ? bottom : right);
    assert.equal(points.at(isDown ? -1 : -2), entry);
    assert.ok(Math.abs(points[0]! - first.x) <= first.width / 2 && Math.abs(points[1]! - first.y) <= first.height / 2);
  }
  for (const [place, a] of boxes.entries()) {
    assert.ok(a.x - a.width / 2 >= 0 && a.x + a.width / 2 <= width);
    assert.ok(a.y - a.height / 2 >= 0 && a.y + a.height / 2 <= height);
    for (const b of boxes.slice(place + 1)) {
      const isApart =
        Math.abs(a.x - b.x) >= (a.width + b.width) / 2 || Math.abs(a.y - b.y) >= (a.height + b.height) / 2;
      assert.ok(isApart);
    }
  }
}

test("the same graph is laid out the same way, also if it has no arrows", () => {
  const graph = cut(TREE);
  const size = { width: 90, height: 40 };
  const once = () =>
    layOut(
      graph,
      graph.functions.map(() => size),
      graph.edges.map(() => null),
      "down",
    );
  assert.deepEqual(once(), once());
  const alone = layOut({ functions: graph.functions.slice(0, 1), edges: [] }, [size], [], "down");
  assert.equal(alone.boxes.length, 1);
  assert.deepEqual(layOut({ functions: [], edges: [] }, [], [], "down"), { width: 0, height: 0, boxes: [], ways: [] });
});
