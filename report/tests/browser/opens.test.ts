// The page opens from a disk without a network, and shows each view.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inBrowsers } from "./browsers";
import { Opened, PAGES, until } from "./opened";

inBrowsers(["chromium"], "opens with no network", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  await opened.page.setOfflineMode(true);
  await opened.page.reload();
  await opened.ready();
  assert.match(await opened.page.title(), /calls/);
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "each view opens by its tab and by its key", async (browser) => {
  for (const name of ["calls", "memory"] as const) {
    const opened = await Opened.open(browser, name);
    const views = await opened.views();
    assert.ok(views.length >= 4, views.join(" "));
    for (const view of [...views].reverse()) {
      await opened.show(view);
      assert.notEqual((await opened.text()).trim(), "", view);
    }
    for (const [place, view] of views.entries()) {
      await opened.page.keyboard.press(String(place + 1) as "1");
      await opened.shows(view);
      assert.equal((await opened.address()).get("view") ?? "overview", view);
    }
    await opened.close();
  }
});

inBrowsers(["chromium", "firefox"], "an incomplete page reports that", async (browser) => {
  const whole = readFileSync(join(PAGES, "calls.html"), "utf8");
  const block = whole.indexOf('id="sw-0">') + 'id="sw-0">'.length;
  const pages = { cut: whole.slice(0, block + 40), damaged: whole.replaceAll(/(id="sw-\d+">)..../g, "$1AAAA") };
  for (const [how, text] of Object.entries(pages)) {
    const path = join(PAGES, `${how}.html`);
    writeFileSync(path, text);
    const page = await browser.newPage();
    await page.goto(`${pathToFileURL(path).href}#view=table`);
    await until(page, "the problem", () => document.querySelector("[role=alert]") !== null);
    await page.close();
  }
});
