// The functions from the root to the zoomed box: a click goes up.

import { batch } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { FlameLayout } from "../../../engine/flame/layout";
import { functionName } from "../../../shared/names";
import { names } from "../../state";
import type { Zoom } from "./stage";
import { pathText } from "./window";

export function Breadcrumbs({ layout, zoom }: { layout: FlameLayout; zoom: Zoom }) {
  const { path } = layout;
  const isPart = zoom.span.value !== "";
  const go = (length: number) =>
    batch(() => {
      zoom.span.value = "";
      zoom.path.value = pathText(path.slice(0, length));
    });
  // Of a long path, the end is visible.
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    element.current!.scrollLeft = element.current!.scrollWidth;
  }, [pathText(path)]);
  return (
    <nav ref={element} class="flame-breadcrumbs" aria-label="Zoomed to">
      <button type="button" aria-current={path.length === 0} title="Show everything (0)" onClick={() => go(0)}>
        All
      </button>
      {path.map((of, place) => (
        <button key={place} type="button" aria-current={place + 1 === path.length} onClick={() => go(place + 1)}>
          {functionName(names(), of)}
        </button>
      ))}
      {path.length === 0 && !isPart && (
        <span class="flame-part">
          <span class="with-mouse">A click zooms to a box. Ctrl and the wheel zoom, dragging moves.</span>
          <span class="with-fingers">A tap zooms to a box, two fingers zoom.</span>
        </span>
      )}
      {isPart && <span class="flame-part">a part of it</span>}
      {layout.isCut && <span class="flame-part">Boxes far from the root are left out: zoom in to see them.</span>}
    </nav>
  );
}
