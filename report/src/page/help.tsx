// The help with all keys.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export const isHelpShown = signal(false);

const KEYS: { where: string; keys: [string, string][] }[] = [
  {
    where: "Everywhere",
    keys: [
      ["1 … 8", "go to a view"],
      ["/", "search"],
      ["Esc", "close the search; clear the selection"],
      ["?", "show this help"],
    ],
  },
  {
    where: "Flame graph",
    keys: [
      ["← → ↑ ↓", "go to the next box"],
      ["Enter", "zoom to it"],
      ["Backspace", "zoom out"],
      ["Shift+← →", "move"],
      ["+ −", "zoom in, zoom out"],
      ["0", "show everything"],
    ],
  },
  {
    where: "Timeline",
    keys: [
      ["W S", "zoom in, zoom out"],
      ["A D", "earlier, later"],
      ["↑ ↓ Shift+← →", "go to the next span"],
      ["C", "close or open the thread's track"],
      ["F", "fit to the selected span"],
      ["N P", "next, previous call of the selected function"],
      ["M", "select the visible time, in all views"],
      ["0", "show everything"],
    ],
  },
  {
    where: "Call graph",
    keys: [
      ["← → ↑ ↓", "go to callers, callees and neighbours"],
      ["Space", "select"],
      ["Enter", "show only paths through it; Esc: show everything"],
      ["+ −", "zoom in, zoom out"],
      ["0", "show everything"],
    ],
  },
  {
    where: "Memory",
    keys: [
      ["← → Home End", "choose a moment of the curve"],
      ["Shift+← →", "choose another one to compare with"],
      ["+ −", "zoom in, zoom out"],
      ["0", "show the whole recording"],
    ],
  },
  {
    where: "Segments of a device",
    keys: [
      ["← → Home End", "go from block to block"],
      ["+ −", "zoom in, zoom out"],
      ["0", "reset the size"],
    ],
  },
  {
    where: "Lists and sources",
    keys: [
      ["↑ ↓ Home End", "go through rows"],
      ["Enter", "select; again: callers and callees"],
      ["N P", "next, previous expensive line"],
    ],
  },
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const isShown = isHelpShown.value;
  useEffect(() => {
    if (isShown) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isShown]);
  const close = () => {
    isHelpShown.value = false;
  };
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close}>
      <div class="help-head">
        <h2 id="help-title">Keys</h2>
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
      <div class="sheets">
        {KEYS.map(({ where, keys }) => (
          <section key={where}>
            <h3>{where}</h3>
            <dl>
              {keys.map(([key, what]) => [
                <dt key={key}>
                  <kbd>{key}</kbd>
                </dt>,
                <dd key={what}>{what}</dd>,
              ])}
            </dl>
          </section>
        ))}
      </div>
      <p>
        Ctrl and the wheel zoom at the pointer; dragging moves. The address contains the view and the selection: copy it
        to keep or share them.
      </p>
    </dialog>
  );
}
