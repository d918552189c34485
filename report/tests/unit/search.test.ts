import assert from "node:assert/strict";
import { test } from "node:test";
import { matcher } from "../../src/engine/filter";
import { costOf, Search, searchMethods } from "../../src/engine/search";
import { SelectedTrees } from "../../src/engine/selected";
import { plainTree, reportOf, selectionOf } from "./sample";

const open = () =>
  reportOf({
    functions: [
      { name: "Parser.parse", file: "/app/parser.py" },
      { name: "parse", file: "/lib/json/Decoder.py", origin: "library" },
      { name: "sort", kind: "native", module: "libpython3.11.so" },
      { name: "main" },
    ],
    trees: [{ nodes: [["main", 1, 1, 1, ["Parser.parse", 2, 1, 10, ["parse", 3, 1, 100]]]] }],
  });

test("all words must be in the name, the file or the module, in any case", async () => {
  const { names } = await open();
  const search = new Search(names);
  const expected: [string, number[]][] = [
    ["parse", [1, 1, 0, 0]],
    ["PARSE decoder", [0, 1, 0, 0]],
    ["  app  parse ", [1, 0, 0, 0]],
    ["python3.11", [0, 0, 1, 0]],
    [".so", [0, 0, 1, 0]],
    ["main app", [0, 0, 0, 0]],
    [".*", [0, 0, 0, 0]],
    ["", [1, 1, 1, 1]],
  ];
  for (const [text, found] of expected) {
    assert.deepEqual([...search.found(text)], found, text);
    const matches = matcher(names, text);
    assert.deepEqual(
      found.map((_, of) => Number(matches(of))),
      found,
      `"${text}" for the filter`,
    );
  }
});

test("a word does not match across two texts", async () => {
  const { names } = await open();
  assert.deepEqual([...new Search(names).found("parse/app")], [0, 0, 0, 0]);
});

test("found functions are counted, with their cost", async () => {
  const report = await open();
  const methods = searchMethods({ report, trees: new SelectedTrees(report) });
  const { functions, foundColumns } = methods.found("parse");
  assert.equal(functions, 2);
  assert.deepEqual([...foundColumns.found], [1, 1, 0, 0]);
  assert.deepEqual(await methods.foundCost(selectionOf(), "decoder"), { all: 111, self: 100, total: 100 });
});

test("cost inside two found functions counts once", () => {
  const tree = plainTree([0, 1, 1, [1, 1, 10, [0, 1, 100, [1, 1, 1000]]]], [2, 1, 10_000, [1, 1, 100_000]]);
  assert.deepEqual(costOf(tree, Uint8Array.of(0, 1, 0)), { all: 111_111, self: 101_010, total: 101_110 });
  assert.deepEqual(costOf(tree, Uint8Array.of(0, 0, 0)), { all: 111_111, self: 0, total: 0 });
});
