// The page works with keyboards and screen readers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { inBrowsers } from "./browsers";
import { Opened, until } from "./opened";

interface Finding {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

inBrowsers(["chromium"], "axe finds nothing serious in any view", async (browser) => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  const found: string[] = [];
  for (const name of ["calls", "memory", "devices"] as const) {
    for (const theme of ["light", "dark"] as const) {
      // The policy would forbid it.
      const opened = await Opened.open(browser, name, { theme, bypassPolicy: true, height: 700 });
      await opened.page.evaluate(axe);
      for (const view of await opened.views()) {
        await opened.show(view);
        const findings = (await opened.page.evaluate(async () => {
          const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: unknown }> } };
          return (await axe.run()).violations;
        })) as Finding[];
        for (const { id, impact, nodes } of findings.filter((of) => ["serious", "critical"].includes(of.impact)))
          found.push(`${name} ${view} ${theme}: ${impact} ${id}: ${nodes[0]!.html} ${nodes[0]!.failureSummary}`);
      }
      await opened.page.close();
    }
  }
  assert.deepEqual(found, []);
});

/** Describes the focused element, and whether it is visible. */
const focused = () => {
  const element = document.activeElement as HTMLElement;
  // In a table, the row on which keys act is marked.
  const marked = [element, ...element.querySelectorAll(".cursor td")].map((of) => getComputedStyle(of));
  return {
    name: element.getAttribute("aria-label") ?? element.innerText ?? "",
    role: element.getAttribute("role") ?? element.tagName.toLowerCase(),
    isSeen: marked.some(
      (style) =>
        (style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
    ),
    isBody: element === document.body,
  };
};

inBrowsers(["chromium", "firefox"], "the Tab key goes through everything, and the focus is seen", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=table" });
  const passed: string[] = [];
  for (let step = 0; step < 60; step++) {
    await opened.page.keyboard.press("Tab");
    const now = await opened.page.evaluate(focused);
    if (now.isBody) break;
    assert.ok(now.name !== "" || now.role === "input", `something of the role ${now.role} has no name`);
    assert.ok(now.isSeen, `the focus on ${now.role} ${now.name} is not seen`);
    passed.push(now.role);
  }
  const first = (role: string) => passed.indexOf(role);
  for (const role of ["tab", "select", "button", "input", "grid"]) assert.ok(first(role) >= 0, `${role}: ${passed}`);
  assert.ok(
    first("tab") < first("select") && first("select") < first("input") && first("input") < first("grid"),
    `${passed}`,
  );
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "a function is found, selected and left by keys only", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  const { keyboard } = opened.page;
  const place = (await opened.views()).indexOf("table") + 1;
  await keyboard.press(String(place) as "1");
  await opened.shows("table");
  await keyboard.press("/");
  await keyboard.type("fibonacci");
  await until(opened.page, "what was found", () => document.querySelectorAll("#view tbody tr:not(.gap)").length === 1);
  for (let step = 0; step < 20; step++) {
    await keyboard.press("Tab");
    if ((await opened.page.evaluate(focused)).role === "grid") break;
  }
  await keyboard.press("ArrowDown");
  await keyboard.press("Enter");
  await until(opened.page, "the selected function", () => document.querySelector("aside.selected") !== null);
  assert.match(await opened.text("aside.selected"), /fibonacci/);
  assert.notEqual((await opened.address()).get("function"), null);
  await keyboard.press("Escape");
  await until(opened.page, "nothing selected", () => document.querySelector("aside.selected") === null);
  await keyboard.press("?");
  await until(opened.page, "the keys", () => document.querySelector("dialog[open]") !== null);
  await keyboard.press("Escape");
  await until(opened.page, "no keys", () => document.querySelector("dialog[open]") === null);
  await opened.close();
});
