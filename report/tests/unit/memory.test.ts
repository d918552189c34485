import assert from "node:assert/strict";
import { test } from "node:test";
import { Columns } from "../../src/engine/decode";
import { memoryMethods } from "../../src/engine/memory/methods";
import { Moments } from "../../src/engine/memory/moments";
import { MemoryTree } from "../../src/engine/memory/rows";
import type { Report } from "../../src/engine/report";
import { SelectedTrees } from "../../src/engine/selected";
import type { Amount, DeviceMemory, MomentsInfo } from "../../src/shared/format";
import { column, plainTree, reportOf, selectionOf, treeText } from "./sample";

const FUNCTIONS = [{ name: "main" }, { name: "load" }, { name: "malloc", origin: "interpreter" as const }];
/** Frames as `reportOf` numbers them for `PEAK`: main:1, load:5, malloc:0, main:2. */
const PEAK = {
  measure: "peak" as const,
  nodes: [
    ["main", 1, 0, 0, ["load", 5, 1, 100, ["malloc", 0, 2, 40]]],
    ["main", 2, 3, 7],
  ] as never,
};
const TIMES = [0, 100, 200, 300];
/** Nodes: root, main:1, load:5 under it, malloc under that, main:2. */
const TREE = [
  [0, 1, 1, 1, 4],
  [0, 0, 1, 2, 3],
];
/** Node, first moment, number of moments, bytes, blocks. At the moment 2 they are those of the tree of the peak. */
const ROWS: number[][] = [
  [2, 1, 2, 100, 1],
  [3, 0, 4, 30, 1],
  [3, 2, 1, 10, 1],
  [4, 2, 1, 7, 3],
  [4, 3, 1, 9, 1],
];
const INFO: MomentsInfo = { times: TIMES, nodes: 5, tree: 1001, rows: 1002 };

function columns(...of: number[][]): Columns {
  return new Columns(Uint8Array.from(of.flatMap(column)));
}

function rowColumns(): number[][] {
  return [0, 1, 2, 3, 4].map((place) => ROWS.map((row) => row[place]!));
}

function moments(): Moments {
  return Moments.decode(INFO, columns(...TREE), columns(...rowColumns()));
}

const NOTHING: Amount = { bytes: 0, blocks: 0 };

/** Returns the engine's methods for a report with this memory, whose blocks are written by hand. */
async function methods(parts: Partial<DeviceMemory> = {}) {
  const report = await reportOf({ functions: FUNCTIONS, trees: [PEAK] });
  const device: DeviceMemory = {
    device: -1,
    label: "Process",
    curve: 1000,
    peakNs: 200,
    peak: { bytes: 147, blocks: 6 },
    live: NOTHING,
    fromBefore: NOTHING,
    allocated: NOTHING,
    temporary: NOTHING,
    threads: [],
    tags: [],
    allocators: [],
    sizes: [],
    moments: INFO,
    host: null,
    ...parts,
  };
  report.head.memory = { devices: [device], sampleEvery: null };
  const blocks: Record<number, number[][]> = {
    1000: [
      [0, 100, 100],
      [30, 130, 147],
      [0, 1001, 1],
    ],
    1001: TREE,
    1002: rowColumns(),
  };
  const standIn = Object.assign(Object.create(report), {
    head: report.head,
    names: report.names,
    columns: async (block: number) => columns(...blocks[block]!),
  }) as Report;
  return { ...memoryMethods({ report: standIn, trees: new SelectedTrees(report) }), report };
}

test("a moment has the memory that was live then", () => {
  const tree = moments().at(1);
  assert.deepEqual([...tree.self], [0, 0, 100, 30, 0]);
  assert.deepEqual([...tree.calls], [0, 0, 1, 1, 0]);
  assert.equal(tree.total[0], 130);
  assert.deepEqual([...moments().at(3).self], [0, 0, 0, 30, 9]);
});

test("totals of moments are those of their trees", () => {
  const { bytes, blocks } = moments().totals();
  assert.deepEqual([...bytes], [30, 130, 147, 39]);
  assert.deepEqual([...blocks], [1, 2, 6, 2]);
  for (const moment of TIMES.keys()) assert.equal(bytes[moment], moments().at(moment).total[0]);
});

test("growth is the difference of two moments, path by path", () => {
  const [from, to, growth] = [moments().at(1), moments().at(3), moments().growth(1, 3)];
  assert.deepEqual([...growth.self], [...to.self.map((bytes, node) => bytes - from.self[node]!)]);
  assert.deepEqual([...growth.calls], [0, 0, -1, 0, 1]);
  assert.deepEqual([...moments().growth(2, 2).self], [0, 0, 0, 0, 0]);
});

test("the moment of the peak has the tree of the peak, whatever is visible", async () => {
  for (const filter of [{}, { internals: true }, { python: false }, { only: "load" }]) {
    const { memoryRows, report } = await methods();
    const selection = selectionOf("peak", filter);
    const peak = await memoryRows({ selection, part: { kind: "measure", measure: "peak" } }, [], "bytes");
    const moment = await memoryRows({ selection, part: { kind: "moment", at: 2 } }, [], "bytes");
    assert.deepEqual(moment, peak);
    assert.ok(report.names);
  }
});

