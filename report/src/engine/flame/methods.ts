// The flame graph: the visible boxes.

import type { FunctionIndex } from "../../shared/format";
import type { Selection } from "../../shared/selection";
import type { Context } from "../methods";
import type { CallTree } from "../tree";
import { type FlameLayout, type LayoutRequest, layoutOf } from "./layout";
import { bottomUp, foldedTopDown, topDown } from "./sources";
import { FlameTree } from "./tree";

export type FlameMode = "heavy" | "met" | "callers";

export interface FlameOptions {
  mode: FlameMode;
  /** Whether recursive calls of a function are one box. */
  fold: boolean;
}

const MOST_KEPT = 4;

export function flameMethods({ trees }: Context) {
  const kept = new Map<string, Promise<FlameTree>>();
  return {
    async flame(selection: Selection, options: FlameOptions, request: LayoutRequest): Promise<FlameLayout> {
      const tree = await keptFor(kept, JSON.stringify([selection, options]), async () =>
        flameTreeOf(await trees.get(selection), options),
      );
      return layoutOf(tree, request);
    },

    /** Returns the path to the most expensive node of a function; `null` if there is none. */
    async flamePath(selection: Selection, mode: FlameMode, of: FunctionIndex): Promise<FunctionIndex[] | null> {
      const path = costliestPath(await trees.get(selection), of);
      return path && mode === "callers" ? [of] : path;
    },
  };
}

/** Values by key, also those that are still being computed; only the newest ones are kept. */
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

/** Returns the functions from the root to the most expensive node of a function. */
export function costliestPath({ parent, item, total, length }: CallTree, of: FunctionIndex): FunctionIndex[] | null {
  let best = 0;
  for (let node = 1; node < length; node++) {
    if (item[node] === of && (best === 0 || total[node]! > total[best]!)) best = node;
  }
  if (best === 0) return null;
  const path: FunctionIndex[] = [];
  for (let node = best; node !== 0; node = parent[node]!) path.push(item[node]!);
  return path.reverse();
}
