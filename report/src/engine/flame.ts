// The flame graph: boxes in sight, and what of the whole a search finds.

import type { Selection } from "../shared/selection";
import { matcher } from "./filter";
import { type Layout, type LayoutRequest, layoutOf } from "./flame-layout";
import { bottomUp, foldedTopDown, topDown } from "./flame-sources";
import { FlameTree } from "./flame-tree";
import type { Context } from "./methods";
import type { CallTree } from "./tree";

export type FlameMode = "heavy" | "met" | "callers";

export interface FlameOptions {
  mode: FlameMode;
  /** Whether a function that calls itself is one box. */
  fold: boolean;
}

export interface Found {
  /** What the found functions cost with all that they call; what is found inside of what is found counts once. */
  cost: number;
  functions: number;
  /** By function: 1 if it is found. */
  foundColumns: { function: Uint8Array };
}

const MOST_KEPT = 4;

export function flameMethods({ report, trees }: Context) {
  const kept = new Map<string, Promise<FlameTree>>();
  return {
    async flame(selection: Selection, options: FlameOptions, request: LayoutRequest): Promise<Layout> {
      const tree = await keptFor(kept, JSON.stringify([selection, options]), async () =>
        flameTreeOf(await trees.get(selection), options),
      );
      return layoutOf(tree, request);
    },

    async flameFound(selection: Selection, text: string): Promise<Found> {
      const matches = matcher(report.names, text);
      const found = Uint8Array.from(report.names.functions.name, (_, of) => (matches(of) ? 1 : 0));
      const tree = await trees.get(selection);
      const there = new Set(tree.item.subarray(1));
      let functions = 0;
      for (const of of there) functions += found[of]!;
      return { cost: foundCost(tree, found), functions, foundColumns: { function: found } };
    },
  };
}

/** What was made for a key, or is made now; only the newest ones are kept. */
export function keptFor<T>(kept: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const made = kept.get(key) ?? make();
  kept.delete(key);
  kept.set(key, made);
  made.catch(() => kept.delete(key));
  const oldest = kept.size > MOST_KEPT && kept.keys().next().value;
  if (oldest) kept.delete(oldest);
  return made;
}

export function flameTreeOf(tree: CallTree, { mode, fold }: FlameOptions): FlameTree {
  const order = mode === "met" ? "met" : "heavy";
  if (mode === "callers") return new FlameTree(bottomUp(tree, fold), order) as FlameTree;
  if (fold) return new FlameTree(foldedTopDown(tree), order) as FlameTree;
  return new FlameTree(topDown(tree), order) as FlameTree;
}

/** The cost of what is found, without what is found under it once more. */
export function foundCost(tree: CallTree, found: Uint8Array): number {
  const { parent, item, total, length } = tree;
  const isInside = new Uint8Array(length);
  let cost = 0;
  for (let node = 1; node < length; node++) {
    const above = isInside[parent[node]!]!;
    const isFound = found[item[node]!]!;
    if (isFound && !above) cost += total[node]!;
    isInside[node] = isFound | above;
  }
  return cost;
}
