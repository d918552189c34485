// Which functions a search finds: those of which all words are in the name, the file or the module.

import type { Names } from "../shared/names";
import { searchWords } from "./filter";
import type { Context } from "./methods";

export interface Found {
  /** How many functions were found. */
  functions: number;
  /** By function: 1 if it was found. */
  foundColumns: { found: Uint8Array };
}

export function searchMethods({ report }: Context) {
  const search = new Search(report.names);
  return {
    found(text: string): Found {
      const found = search.found(text);
      let functions = 0;
      for (const is of found) functions += is;
      return { functions, foundColumns: { found } };
    },
  };
}

/** Looks at each text once, however many functions have it. */
export class Search {
  private lowered: string[] | undefined;

  constructor(private readonly names: Names) {}

  /** By function: 1 if all words of `text` are in it. */
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

  /** By the number of a string + 1: 1 if the word is in it. */
  private textsWith(word: string): Uint8Array {
    this.lowered ??= this.names.strings.map((text) => text.toLowerCase());
    const has = new Uint8Array(this.lowered.length + 1);
    for (let at = 0; at < this.lowered.length; at++) if (this.lowered[at]!.includes(word)) has[at + 1] = 1;
    return has;
  }
}
