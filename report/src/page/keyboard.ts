// Keys that work in each view. Views have further keys on their own elements.

import { isHelpShown } from "./help";
import { head, select, show } from "./state";
import { VIEWS } from "./views";

/** Returns whether the user is typing. */
function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

export function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isHelpShown.value) return;
  const searchBox = document.getElementById("search");
  if (isWriting(event.target)) {
    if (event.key === "Escape" && event.target instanceof HTMLElement) {
      event.target.blur();
      // Chromium would clear the search.
      event.preventDefault();
    }
    return;
  }
  if (event.key === "/") {
    searchBox?.focus();
    event.preventDefault();
  } else if (event.key === "?") {
    isHelpShown.value = true;
  } else if (event.key === "Escape") {
    select(null);
  } else if (/^[1-9]$/.test(event.key)) {
    const views = VIEWS.filter((of) => of.isThere(head()));
    const chosen = views[Number(event.key) - 1];
    if (chosen) show(chosen.name);
  }
}
