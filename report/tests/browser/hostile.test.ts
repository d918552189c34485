// Names of a recording can't run, load or hide anything.

import assert from "node:assert/strict";
import { inBrowsers } from "./browsers";
import { Opened } from "./opened";

inBrowsers(["chromium", "firefox"], "names are texts in each view", async (browser) => {
  const opened = await Opened.open(browser, "hostile", { height: 3000 });
  assert.ok(
    (await opened.page.title()).includes("<script>window.pwned=8</script>"),
    "the command line is in the title",
  );
  for (const view of await opened.views()) {
    await opened.show(view);
    await opened.mustBeRight();
  }
  await opened.show("table");
  const text = await opened.text();
  for (const part of [
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=2>",
    "&lt;script&gt;",
  ])
    assert.ok(text.includes(part), part);
  const threads = await opened.page.$$eval("#threads option", (options) => options.map((option) => option.textContent));
  assert.ok(
    threads.some((name) => name?.includes("<script>")),
    threads.join("\n"),
  );
  await opened.close();
});

inBrowsers(["chromium", "firefox"], "each function can be selected, whatever its name", async (browser) => {
  const opened = await Opened.open(browser, "hostile", { address: "view=table" });
  const functions = await opened.page.evaluate(async () => {
    type Named = { names: { functions: { name: Uint32Array } } };
    const { stackweave } = globalThis as unknown as { stackweave: { query(method: string): Promise<Named> } };
    return (await stackweave.query("open")).names.functions.name.length;
  });
  for (let of = 0; of < functions; of += 3) {
    await opened.page.evaluate((chosen) => {
      location.hash = `#view=table&function=${chosen}`;
    }, of);
  }
  await opened.settled();
  const links = await opened.page.$$eval("a", (all) => all.map((link) => link.getAttribute("href")));
  assert.ok(links.length > 0, "there are links to views");
  for (const link of links) assert.match(link!, /^#/);
  await opened.close();
});

inBrowsers(
  ["chromium", "firefox"],
  "the policy allows no other script or style, and no requests",
  async (browser, name) => {
    const opened = await Opened.open(browser, "calls");
    const ran = await opened.page.evaluate(async () => {
      const script = document.createElement("script");
      try {
        script.textContent = "window.pwned = 1";
      } catch {
        // Trusted Types refuse the text.
      }
      document.body.append(script);
      const image = new Image();
      const failed = new Promise((resolve) => image.addEventListener("error", resolve));
      image.src = "https://example.invalid/x.png";
      await failed;
      const fetched = await fetch("https://example.invalid/").then(
        () => true,
        () => false,
      );
      const button = document.createElement("button");
      try {
        button.setAttribute("onclick", "window.pwned = 2");
      } catch {
        // This one is refused, too.
      }
      document.body.append(button);
      button.click();
      return { pwned: String((window as unknown as { pwned?: number }).pwned), fetched };
    });
    assert.deepEqual(ran, { pwned: "undefined", fetched: false });
    const violations = await opened.page.evaluate(() => (window as unknown as { violations: string[] }).violations);
    const directives = new Set(violations.map((text) => text.split(/[-:]/)[0]));
    assert.ok(directives.has("script") || directives.has("require"), violations.join("\n"));
    assert.ok(directives.has("img") && directives.has("connect"), violations.join("\n"));
    if (name === "chromium") {
      const refused = await opened.page.evaluate(() => {
        try {
          document.body.insertAdjacentHTML("beforeend", "<b>x</b>");
          return false;
        } catch {
          return true;
        }
      });
      assert.ok(refused, "no markup is made of texts");
    }
    await opened.page.close();
  },
);
