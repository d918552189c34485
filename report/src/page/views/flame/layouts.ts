// Asks for layouts, one after the other: while one is on its way only the newest of what is asked for meanwhile counts.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Layout, LayoutRequest } from "../../../engine/flame/layout";

export interface Laid<L extends Layout = Layout> {
  layout: L | undefined;
  /** What it is the layout of: the tree, and all that was asked for. */
  treeKey: string;
  key: string;
  error: string | undefined;
}

interface Asked<L> {
  treeKey: string;
  key: string;
  ask(): Promise<L>;
}

/** The newest layout. Until there is a newer one, the one before stays. */
export function useLayout<L extends Layout>(
  treeKey: string,
  request: LayoutRequest,
  layOut: (request: LayoutRequest) => Promise<L>,
): { laid: Laid<L>; key: string } {
  const [laid, setLaid] = useState<Laid<L>>({ layout: undefined, treeKey: "", key: "", error: undefined });
  const key = JSON.stringify([treeKey, request]);
  const newest = useRef<Asked<L>>({ treeKey, key, ask: () => layOut(request) });
  newest.current = { treeKey, key, ask: () => layOut(request) };
  const isBusy = useRef(false);
  const isGone = useRef(false);
  const isAsked = request.pixels > 0;
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  useEffect(() => {
    if (isAsked && !isBusy.current) void answerAll();
  }, [key]);

  async function answerAll(): Promise<void> {
    isBusy.current = true;
    for (let last = ""; last !== newest.current.key && !isGone.current; ) {
      const asked = newest.current;
      last = asked.key;
      const answer = await asked.ask().then(
        (layout) => ({ layout, error: undefined }),
        (error: Error) => ({ layout: undefined, error: error.message }),
      );
      if (!isGone.current) setLaid({ ...answer, treeKey: asked.treeKey, key: asked.key });
    }
    isBusy.current = false;
  }

  return { laid, key };
}
