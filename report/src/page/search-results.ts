// The results of the search, for all views.

import { effect, signal } from "@preact/signals";
import { query } from "./engine";
import { report, search } from "./state";

interface SearchResults {
  /** The text of the search. */
  text: string;
  functions: number;
  /** By function: 1 if it was found. */
  found: Uint8Array;
}

const newest = signal<SearchResults | null>(null);

effect(() => {
  const text = search.value.trim();
  if (text === "" || report.value === null) {
    newest.value = null;
    return;
  }
  query("found", text).then(
    ({ functions, foundColumns }) => {
      if (search.peek().trim() === text) newest.value = { text, functions, found: foundColumns.found };
    },
    () => {
      newest.value = null;
    },
  );
});

/** Returns by function: 1 if it was found; `null` without a search. While the user types, the previous result. */
export function useFound(): Uint8Array | null {
  return newest.value?.found ?? null;
}

/** Returns the number of functions that were found; `null` without a search. */
export function useFoundCount(): number | null {
  return newest.value?.functions ?? null;
}
