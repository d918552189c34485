// Builds reports from trees and names that are written by hand.

import { deflateSync } from "node:zlib";
import { Report } from "../../src/engine/report";
import { CallTree } from "../../src/engine/tree";
import {
  type Head,
  KINDS,
  type Kind,
  type MeasureName,
  ORIGINS,
  type Origin,
  type RunInfo,
} from "../../src/shared/format";
import type { Names } from "../../src/shared/names";
import { type Filter, type Selection, SHOW_DEFAULT } from "../../src/shared/selection";

export interface FunctionSample {
  name: string;
  kind?: Kind;
  origin?: Origin;
  file?: string;
  line?: number;
  module?: string;
}

/** `[function, line, calls, self, children]`; the line is 0 where it is not known. */
export type NodeSample = [of: string, line: number, calls: number, self: number, ...below: NodeSample[]];

export interface TreeSample {
  measure?: MeasureName;
  thread?: number;
  side?: "after" | "before";
  /** The cost without a frame. */
  self?: number;
  nodes: NodeSample[];
}

/** Encodes a number as a varint, like the blocks. */
export function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
}

export const column = (values: number[]) => [...varint(values.length), ...values.flatMap(varint)];
export const zigzag = (value: number) => (value < 0 ? -2 * value - 1 : 2 * value);

/** Collects the blocks of a report. */
class Page {
  readonly texts: string[] = [];

  add(bytes: Uint8Array): number {
    this.texts.push(deflateSync(bytes).toString("base64"));
    return this.texts.length - 1;
  }

  json(value: unknown): number {
    return this.add(Buffer.from(JSON.stringify(value)));
  }

  columns(...columns: number[][]): number {
    return this.add(Uint8Array.from(columns.flatMap(column)));
  }
}

/** `[caller, line, callee, calls, total, part of it that counts for the line]`. */
export type CallSample = [caller: string, line: number, called: string, calls: number, total: number, ofLine: number];

interface ReportSample {
  functions: FunctionSample[];
  trees: TreeSample[];
  sources?: Record<string, string>;
  runs?: RunInfo[];
  /** By thread. */
  calls?: CallSample[][];
}

/** Opens a report with these functions, trees and sources, and decodes all of it. */
export async function reportOf({ functions, trees, sources = {}, runs, calls = [] }: ReportSample): Promise<Report> {
  const page = new Page();
  const strings: string[] = [];
  const string = (text: string) => {
    if (!strings.includes(text)) strings.push(text);
    return strings.indexOf(text);
  };
  const optional = (text: string | undefined) => (text === undefined ? 0 : string(text) + 1);
  const columns = [
    functions.map((of) => string(of.name)),
    functions.map((of) => optional(of.file)),
    functions.map((of) => of.line ?? 0),
    functions.map((of) => KINDS.indexOf(of.kind ?? "python")),
    functions.map((of) => ORIGINS.indexOf(of.origin ?? "program")),
    functions.map((of) => optional(of.module)),
    functions.map(() => 0),
  ];
  const frames: [number, number][] = [];
  const infos = trees.map((tree) => {
    const flat = flattened(tree, functions, frames);
    const block = page.columns(flat.back, flat.frame, flat.calls, flat.self.map(zigzag));
    return {
      measure: tree.measure ?? "time",
      device: -1,
      thread: tree.thread ?? 0,
      side: tree.side ?? "after",
      nodes: flat.back.length,
      total: flat.self.reduce((sum, self) => sum + self, 0),
      folded: 0,
      block,
    };
  });
  const callLines = calls.map((rows, thread) => {
    const number = (name: string) => functions.findIndex((sample) => sample.name === name);
    const block = page.columns(
      rows.map(([caller, line]) => frameIn(frames, number(caller), line)),
      rows.map(([, , called]) => number(called)),
      ...[3, 4, 5].map((at) => rows.map((row) => row[at] as number)),
    );
    return { thread, rows: rows.length, block };
  });
  const texts = Object.entries(sources).map(([file, text]) => ({
    file: string(file),
    changed: false,
    block: page.add(Buffer.from(text)),
  }));
  const head: Partial<Head> = {
    format: 1,
    trees: infos,
    callLines,
    sources: texts,
    functions: page.columns(...columns),
    frames: page.columns(
      frames.map(([of]) => of),
      frames.map(([, line]) => line),
    ),
    runs: runs ? page.json(runs) : null,
    threads: [{ process: 0, tid: 1, name: "main" }],
  };
  head.strings = page.json(strings);
  const texted = deflateSync(Buffer.from(JSON.stringify(head))).toString("base64");
  return Report.open(async (block) => (block === "head" ? texted : page.texts[block]!));
}

function frameIn(frames: [number, number][], of: number, line: number): number {
  const known = frames.findIndex(([f, l]) => f === of && l === line);
  return known >= 0 ? known : frames.push([of, line]) - 1;
}

/** Returns a tree as columns, callers first. Frames are numbered in their order. */
function flattened(tree: TreeSample, functions: FunctionSample[], frames: [number, number][]) {
  const flat = { back: [0], frame: [0], calls: [0], self: [tree.self ?? 0] };
  const add = (parent: number, [name, line, calls, self, ...below]: NodeSample) => {
    const of = functions.findIndex((sample) => sample.name === name);
    if (of < 0) throw new Error(`there is no function ${name}`);
    const node = flat.back.push(0) - 1;
    flat.back[node] = node - parent;
    flat.frame.push(frameIn(frames, of, line));
    flat.calls.push(calls);
    flat.self.push(self);
    for (const child of below) add(node, child);
  };
  for (const node of tree.nodes) add(0, node);
  return flat;
}

export function selectionOf(measure: MeasureName = "time", filter: Partial<Filter> = {}): Selection {
  return { measure, device: -1, threads: null, range: null, filter: { ...SHOW_DEFAULT, ...filter } };
}

/** Returns a tree of functions as text: an indented line for each node, with calls, self and total. */
export function treeText(tree: CallTree, names: Names): string[] {
  const lines: string[] = [];
  const depth = new Uint32Array(tree.length);
  const children = Array.from({ length: tree.length }, (): number[] => []);
  for (let node = 1; node < tree.length; node++) children[tree.parent[node]!]!.push(node);
  const write = (node: number) => {
    const item = tree.item[node]!;
    const of = tree.lines ? names.frames.function[item]! : item;
    const line = tree.lines ? `:${names.frames.line[item]}` : "";
    const name = node === 0 ? "root" : `${names.strings[names.functions.name[of]!]}${line}`;
    lines.push(`${"  ".repeat(depth[node]!)}${name} ${tree.calls[node]} ${tree.self[node]} ${tree.total[node]}`);
    for (const child of children[node]!) {
      depth[child] = depth[node]! + 1;
      write(child);
    }
  };
  write(0);
  return lines;
}

/** Returns a tree without a report, whose items are plain numbers: `[item, calls, self, children]`. */
export type Plain = [item: number, calls: number, self: number, ...below: Plain[]];

export function plainTree(...nodes: Plain[]): CallTree {
  const columns = { parent: [0], item: [0], calls: [0], self: [0] };
  const add = (parent: number, [item, calls, self, ...below]: Plain) => {
    const node = columns.parent.push(parent) - 1;
    columns.item.push(item);
    columns.calls.push(calls);
    columns.self.push(self);
    for (const child of below) add(node, child);
  };
  for (const node of nodes) add(0, node);
  return CallTree.of({
    parent: Uint32Array.from(columns.parent),
    item: Uint32Array.from(columns.item),
    calls: Float64Array.from(columns.calls),
    self: Float64Array.from(columns.self),
    lines: false,
  });
}
