// The page works inside another page, as in notebooks: in a frame without an address, and without access to that page.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Frame, Page } from "puppeteer-core";
import { inBrowsers, PATIENCE_MS } from "./browsers";
import { PAGES, type PageName } from "./opened";

/** The frame that `%%trace` writes, and one like those in which front ends wrap untrusted output. */
const SANDBOXES = ["allow-scripts allow-downloads", "allow-scripts allow-same-origin allow-downloads"];

async function until<Arguments extends unknown[]>(
  frame: Frame,
  what: string,
  holds: (...of: Arguments) => boolean,
  ...of: Arguments
): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!(await frame.evaluate(holds, ...(of as unknown as never[])))) {
    if (Date.now() > end) throw new Error(`waited for ${what} in vain`);
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

interface Framed {
  page: Page;
  frame: Frame;
  problems: string[];
}

/** Opens it in a frame of another page, and waits for an element. */
async function framed(
  browser: Browser,
  name: PageName,
  sandbox: string,
  { policy = "", first = "#app[data-ready=true]" } = {},
): Promise<Framed> {
  const text = readFileSync(join(PAGES, `${name}.html`), "utf8");
  const escaped = text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const path = join(PAGES, `framed-${name}.html`);
  const meta = policy && `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const around = `<!doctype html><meta charset="utf-8">${meta}<title>notebook</title><textarea id="cell"></textarea>
<iframe srcdoc="${escaped}" sandbox="${sandbox}" style="width: 100%; height: 700px"></iframe>`;
  writeFileSync(path, around);
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(pathToFileURL(path).href);
  const element = await page.$("iframe");
  const frame = await element!.contentFrame();
  await until(frame, first, (wanted) => document.querySelector(wanted) !== null, first);
  return { page, frame, problems };
}

inBrowsers(["chromium", "firefox"], "each view opens inside a frame", async (browser) => {
  for (const sandbox of SANDBOXES) {
    const { page, frame, problems } = await framed(browser, "calls", sandbox);
    const before = page.url();
    const views = await frame.$$eval("[role=tab]", (tabs) => tabs.map((tab) => tab.id.slice("tab-".length)));
    assert.ok(views.length >= 4, views.join(" "));
    for (const view of [...views].reverse()) {
      await frame.$eval(`#tab-${view}`, (tab) => (tab as HTMLElement).click());
      const end = Date.now() + PATIENCE_MS;
      while ((await frame.$eval("#view", (element) => (element as HTMLElement).dataset.view)) !== view)
        assert.ok(Date.now() < end, view);
    }
    assert.deepEqual(problems, []);
    assert.equal(page.url(), before, "the page around it stays where it is");
    await page.close();
  }
});

inBrowsers(["chromium", "firefox"], "links stay inside the frame", async (browser) => {
  const { page, frame, problems } = await framed(browser, "calls", SANDBOXES[0]!);
  await until(frame, "the link", () => document.querySelector("a.more") !== null);
  await frame.$eval("a.more", (link) => (link as HTMLElement).click());
  await until(frame, "the table", () => document.getElementById("view")?.dataset.view === "table");
  assert.equal(await page.title(), "notebook");
  assert.deepEqual(problems, []);
  await page.close();
});

inBrowsers(["chromium"], "the report gets keys inside the frame, and the notebook outside", async (browser) => {
  const { page, frame } = await framed(browser, "calls", SANDBOXES[0]!);
  await page.evaluate(() => {
    const keys: string[] = [];
    Object.assign(window, { keys });
    addEventListener("keydown", (event) => keys.push(event.key));
  });
  await frame.click("#tab-overview");
  await page.keyboard.press("2");
  await until(frame, "the second view", () => document.getElementById("view")?.dataset.view !== "overview");
  const seen = () => page.evaluate(() => (window as unknown as { keys: string[] }).keys);
  assert.deepEqual(await seen(), []);
  await page.click("#cell");
  await page.keyboard.press("1");
  assert.deepEqual(await seen(), ["1"]);
  assert.notEqual(await frame.$eval("#view", (element) => (element as HTMLElement).dataset.view), "overview");
  await page.close();
});

inBrowsers(["chromium", "firefox"], "a surrounding page that forbids workers is reported", async (browser) => {
  const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; child-src https: data:";
  const { page, frame } = await framed(browser, "calls", SANDBOXES[0]!, { policy, first: "[role=alert]" });
  assert.match(await frame.$eval("body", (body) => body.innerText), /open the report in a tab/);
  await page.close();
});
