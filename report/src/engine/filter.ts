// Which functions a filter shows.

import { KINDS, ORIGINS } from "../shared/format";
import { fileOf, functionName, moduleOf, type Names } from "../shared/names";
import type { Filter } from "../shared/selection";

const PYTHON = KINDS.indexOf("python");
const NATIVE = KINDS.indexOf("native");
const LIBRARY = ORIGINS.indexOf("library");
const INTERPRETER = ORIGINS.indexOf("interpreter");

/** The words of a search. */
export function searchWords(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether all words of a search are in the name, the file or the module of a function. */
export function matcher(names: Names, text: string): (of: number) => boolean {
  const words = searchWords(text);
  return (of) => {
    if (words.length === 0) return true;
    const all = `${functionName(names, of)}\n${fileOf(names, of) ?? ""}\n${moduleOf(names, of) ?? ""}`.toLowerCase();
    return words.every((word) => all.includes(word));
  };
}

/** What a filter says of functions by themselves, by function: 1 if it is seen. */
export function seenFunctions(names: Names, filter: Filter): Uint8Array {
  const { kind, origin } = names.functions;
  const matches = matcher(names, filter.only);
  const seen = new Uint8Array(kind.length);
  for (let of = 0; of < seen.length; of++) {
    const hidden =
      (!filter.python && kind[of] === PYTHON) ||
      (!filter.native && kind[of] === NATIVE) ||
      (!filter.libraries && origin[of] === LIBRARY) ||
      !matches(of);
    seen[of] = hidden ? 0 : 1;
  }
  return seen;
}

/**
 * Whether a function is seen as far as it depends on whose code it is. `isLibrary` says whether the nearest caller that is
 * not the interpreter is a library's; the second of the pair says that for what the function calls.
 */
export function seenByOrigin(origin: number, isLibrary: boolean, internals: boolean): [boolean, boolean] {
  if (origin === INTERPRETER) return [internals, isLibrary];
  if (origin === LIBRARY) return [internals || !isLibrary, true];
  return [true, false];
}