test("a filter moves hidden costs to the nearest visible caller", async () => {
  const { memoryRows } = await methods();
  const question = { selection: selectionOf("peak"), part: { kind: "moment" as const, at: 2 } };
  const { rows, total, blocks } = await memoryRows(question, null, "bytes");
  assert.deepEqual([total, blocks], [147, 6]);
  assert.deepEqual(
    rows.map(({ item, depth, total, self, blocks }) => [item, depth, total, self, blocks]),
    [
      [0, 0, 147, 7, 6],
      [1, 1, 140, 140, 3],
    ],
  );
});

test("growth has added and freed memory, which do not cancel out", async () => {
  const { memoryRows } = await methods();
  const question = { selection: selectionOf("peak"), part: { kind: "growth" as const, from: 1, to: 3 } };
  const { rows, total, added, freed } = await memoryRows(question, [], "bytes");
  assert.deepEqual([total, added, freed], [-91, 9, 100]);
  assert.deepEqual(
    rows.map(({ item, total, added, freed, blocks }) => [item, total, added, freed, blocks]),
    [[0, -91, 9, 100, 0]],
  );
});

test("by function and by line it is the self cost", async () => {
  const { memoryFlat, report } = await methods();
  const question = { selection: selectionOf("peak"), part: { kind: "moment" as const, at: 2 } };
  const { flatColumns, total } = await memoryFlat(question, "functions");
  assert.equal(total, 147);
  assert.deepEqual([...flatColumns.item], [1, 0]);
  assert.deepEqual([...flatColumns.self], [140, 7]);
  assert.deepEqual([...flatColumns.total], [140, 147]);
  assert.deepEqual([...flatColumns.blocks], [3, 3]);
  const lines = (await memoryFlat(question, "lines")).flatColumns;
  const { function: of, line } = report.names.frames;
  assert.deepEqual(
    Array.from(lines.item, (frame, row) => [of[frame], line[frame], lines.self[row]]),
    [
      [1, 5, 140],
      [0, 2, 7],
    ],
  );
});

test("the curve has the known figures, and nothing without a history", async () => {
  const { memoryCurve } = await methods();
  const curve = (await memoryCurve(-1))!;
  // The last point is that of the moment which the curve does not have.
  assert.deepEqual([...curve.curveColumns.time], [0, 100, 200, 300]);
  assert.deepEqual([...curve.curveColumns.taken], [30, 130, 147, 39]);
  assert.deepEqual([...curve.curveColumns.inMemory], [Number.NaN, 1000, 0, Number.NaN]);
  assert.deepEqual([...curve.momentsColumns.bytes], [30, 130, 147, 39]);
  const without = await methods({ curve: null, moments: null });
  assert.equal(await without.memoryCurve(-1), null);
  assert.equal(await without.memoryCurve(3), null);
  const question = { selection: selectionOf("peak"), part: { kind: "moment" as const, at: 0 } };
  await assert.rejects(without.memoryRows(question, [], "bytes"), /no moments/);
});

test("the path to the largest allocation is open at first, and later only requested paths", () => {
  const tree = new MemoryTree(plainTree([1, 0, 0, [2, 1, 60, [3, 1, 5]], [4, 1, 10, [5, 1, 1]]], [6, 9, 20]));
  const first = tree.rows(null, "bytes");
  assert.deepEqual(
    first.rows.map((row) => [row.item, row.depth, row.isOpen]),
    [
      [1, 0, true],
      [2, 1, true],
      [3, 2, false],
      [4, 1, false],
      [6, 0, false],
    ],
  );
  assert.deepEqual(
    tree.rows([], "bytes").rows.map((row) => row.item),
    [1, 6],
  );
  assert.deepEqual(
    tree.rows([], "blocks").rows.map((row) => [row.item, row.blocks]),
    [
      [6, 9],
      [1, 4],
    ],
  );
});

test("very many callees are shown as one row, with their sum", () => {
  const many = Array.from({ length: 200 }, (_, of): [number, number, number] => [of, 1, 1000 - of]);
  const { rows, total } = new MemoryTree(plainTree(...many)).rows([], "bytes");
  assert.equal(rows.length, 61);
  const rest = rows.at(-1)!;
  assert.deepEqual([rest.item, rest.children, rest.blocks], [-1, 140, 140]);
  assert.equal(
    rows.reduce((sum, row) => sum + row.total, 0),
    total,
  );
});

test("a tree of a moment is drawn as it is", async () => {
  const { memoryFlame, report } = await methods();
  const question = { selection: selectionOf("peak"), part: { kind: "moment" as const, at: 2 } };
  const layout = await memoryFlame(question, { path: [], span: [0, 1], pixels: 1000 });
  assert.equal(layout.total, 147);
  assert.equal(layout.rows, 3);
  const peak = await new SelectedTrees(report).get(selectionOf("peak"));
  assert.deepEqual(treeText(peak, report.names), ["root 0 0 147", "  main 3 7 147", "    load 3 140 140"]);
});
