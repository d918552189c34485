// The functions that a search finds: those with all words in their name, file or module.

import type { Names } from "../shared/names";
import type { Selection } from "../shared/selection";
import { searchWords } from "./filter";
import type { Context } from "./methods";
import type { CallTree } from "./tree";

export interface FoundFunctions {
  /** The number of functions that were found. */
  functions: number;
  /** By function: 1 if it was found. */
  foundColumns: { found: Uint8Array };
}

/** The cost of the functions that were found. */
export interface FoundCost {
  all: number;
  self: number;
  /** The total with callees; cost inside two of them counts once. */
  total: number;
}

export function searchMethods({ report, trees }: Context) {
  const search = new Search(report.names);
  return {
    found(text: string): FoundFunctions {
      const found = search.found(text);
      let functions = 0;
      for (const is of found) functions += is;
      return { functions, foundColumns: { found } };
    },

    async foundCost(selection: Selection, text: string): Promise<FoundCost> {
      return costOf(await trees.get(selection), search.found(text));
    },
  };
}

/** Returns the cost of the functions for which `found` has a 1, in a tree of functions. */
export function costOf(tree: CallTree, found: Uint8Array): FoundCost {
  const cost = { all: tree.total[0]!, self: 0, total: 0 };
  const isInside = new Uint8Array(tree.length);
  for (let node = 1; node < tree.length; node++) {
    const isFound = found[tree.item[node]!] === 1;
    const isBelow = isInside[tree.parent[node]!] === 1;
    if (isFound) cost.self += tree.self[node]!;
    if (isFound && !isBelow) cost.total += tree.total[node]!;
    isInside[node] = isFound || isBelow ? 1 : 0;
  }
  return cost;
}

/** Checks each text once, however many functions have it. */
export class Search {
  private lowered: string[] | undefined;

  constructor(private readonly names: Names) {}

  /** Returns by function: 1 if all words of `text` are in it. */
  found(text: string): Uint8Array {
    const { name, file, module } = this.names.functions;
    const found = new Uint8Array(name.length).fill(1);
    for (const word of searchWords(text)) {
      const has = this.textsWith(word);
      for (let of = 0; of < found.length; of++) {
        if (!has[name[of]! + 1] && !has[file[of]!] && !has[module[of]!]) found[of] = 0;
      }
    }
    return found;
  }

  /** Returns by the number of a string + 1: 1 if the word is in it. */
  private textsWith(word: string): Uint8Array {
    this.lowered ??= this.names.strings.map((text) => text.toLowerCase());
    const has = new Uint8Array(this.lowered.length + 1);
    for (let at = 0; at < this.lowered.length; at++) if (this.lowered[at]!.includes(word)) has[at + 1] = 1;
    return has;
  }
}
