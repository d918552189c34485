// Texts of the call graph, and their sizes: outside of a page nothing measures letters.

import type { Size } from "./layout";

const MOST_LETTERS = 34;
const LABEL_HEIGHT = 15;
const TITLE_HEIGHT = 27;
/** The gap between the lines of a box. */
export const LINE_HEIGHT = 14;
const LETTER_WIDTH = 7.3;
const SMALL_LETTER_WIDTH = 6.1;

/** Returns the size of a text in the font of an arrow's label. */
export function labelSize(text: string): Size {
  return { width: (text.length + 1) * SMALL_LETTER_WIDTH, height: LABEL_HEIGHT };
}

/** Shortens a text to fit. It cuts in the middle, because both ends of a name are the most informative. */
export function shortened(text: string): string {
  if (text.length <= MOST_LETTERS) return text;
  const end = Math.floor(MOST_LETTERS * 0.45);
  return `${text.slice(0, MOST_LETTERS - end - 1)}…${text.slice(-end)}`;
}

/** Returns the size of a box with a title, a location if there is one, and lines below it. */
export function boxSize({ title, place, lines }: { title: string; place: string; lines: string[] }): Size {
  const below = place === "" ? lines : [place, ...lines];
  const widest = Math.max(title.length * LETTER_WIDTH, ...below.map((line) => line.length * SMALL_LETTER_WIDTH));
  return { width: Math.ceil(Math.max(110, widest + 26)), height: TITLE_HEIGHT + below.length * LINE_HEIGHT };
}
