// Colours by share of the cost: cold blue, through yellow, to hot red.

/** Hue, saturation, lightness at shares, in both themes. */
const LIGHT: [number, number, number, number][] = [
  [0, 214, 50, 95],
  [0.05, 206, 70, 89],
  [0.15, 165, 45, 85],
  [0.3, 54, 88, 80],
  [0.6, 32, 95, 75],
  [1, 6, 92, 74],
];
const DARK: [number, number, number, number][] = [
  [0, 216, 18, 17],
  [0.05, 212, 38, 23],
  [0.15, 172, 34, 22],
  [0.3, 50, 50, 22],
  [0.6, 28, 62, 25],
  [1, 4, 58, 31],
];

function between(stops: [number, number, number, number][], share: number): [number, number, number] {
  const at = Math.min(1, Math.max(0, share));
  const above = Math.max(
    1,
    stops.findIndex(([from]) => from >= at),
  );
  const [low, ...first] = stops[above - 1]!;
  const [high, ...second] = stops[above]!;
  const part = (at - low) / (high - low);
  const mixed = (index: number) => first[index]! + (second[index]! - first[index]!) * part;
  return [mixed(0), mixed(1), mixed(2)];
}

/** Returns the fill colour of a box; the theme's text is readable on it. */
export function heatFill(share: number, dark: boolean): string {
  const [hue, saturation, light] = between(dark ? DARK : LIGHT, Math.abs(share));
  return `hsl(${hue.toFixed(0)} ${saturation.toFixed(0)}% ${light.toFixed(0)}%)`;
}

/** Returns the colour of such a box's edge and of arrows: the same hue, with contrast to the page. */
export function heatLine(share: number, dark: boolean): string {
  const [hue, saturation] = between(dark ? DARK : LIGHT, Math.abs(share));
  return `hsl(${hue.toFixed(0)} ${Math.min(75, saturation + 10).toFixed(0)}% ${dark ? 56 : 46}%)`;
}
