// The state of the page is in its address, so that it can be kept, sent and navigated.

import { effect, type Signal, signal } from "@preact/signals";

interface Kept {
  signal: Signal<string>;
  initial: string;
  /** Whether a change is a step that "back" reverts. */
  isStep: boolean;
}

/** Inside another page, as in a notebook, there may be no address: then the state is kept here. */
const hasAddress = location.protocol !== "about:";
let insteadOfAddress = "";

const kept = new Map<string, Kept>();
let isReading = false;

function fromAddress(): URLSearchParams {
  return new URLSearchParams(hasAddress ? location.hash.slice(1) : insteadOfAddress);
}

/** Returns a text that is kept in the address under this name, unless it has its default. */
export function addressed(name: string, initial: string, { isStep = false } = {}): Signal<string> {
  const known = kept.get(name);
  if (known) return known.signal;
  const made = signal(fromAddress().get(name) ?? initial);
  kept.set(name, { signal: made, initial, isStep });
  let before = made.peek();
  effect(() => {
    const now = made.value;
    if (now !== before && !isReading) write(isStep);
    before = now;
  });
  return made;
}

/** Returns the address of this page with some changes of the state. */
export function addressWith(changes: Record<string, string>): string {
  const texts = new URLSearchParams();
  for (const [name, { signal: text, initial }] of kept) {
    const value = changes[name] ?? text.peek();
    if (value !== initial) texts.set(name, value);
  }
  for (const [name, value] of Object.entries(changes)) if (!kept.has(name)) texts.set(name, value);
  return `#${texts}`;
}

function write(isStep: boolean): void {
  const address = addressWith({});
  if (!hasAddress) {
    insteadOfAddress = address.slice(1);
    return;
  }
  if (address === (location.hash || "#")) return;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

function read(): void {
  const texts = fromAddress();
  isReading = true;
  for (const [name, { signal: text, initial }] of kept) text.value = texts.get(name) ?? initial;
  isReading = false;
}

/** Follows a link. Without an address, links would lead to the address of the page around this one. */
function follow(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
  if (link === null) return;
  if (!event.defaultPrevented) {
    insteadOfAddress = link.getAttribute("href")!.slice(1);
    read();
  }
  event.preventDefault();
}

addEventListener("popstate", read);
addEventListener("hashchange", read);
if (!hasAddress) addEventListener("click", follow);
