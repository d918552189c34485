// The stacks that a host's allocator recorded.

import type { FrameIndex } from "../../shared/format";
import type { Names } from "../../shared/names";
import type { Filter } from "../../shared/selection";
import type { Columns } from "../decode";
import { visibleByOrigin, visibleFunctions } from "../filter";

/** A tree of frames; the root is 0, and has no frame. */
export class Stacks {
  private readonly back: Uint32Array;
  private readonly frame: Uint32Array;

  constructor(columns: Columns) {
    this.back = columns.small();
    this.frame = columns.small();
  }

  /** Returns the frames of a node, outermost first. */
  frames(node: number): FrameIndex[] {
    const frames: FrameIndex[] = [];
    for (let at = node; at > 0 && this.back[at]! > 0; at -= this.back[at]!) frames.push(this.frame[at]!);
    return frames.reverse();
  }
}

/** Returns the frames that a filter shows; all if it shows none. */
export function shownFrames(names: Names, frames: FrameIndex[], filter: Filter): FrameIndex[] {
  const seen = visibleFunctions(names, filter);
  const { origin } = names.functions;
  let isLibrary = false;
  const shown = frames.filter((frame) => {
    const of = names.frames.function[frame]!;
    const [shows, below] = visibleByOrigin(origin[of]!, isLibrary, filter.internals);
    isLibrary = below;
    return shows && seen[of] === 1;
  });
  return shown.length > 0 ? shown : frames;
}
