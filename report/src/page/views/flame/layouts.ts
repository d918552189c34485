// Requests layouts, one at a time: while one is computed, only the newest later request is kept.

import { useEffect, useRef, useState } from "preact/hooks";
import type { FlameLayout, LayoutRequest } from "../../../engine/flame/layout";

export interface Laid<L extends FlameLayout = FlameLayout> {
  layout: L | undefined;
  /** The key of the layout: the tree, and the parameters of the request. */
  treeKey: string;
  key: string;
  error: string | undefined;
}

interface PendingLayout<L> {
  treeKey: string;
  key: string;
  query(): Promise<L>;
}

/** Returns the newest layout. Until there is a newer one, the previous one stays. */
export function useLayout<L extends FlameLayout>(
  treeKey: string,
  request: LayoutRequest,
  layOut: (request: LayoutRequest) => Promise<L>,
): { laid: Laid<L>; key: string } {
  const [laid, setLaid] = useState<Laid<L>>({ layout: undefined, treeKey: "", key: "", error: undefined });
  const key = JSON.stringify([treeKey, request]);
  const newest = useRef<PendingLayout<L>>({ treeKey, key, query: () => layOut(request) });
  newest.current = { treeKey, key, query: () => layOut(request) };
  const isBusy = useRef(false);
  const isGone = useRef(false);
  const isRequested = request.pixels > 0;
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  useEffect(() => {
    if (isRequested && !isBusy.current) void answerAll();
  }, [key]);

  async function answerAll(): Promise<void> {
    isBusy.current = true;
    for (let last = ""; last !== newest.current.key && !isGone.current; ) {
      const newestRequest = newest.current;
      last = newestRequest.key;
      const answer = await newestRequest.query().then(
        (layout) => ({ layout, error: undefined }),
        (error: Error) => ({ layout: undefined, error: error.message }),
      );
      if (!isGone.current) setLaid({ ...answer, treeKey: newestRequest.treeKey, key: newestRequest.key });
    }
    isBusy.current = false;
  }

  return { laid, key };
}
