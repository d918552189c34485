// Colours by kind of code: Python warm, native cool, spans green; functions of one file have similar colours. They are the same
// in all views, and in the pictures of `stackweave export`.

import { signal } from "@preact/signals";
import { type FunctionIndex, KINDS, type Kind } from "../shared/format";
import { fileOf, functionName, moduleOf, type Names } from "../shared/names";
import { addressed } from "./address";

const HUES: Record<Kind, [number, number]> = {
  python: [8, 52],
  native: [188, 238],
  script: [258, 288],
  extra: [305, 335],
  span: [88, 150],
};
const STEPS = 6;

/** "light", "dark", or "" for the system's setting. */
export const themeText = addressed("theme", "");
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener("change", (event) => {
  systemIsDark.value = event.matches;
});

export function isDark(): boolean {
  return themeText.value === "" ? systemIsDark.value : themeText.value === "dark";
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value ^ (value >>> 15)) >>> 4;
}

const known = new WeakMap<Names, Map<string, string[]>>();

/** Returns the colour of each function, for a canvas; by function. */
export function functionColours(names: Names, dark: boolean): string[] {
  const themes = known.get(names) ?? new Map<string, string[]>();
  known.set(names, themes);
  const theme = dark ? "dark" : "light";
  let colours = themes.get(theme);
  if (!colours) {
    colours = Array.from(names.functions.name, (_, of) => functionColour(names, of, dark));
    themes.set(theme, colours);
  }
  return colours;
}

function functionColour(names: Names, of: FunctionIndex, dark: boolean): string {
  const [from, to] = HUES[KINDS[names.functions.kind[of]!] ?? "span"];
  const name = functionName(names, of);
  const step = hash(fileOf(names, of) ?? moduleOf(names, of) ?? name) % STEPS;
  const shade = hash(name);
  const hue = from + ((to - from) * step) / (STEPS - 1) + ((shade % 5) - 2) * 2;
  const light = (dark ? 28 : 68) + ((shade >>> 3) % 4) * 3;
  return `hsl(${hue} ${dark ? 48 : 82}% ${light}%)`;
}
