// Opens the report.

import { render } from "preact";
import { App } from "./app";
import { ask } from "./engine";
import { Problem } from "./problem";
import { report } from "./state";

/** For scripts that drive the page: they may ask the engine what views ask it. */
Object.assign(globalThis, { stackweave: { ask } });

const root = document.getElementById("app")!;

async function open(): Promise<void> {
  try {
    // It is written last.
    if (!document.getElementById("sw-head")) throw new Error("the file is cut off");
    const opened = await ask("open");
    report.value = opened;
    document.title = `${opened.head.title} – Stackweave`;
    root.textContent = "";
    render(<App />, root);
    root.dataset.ready = "true";
  } catch (error) {
    root.textContent = "";
    render(
      <Problem what="This report can't be opened" why={error instanceof Error ? error.message : String(error)} />,
      root,
    );
  }
}

// The script stands before the data, so that it can tell if they are not all there.
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", open);
else void open();
