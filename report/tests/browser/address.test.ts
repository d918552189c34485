// The selection is in the address, which supports steps back, and opening it elsewhere.

import assert from "node:assert/strict";
import { inBrowsers } from "./browsers";
import { Opened, until } from "./opened";

inBrowsers(["chromium", "firefox"], "back and forward go through views", async (browser) => {
  const opened = await Opened.open(browser, "calls");
  await opened.show("table");
  await opened.show("flame");
  await opened.page.evaluate(() => history.back());
  await opened.shows("table");
  await opened.page.evaluate(() => history.back());
  await opened.shows("overview");
  await opened.page.evaluate(() => history.forward());
  await opened.shows("table");
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "an address opens the same in another tab", async (browser) => {
  const first = await Opened.open(browser, "calls");
  await first.show("table");
  await first.page.click(".toggle.internals");
  await first.page.type("#search", "fibonacci");
  await until(first.page, "what was found", () => document.querySelectorAll("#view tbody tr:not(.gap)").length === 1);
  await first.page.click("#view tbody tr:not(.gap)");
  await first.page.click(".theme");
  await until(first.page, "the selected function", () => document.querySelector("aside.selected") !== null);
  await first.settled();
  const address = (await first.address()).toString();
  const seen = {
    text: await first.text("body"),
    theme: await first.page.evaluate(() => document.documentElement.dataset.theme),
  };
  await first.close();
  const second = await Opened.open(browser, "calls", { address });
  await until(second.page, "the selected function", () => document.querySelector("aside.selected") !== null);
  await second.settled();
  assert.equal((await second.address()).toString(), address);
  assert.equal(await second.text("body"), seen.text);
  assert.equal(await second.page.evaluate(() => document.documentElement.dataset.theme), seen.theme);
  await second.close();
});

inBrowsers(["chromium"], "an invalid address does no harm", async (browser) => {
  const nonsense = [
    "view=nowhere",
    "function=99999",
    "function=x",
    "range=5-1",
    "threads=77",
    "measure=taste",
    "table.order=%00",
  ];
  for (const address of [
    ...nonsense,
    `view=table&${nonsense.slice(1).join("&")}`,
    "view=flame&flame.path=1.2.999&flame.span=a",
  ]) {
    const opened = await Opened.open(browser, "calls", { address });
    assert.notEqual((await opened.text()).trim(), "", address);
    await opened.close();
  }
});
