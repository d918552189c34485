// The timeline: the activity of each thread over time.

import type { Block, CounterInfo, FunctionIndex, TimelineInfo } from "../../shared/format";
import { ORIGINS } from "../../shared/format";
import type { Filter } from "../../shared/selection";
import { visibleFunctions } from "../filter";
import type { Context } from "../methods";
import type { Report } from "../report";
import { addActivity } from "./activity";
import { aroundOf, type Cursor, type FoundSpan, longestIn, nextOf } from "./search";
import { densePlaces, detailOf, spanPlaces, type TilePlace } from "./tiles";
import { levelOf, type SpanColumns, spansOf, type TimeRange, visiblePlaces, type Window } from "./visible-spans";

/** The visible part of a track. */
export interface TrackContents {
  level: number;
  spanColumns: SpanColumns;
  /** Marks; of those within one pixel only the first. */
  instantsColumns: { time: Float64Array; frame: Uint32Array; count: Uint32Array };
}

export interface CounterSteps {
  stepsColumns: { time: Float64Array; value: Float64Array };
}

const LONGEST = 20;
const INTERPRETER = ORIGINS.indexOf("interpreter");

export function timelineMethods({ report }: Context) {
  const { tiles } = report;
  const info: TimelineInfo = report.head.timeline ?? { levels: [0], tracks: [], counters: [] };
  const instants = new Instants(report);
  let searches = 0;
  let longests = 0;
  let placeByBlock: Map<Block, TilePlace> | undefined;

  /** Decodes in advance the tiles of the next zoom step. */
  function prefetch(track: number, window: Window): void {
    const quarter = (window.to - window.from) / 4;
    const closer = { ...window, from: window.from + quarter, to: window.to - quarter, pixelNs: window.pixelNs / 4 };
    const of = info.tracks[track]!;
    const places = visiblePlaces(info, of, levelOf(info, of, closer), closer.from, closer.to);
    for (const place of places.slice(0, 6)) void tiles.get(place).catch(() => {});
  }

  return {
    async timeline(track: number, window: Window): Promise<TrackContents> {
      const of = info.tracks[track]!;
      const { level, spanColumns } = await spansOf(tiles, info, of, window);
      const instantsColumns = await instants.within(of.instants, window);
      setTimeout(() => prefetch(track, window), 0);
      return { level, spanColumns, instantsColumns };
    },

    /** Returns the details of a span: attributes, and the reason of a failure. */
    async timelineDetail(block: Block, row: number): Promise<Record<string, unknown>> {
      placeByBlock ??= new Map(allPlaces(info).map((place) => [place.block, place]));
      const place = placeByBlock.get(block);
      return place ? detailOf(await tiles.get(place), row) : {};
    },

    /** Returns the number of open spans at each moment of the recording. */
    async timelineActivity(tracks: number[], pieces: number): Promise<{ activityColumns: { open: Float64Array } }> {
      const open = new Float64Array(pieces);
      const to = Math.max(report.head.durationNs, 1);
      const window = { from: 0, to, pixelNs: to / pieces, depthLimit: Infinity, most: 40_000 };
      for (const track of tracks) await addActivity(tiles, info, info.tracks[track]!, window, open);
      return { activityColumns: { open } };
    },

    /**
     * Returns the next or previous span of a function on these tracks. A newer search cancels this one, which then returns
     * `null`.
     */
    async timelineNext(
      tracks: number[],
      of: FunctionIndex,
      cursor: Cursor,
      direction: 1 | -1,
    ): Promise<FoundSpan | null> {
      const search = ++searches;
      const { function: functionOf } = report.names.frames;
      const searched = { tiles, info, tracks, isWanted: () => search === searches };
      return nextOf(searched, (frame) => functionOf[frame] === of, cursor, direction);
    },

    async timelineLongest(tracks: number[], span: TimeRange, filter: Filter): Promise<FoundSpan[]> {
      const search = ++longests;
      const seen = visibleFunctions(report.names, filter);
      const { function: functionOf } = report.names.frames;
      const { origin } = report.names.functions;
      const isShown = (frame: number) => {
        const of = functionOf[frame]!;
        return seen[of] === 1 && (filter.internals || origin[of] !== INTERPRETER);
      };
      const searched = { tiles, info, tracks, isWanted: () => search === longests };
      return longestIn(searched, span, LONGEST, isShown);
    },

    /** Returns the frames that are open on a track during the whole time. */
    timelineAround(track: number, span: TimeRange): Promise<number[]> {
      return aroundOf(tiles, info, info.tracks[track]!, span);
    },

    async timelineCounter(counter: number): Promise<CounterSteps> {
      const { block } = info.counters[counter] as CounterInfo;
      const { times, values } = (await report.json(block)) as { times: number[]; values: number[] };
      return { stepsColumns: { time: Float64Array.from(times), value: Float64Array.from(values) } };
    },
  };
}

function allPlaces(info: TimelineInfo): TilePlace[] {
  const levels = [...info.levels.keys()];
  return info.tracks.flatMap((track) =>
    levels.flatMap((level) => [...spanPlaces(info, track, level), ...densePlaces(track, level)]),
  );
}

/** Moments of events without a duration. */
class Instants {
  private readonly kept = new Map<Block, Promise<{ time: Float64Array; frame: Uint32Array }>>();

  constructor(private readonly report: Report) {}

  async within(block: Block | null, { from, to, pixelNs }: Window): Promise<TrackContents["instantsColumns"]> {
    const times: number[] = [];
    const frames: number[] = [];
    const counts: number[] = [];
    if (block !== null) {
      const { time, frame } = await this.all(block);
      for (let row = firstAtLeast(time, from); row < time.length && time[row]! < to; row++) {
        if (times.length > 0 && time[row]! - times[times.length - 1]! < pixelNs) counts[counts.length - 1]!++;
        else {
          times.push(time[row]!);
          frames.push(frame[row]!);
          counts.push(1);
        }
      }
    }
    return { time: Float64Array.from(times), frame: Uint32Array.from(frames), count: Uint32Array.from(counts) };
  }

  private all(block: Block): Promise<{ time: Float64Array; frame: Uint32Array }> {
    let all = this.kept.get(block);
    if (!all) {
      all = this.report.columns(block).then((columns) => ({ time: columns.rising(), frame: columns.small() }));
      this.kept.set(block, all);
    }
    return all;
  }
}

function firstAtLeast(times: Float64Array, time: number): number {
  const at = times.findIndex((of) => of >= time);
  return at < 0 ? times.length : at;
}
