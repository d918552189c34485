// A stack of a host's allocator, as a list.

import { query } from "../../engine";
import { Problem } from "../../problem";
import { filter, names, select, selected } from "../../state";
import { useAnswer } from "../../use-answer";
import { FunctionName, PathText } from "../table/cells";
import { linePlace } from "./cells";

/** Shows the frames of a stack, the most recent call last; with buttons that select functions. */
export function StackList({ device, node }: { device: number; node: number }) {
  const key = JSON.stringify([device, node, filter.value]);
  const { value, error } = useAnswer(key, async () => ({
    key,
    frames: await query("memoryStack", device, node, filter.value),
  }));
  if (error) return <Problem what="The stack can't be shown" why={error} />;
  if (value?.key !== key) return <p role="status">Resolving…</p>;
  if (value.frames.length === 0) return <p class="nothing">No stack was recorded.</p>;
  const { frames } = names();
  return (
    <ol class="memory-stack" aria-label="Stack, the most recent call last">
      {value.frames.map((frame, depth) => {
        const of = frames.function[frame]!;
        return (
          <li key={depth}>
            <button
              type="button"
              class={selected.value === of ? "row-name chosen" : "row-name"}
              onClick={() => select(of)}
            >
              <FunctionName of={of} />
              <PathText path={linePlace(of, frames.line[frame]!)} />
            </button>
          </li>
        );
      })}
    </ol>
  );
}
