// The costs of files and lines.

import { type FunctionIndex, KINDS, type StringIndex } from "../shared/format";
import type { Names } from "../shared/names";
import type { Selection } from "../shared/selection";
import { callsFrom, type LineCalls } from "./call-lines";
import type { Context } from "./methods";
import type { Report } from "./report";
import { chosenRange } from "./selected";
import { statisticsOf, walk } from "./statistics";
import type { CallTree } from "./tree";

export interface FileCost {
  file: StringIndex;
  self: number;
  /** Includes the functions that were called from it; a call inside another one from this file is not counted again. */
  total: number;
  hasText: boolean;
}

export interface SourceFiles {
  /** The total cost. */
  all: number;
  /** All files with a cost or a text, those with the highest cost first. */
  files: FileCost[];
}

export interface FunctionCost {
  function: FunctionIndex;
  line: number;
  self: number;
  total: number;
}

export interface SourceText {
  all: number;
  /** `null` if the text was not available when the report was made. */
  text: string | null;
  /** Whether the file was modified after the recording. */
  changed: boolean;
  /** By line. */
  functions: FunctionCost[];
  /**
   * The origin of the totals of lines: lines in the trees, or the calls that were made from each line.
   * `part`: these are known, but not for a part of the time.
   */
  totals: "trees" | "calls" | "part";
  /** The functions that were called from each line. */
  calls: LineCalls[];
  /** Lines with a cost, from top to bottom. */
  linesColumns: LineColumns;
}

export interface LineColumns {
  line: Uint32Array;
  self: Float64Array;
  total: Float64Array;
  /** 1: includes costs for which only the function is known; they are assigned to the function's first line. */
  isWhole: Uint8Array;
}

export function sourceMethods({ report, trees }: Context) {
  return {
    async sourceFiles(selection: Selection): Promise<SourceFiles> {
      const tree = await trees.get(selection);
      return { all: tree.total[0]!, files: fileCosts(report, tree) };
    },

    async source(selection: Selection, file: StringIndex): Promise<SourceText> {
      const info = report.head.sources.find((source) => source.file === file);
      const bytes = info ? await report.bytes(info.block) : null;
      const tree = await trees.get(selection);
      const lines = lineCosts(report, await trees.get(selection, { lines: true }), file);
      const totals = totalsOf(report, selection);
      const calls = totals === "calls" ? await callsFrom(report, selection, tree, file) : [];
      return {
        all: tree.total[0]!,
        text: bytes && new TextDecoder().decode(bytes),
        changed: info?.changed ?? false,
        functions: functionCosts(report, tree, file),
        totals,
        calls,
        linesColumns: totals === "calls" ? withCalls(lines, calls) : lines,
      };
    },
  };
}

function totalsOf({ head }: Report, selection: Selection): SourceText["totals"] {
  if (selection.measure !== "time" || head.callLines.length === 0) return "trees";
  return chosenRange(head, selection, "after") === null ? "calls" : "part";
}

/** Totals by the calls from lines. The cost of a whole function is not added to the total of its first line. */
function withCalls(lines: LineColumns, calls: LineCalls[]): LineColumns {
  const rows = new Map(Array.from(lines.line, (line, row) => [line, row]));
  const totals = new Map(calls.map((of) => [of.line, of.total]));
  const line = Uint32Array.from(new Set([...rows.keys(), ...totals.keys()])).sort();
  const rowOf = (at: number) => rows.get(at) ?? -1;
  const ofTree = (at: number) => (lines.isWhole[rowOf(at)] === 1 ? 0 : (lines.total[rowOf(at)] ?? 0));
  return {
    line,
    self: Float64Array.from(line, (at) => lines.self[rowOf(at)] ?? 0),
    total: Float64Array.from(line, (at) => Math.max(totals.get(at) ?? 0, ofTree(at))),
    isWhole: Uint8Array.from(line, (at) => lines.isWhole[rowOf(at)] ?? 0),
  };
}

function fileCosts({ names, head }: Report, tree: CallTree): FileCost[] {
  const { file } = names.functions;
  const costs = new Map<StringIndex, FileCost>();
  const costOf = (of: StringIndex) => {
    let cost = costs.get(of);
    if (!cost) {
      cost = { file: of, self: 0, total: 0, hasText: false };
      costs.set(of, cost);
    }
    return cost;
  };
  const counted = countedBy(tree, names.strings.length, (item) => file[item]! - 1);
  for (const of of counted.there) Object.assign(costOf(of), { self: counted.self[of], total: counted.total[of] });
  for (const source of head.sources) costOf(source.file).hasText = true;
  return [...costs.values()].sort((a, b) => b.self - a.self || b.total - a.total || a.file - b.file);
}

function functionCosts({ names }: Report, tree: CallTree, file: StringIndex): FunctionCost[] {
  const { functions } = statisticsOf(tree, names.functions.name.length);
  const costs: FunctionCost[] = [];
  for (let of = 0; of < names.functions.file.length; of++) {
    const isThere = functions.calls[of] !== 0 || functions.total[of] !== 0;
    if (names.functions.file[of] !== file + 1 || !isThere) continue;
    const line = names.functions.line[of]!;
    costs.push({ function: of, line, self: functions.self[of]!, total: functions.total[of]! });
  }
  return costs.sort((a, b) => a.line - b.line || b.total - a.total);
}

/** Returns the costs of the lines of a file, in a tree of frames. */
export function lineCosts({ names }: Report, tree: CallTree, file: StringIndex): LineColumns {
  const { frames, functions } = names;
  const isHere = (frame: number) => functions.file[frames.function[frame]!] === file + 1;
  const lineOf = Int32Array.from(frames.function, (of, frame) =>
    isHere(frame) ? frames.line[frame]! || functions.line[of]! : -1,
  );
  const last = lineOf.reduce((most, line) => Math.max(most, line), 0);
  const { self, total, there } = countedBy(tree, last + 1, (frame) => lineOf[frame]!);
  const whole = new Uint8Array(last + 1);
  const inTree = new Set(tree.item.subarray(1));
  const isKnown = linesAreKnown(names, inTree);
  for (const frame of inTree) {
    const line = lineOf[frame]!;
    if (line >= 0 && (frames.line[frame] === 0 || !isKnown)) whole[line] = 1;
  }
  const line = Uint32Array.from(there).sort();
  return {
    line,
    self: Float64Array.from(line, (at) => self[at]!),
    total: Float64Array.from(line, (at) => total[at]!),
    isWhole: Uint8Array.from(line, (at) => whole[at]!),
  };
}

/** Trees of calls have a function's first line; if there is no other line, none was recorded. */
function linesAreKnown({ frames, functions }: Names, inTree: Set<number>): boolean {
  for (const frame of inTree) {
    const of = frames.function[frame]!;
    const line = frames.line[frame]!;
    if (KINDS[functions.kind[of]!] !== "native" && line !== 0 && line !== functions.line[of]) return true;
  }
  return false;
}

/** Returns self and total costs by the key that `of` returns for an item; a negative key leaves the item out. */
function countedBy(tree: CallTree, count: number, of: (item: number) => number) {
  const self = new Float64Array(count);
  const total = new Float64Array(count);
  const open = new Uint32Array(count);
  const there = new Set<number>();
  walk(tree, {
    enter(node) {
      const group = of(tree.item[node]!);
      if (group < 0) return;
      there.add(group);
      self[group]! += tree.self[node]!;
      if (open[group]!++ === 0) total[group]! += tree.total[node]!;
    },
    leave(node) {
      const group = of(tree.item[node]!);
      if (group >= 0) open[group]!--;
    },
  });
  return { self, total, there };
}
