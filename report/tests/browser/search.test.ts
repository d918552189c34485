// The bar that all views have searches and filters.

import assert from "node:assert/strict";
import { inBrowsers } from "./browsers";
import { Opened, until } from "./opened";

const foundRows = () => document.querySelectorAll("#view tbody tr:not(.gap)").length;

inBrowsers(["chromium", "firefox"], "a search finds functions, and shows how many", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=table" });
  await opened.page.keyboard.press("/");
  await opened.page.keyboard.type("PARSER calls.py");
  await until(opened.page, "what was found", () => /\b\d+ of \d+ functions found/.test(document.body.innerText));
  await opened.settled();
  const counts = (await opened.text("#view output"))
    .match(/^(\d+) of (\d+)/)!
    .slice(1)
    .map(Number);
  const names = await opened.page.$$eval("#view tbody td.name", (cells) => cells.map((cell) => cell.textContent));
  assert.equal(names.length, counts[0]);
  assert.ok(counts[0]! >= 4 && counts[0]! < counts[1]!, counts.join(" of "));
  for (const name of names) assert.match(name!, /Parser/);
  assert.equal((await opened.address()).get("search"), "PARSER calls.py");
  const live = await opened.page.$$eval("[aria-live]", (elements) =>
    elements.map((element) => element.textContent).join(" "),
  );
  assert.match(live, /\d+ of \d+ functions found/);
  await opened.page.keyboard.press("Escape");
  await opened.page.keyboard.press("2");
  await opened.shows("flame");
  assert.equal(await opened.page.$eval("#search", (box) => (box as HTMLInputElement).value), "PARSER calls.py");
  await opened.close();
});

inBrowsers(["chromium"], "a search that finds nothing says what to do", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=table&search=there-is-no-such-thing" });
  await until(opened.page, "the advice", () => /Search for less/.test(document.body.innerText));
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "one click on a filter changes what is shown", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=table" });
  const count = async () => Number((await opened.text("#view output")).match(/^[\d,]+/)![0]);
  const usual = await count();
  const toggled = async (of: string) => {
    await opened.page.click(`.toggle.${of}`);
    await opened.settled();
    return count();
  };
  const pressed = (of: string) => opened.page.$eval(`.toggle.${of}`, (button) => button.getAttribute("aria-pressed"));
  assert.equal(await pressed("internals"), "false");
  assert.ok((await toggled("internals")) > usual);
  assert.equal(await pressed("internals"), "true");
  assert.equal(await toggled("internals"), usual);
  const self = await toggled("libraries");
  assert.ok(self < usual && self > 5);
  const places = await opened.page.$$eval("#view tbody td.place", (cells) => cells.map((cell) => cell.textContent));
  assert.ok(!places.some((place) => place?.includes("json/")), places.join("\n"));
  assert.ok((await toggled("python")) < self);
  assert.equal(await toggled("python"), self);
  await opened.close();
});

inBrowsers(["chromium"], "one thread of several can be selected", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "view=table" });
  const all = await opened.page.evaluate(foundRows);
  const worker = await opened.page.$$eval("#threads option", (options) =>
    options.find((option) => option.textContent?.startsWith("worker-1"))!.getAttribute("value"),
  );
  await opened.page.select("#threads", worker!);
  await opened.settled();
  assert.ok((await opened.page.evaluate(foundRows)) < all);
  assert.ok(!(await opened.text()).includes("<lambda>"));
  await opened.close();
});
