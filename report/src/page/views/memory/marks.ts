// Selects a mark by a click near it.

/** The maximum distance of a click from a mark, in pixels. */
const NEAR_MARK = 6;

/** Returns the mark that is nearest to a position; `null` if none is near. */
export function nearestMark(places: number[], x: number): number | null {
  let nearest: number | null = null;
  for (const [mark, place] of places.entries()) {
    const before = nearest === null ? NEAR_MARK : Math.abs(places[nearest]! - x);
    const distance = Math.abs(place - x);
    if (nearest === null ? distance <= before : distance < before) nearest = mark;
  }
  return nearest;
}
