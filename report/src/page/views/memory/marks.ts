// Which mark a click means.

/** A click so many pixels beside a mark means that. */
const NEAR_MARK = 6;

/** The mark that is nearest to a place, of marks at these places; `null` if none is near. */
export function nearestMark(places: number[], x: number): number | null {
  let nearest: number | null = null;
  for (const [mark, place] of places.entries()) {
    const before = nearest === null ? NEAR_MARK : Math.abs(places[nearest]! - x);
    const distance = Math.abs(place - x);
    if (nearest === null ? distance <= before : distance < before) nearest = mark;
  }
  return nearest;
}
