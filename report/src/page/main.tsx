// Opens the report.

import { render } from "preact";
import { App } from "./app";
import { query } from "./engine";
import { Problem } from "./problem";
import { report } from "./state";

/** For scripts that drive the page: the engine methods that views use. */
Object.assign(globalThis, { stackweave: { query } });

const root = document.getElementById("app")!;

async function open(): Promise<void> {
  try {
    // It is written last.
    if (!document.getElementById("sw-head")) throw new Error("the file is cut off");
    const opened = await query("open");
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

// The script comes before the data, so that it can detect incomplete data.
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", open);
else void open();
