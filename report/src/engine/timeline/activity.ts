// The activity at each moment, for the strip above the timeline.

import type { TimelineInfo, TrackInfo } from "../../shared/format";
import type { TileStore } from "./tiles";
import { eachRow, levelOf, visiblePlaces, type Window } from "./visible-spans";

/** Adds to each part of a time the average number of open spans of a track. */
export async function addActivity(
  tiles: TileStore,
  info: TimelineInfo,
  track: TrackInfo,
  window: Window,
  pieces: Float64Array,
): Promise<void> {
  const { from, to } = window;
  const long = (to - from) / pieces.length;
  for (const place of visiblePlaces(info, track, levelOf(info, track, window), from, to)) {
    const tile = await tiles.get(place);
    eachRow(tile, place, window, (row) => {
      const begin = Math.max(tile.begin[row]!, from);
      const end = Math.min(tile.begin[row]! + tile.extent[row]!, to);
      if (end <= begin) return;
      const share = tile.busy ? tile.busy[row]! / tile.extent[row]! : 1;
      for (let piece = Math.floor((begin - from) / long); piece < pieces.length; piece++) {
        const edge = from + piece * long;
        if (edge >= end) return;
        pieces[piece]! += (share * (Math.min(end, edge + long) - Math.max(begin, edge))) / long;
      }
    });
  }
}
