// The costs of lines by the calls that were made from them, for recordings with the line of each call.

import { type FunctionIndex, ORIGINS, type StringIndex, type ThreadIndex } from "../shared/format";
import type { Names } from "../shared/names";
import type { Selection } from "../shared/selection";
import { visibleFunctions } from "./filter";
import type { Report } from "./report";
import { statisticsOf } from "./statistics";
import type { CallTree } from "./tree";

/** A function that was called from a line. */
export interface Called {
  function: FunctionIndex;
  calls: number;
  /** The time of these calls; a call inside another one of them is not counted again. */
  total: number;
}

/** The calls from a line of a file. */
export interface LineCalls {
  line: number;
  /** The time of all calls; time inside two of them counts once. */
  total: number;
  /** The functions, those with the highest cost first. */
  called: Called[];
  /** The number of further functions. */
  others: number;
}

/** The maximum number of functions in the list of a line. */
const MOST_CALLED = 8;

/** Returns the calls from the lines of a file, by line, on the selected threads. `tree` is a tree of functions. */
export async function callsFrom(
  report: Report,
  selection: Selection,
  tree: CallTree,
  file: StringIndex,
): Promise<LineCalls[]> {
  const { frames, functions } = report.names;
  const isSeen = seenIn(report.names, selection, tree);
  const lines = new Map<number, { total: number; called: Map<FunctionIndex, Called> }>();
  const takes = (thread: ThreadIndex) => selection.threads === null || selection.threads.includes(thread);
  const infos = report.head.callLines.filter((info) => takes(info.thread));
  for (const columns of await Promise.all(infos.map((info) => report.columns(info.block)))) {
    const [frame, callee] = [columns.small(), columns.small()];
    const [calls, total, ofLine] = [columns.plain(), columns.plain(), columns.plain()];
    for (let row = 0; row < frame.length; row++) {
      const caller = frames.function[frame[row]!]!;
      if (functions.file[caller] !== file + 1 || !isSeen(caller)) continue;
      const line = of(lines, frames.line[frame[row]!]!, () => ({ total: 0, called: new Map() }));
      line.total += ofLine[row]!;
      if (!isSeen(callee[row]!)) continue;
      const called = of(line.called, callee[row]!, () => ({ function: callee[row]!, calls: 0, total: 0 }));
      called.calls += calls[row]!;
      called.total += total[row]!;
    }
  }
  return [...lines].sort(([a], [b]) => a - b).map(([line, { total, called }]) => lineCalls(line, total, called));
}

function lineCalls(line: number, total: number, called: Map<FunctionIndex, Called>): LineCalls {
  const byCost = [...called.values()].sort((a, b) => b.total - a.total || b.calls - a.calls || a.function - b.function);
  const listed = byCost.slice(0, MOST_CALLED);
  return { line, total, called: listed, others: byCost.length - listed.length };
}

/**
 * Returns the visible functions: all in the tree, because a library's function may be visible in one place and not in another.
 * A function of the program that was not traced may call others without being in the tree.
 */
function seenIn(names: Names, { filter }: Selection, tree: CallTree): (of: FunctionIndex) => boolean {
  const seen = visibleFunctions(names, filter);
  const { origin, name } = names.functions;
  const { calls, total } = statisticsOf(tree, name.length).functions;
  const isInTree = (of: FunctionIndex) => calls[of] !== 0 || total[of] !== 0;
  return (of) => seen[of] === 1 && (filter.internals || ORIGINS[origin[of]!] === "program" || isInTree(of));
}

function of<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
