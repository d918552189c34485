// Mouse and keys zoom. The visible part is in the address, and steps can be reverted.

import assert from "node:assert/strict";
import { inBrowsers } from "./browsers";
import { Opened, until } from "./opened";

const CANVAS = "#view canvas";

async function untilAddress(opened: Opened, name: string, isThere: boolean): Promise<string> {
  await until(
    opened.page,
    `${name} in the address`,
    (of, wanted) => new URLSearchParams(location.hash.slice(1)).has(of) === wanted,
    name,
    isThere,
  );
  await opened.settled();
  return (await opened.address()).get(name) ?? "";
}

/** Turns the wheel with the Ctrl key over the first canvas. */
async function wheel(opened: Opened, deltaY: number): Promise<void> {
  const box = (await (await opened.page.$(CANVAS))!.boundingBox())!;
  await opened.page.mouse.move(box.x + box.width / 3, box.y + 60);
  await opened.page.keyboard.down("Control");
  await opened.page.mouse.wheel({ deltaY });
  await opened.page.keyboard.up("Control");
}

inBrowsers(["chromium", "firefox"], "a click, keys and the wheel zoom in the flame graph", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=flame" });
  const { page } = opened;
  const box = (await (await page.$(CANVAS))!.boundingBox())!;
  await page.mouse.click(box.x + box.width / 4, box.y + 50);
  const path = await untilAddress(opened, "flame.path", true);
  assert.notEqual(path, "");
  await page.evaluate(() => history.back());
  await untilAddress(opened, "flame.path", false);
  await page.focus(CANVAS);
  await page.keyboard.press("+");
  const first = await untilAddress(opened, "flame.span", true);
  await page.keyboard.press("+");
  await until(
    page,
    "a closer look",
    (before) => new URLSearchParams(location.hash.slice(1)).get("flame.span") !== before,
    first,
  );
  await page.keyboard.press("0");
  await untilAddress(opened, "flame.span", false);
  await wheel(opened, -300);
  await untilAddress(opened, "flame.span", true);
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "keys and the wheel zoom in the timeline", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=timeline" });
  const { page } = opened;
  await page.focus(CANVAS);
  await page.keyboard.press("w");
  const first = await untilAddress(opened, "timeline.window", true);
  await page.keyboard.press("w");
  const windowIs = (before: string) => new URLSearchParams(location.hash.slice(1)).get("timeline.window") !== before;
  await until(page, "a closer look", windowIs, first);
  await page.keyboard.press("0");
  await untilAddress(opened, "timeline.window", false);
  await wheel(opened, -300);
  await untilAddress(opened, "timeline.window", true);
  await opened.close();
});

inBrowsers(
  ["chromium", "firefox"],
  "the visible time of the timeline can be selected for all views",
  async (browser) => {
    const opened = await Opened.open(browser, "calls", { address: "view=timeline" });
    const { page } = opened;
    const place = String((await opened.views()).indexOf("table") + 1) as "1";
    await page.keyboard.press(place);
    await opened.shows("table");
    const all = await opened.text("#view output");
    await opened.show("timeline");
    await page.focus(CANVAS);
    for (let step = 0; step < 3; step++) await page.keyboard.press("w");
    await untilAddress(opened, "timeline.window", true);
    await page.keyboard.press("m");
    const range = await untilAddress(opened, "range", true);
    assert.match(range, /^\d+-\d+$/);
    await opened.show("table");
    assert.notEqual(await opened.text("#view output"), all);
    await opened.close();
  },
);
