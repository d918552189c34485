// The functions that a filter shows.

import { KINDS, ORIGINS } from "../shared/format";
import { fileOf, functionName, moduleOf, type Names } from "../shared/names";
import type { Filter } from "../shared/selection";

const PYTHON = KINDS.indexOf("python");
const NATIVE = KINDS.indexOf("native");
const LIBRARY = ORIGINS.indexOf("library");
const INTERPRETER = ORIGINS.indexOf("interpreter");

/** Splits a search into words. */
export function searchWords(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Returns a function that says whether all words of a search are in a function's name, file or module. */
export function matcher(names: Names, text: string): (of: number) => boolean {
  const words = searchWords(text);
  return (of) => {
    if (words.length === 0) return true;
    const all = `${functionName(names, of)}\n${fileOf(names, of) ?? ""}\n${moduleOf(names, of) ?? ""}`.toLowerCase();
    return words.every((word) => all.includes(word));
  };
}

/** Returns by function: 1 if the filter shows it, apart from its caller. */
export function visibleFunctions(names: Names, filter: Filter): Uint8Array {
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
 * Returns whether a function is visible by its origin, and the `isLibrary` of its callees. `isLibrary` is whether the nearest
 * caller outside the interpreter is a library's.
 */
export function visibleByOrigin(origin: number, isLibrary: boolean, internals: boolean): [boolean, boolean] {
  if (origin === INTERPRETER) return [internals, isLibrary];
  if (origin === LIBRARY) return [internals || !isLibrary, true];
  return [true, false];
}
