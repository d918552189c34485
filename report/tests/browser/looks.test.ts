// The page fits both themes and phones. The test keeps a screenshot of each view for review.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { inBrowsers } from "./browsers";
import { Opened, type PageName } from "./opened";

const FOLDER = process.env.STACKWEAVE_REPORT_SCREENSHOTS ?? "build/screenshots";

const SIZES = [
  { name: "wide", width: 1280, height: 800 },
  { name: "phone", width: 390, height: 800 },
] as const;

inBrowsers(["chromium"], "each view fits in both themes and on a phone", async (browser) => {
  mkdirSync(FOLDER, { recursive: true });
  for (const name of ["calls", "memory", "devices"] satisfies PageName[]) {
    for (const theme of ["light", "dark"] as const) {
      for (const size of SIZES) {
        const opened = await Opened.open(browser, name, { theme, ...size });
        assert.equal(await opened.page.evaluate(() => document.documentElement.dataset.theme), theme);
        for (const view of await opened.views()) {
          await opened.show(view);
          const path = join(FOLDER, `${name}-${view}-${theme}-${size.name}.png`) as `${string}.png`;
          await opened.page.screenshot({ path });
          const [needed, given] = await opened.page.evaluate(
            () => [document.documentElement.scrollWidth, innerWidth] as const,
          );
          assert.ok(needed <= given, `${view} is ${needed} pixels wide on ${given}`);
        }
        await opened.close();
      }
    }
  }
});

inBrowsers(["chromium", "firefox"], "the theme is changed by a button, and kept", async (browser) => {
  const opened = await Opened.open(browser, "calls", { address: "theme=light" });
  const colours = () =>
    opened.page.evaluate(() => {
      const style = getComputedStyle(document.body);
      return [
        document.documentElement.dataset.theme,
        style.color,
        getComputedStyle(document.documentElement).colorScheme,
      ];
    });
  const light = await colours();
  await opened.page.click(".theme");
  await opened.settled();
  const dark = await colours();
  assert.deepEqual([light[0], dark[0], light[2], dark[2]], ["light", "dark", "light", "dark"]);
  assert.notEqual(light[1], dark[1]);
  assert.equal((await opened.address()).get("theme"), "dark");
  await opened.close();
});
