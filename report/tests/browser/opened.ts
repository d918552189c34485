// A report that is open in a browser, and all its errors.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "puppeteer-core";
import { PATIENCE_MS } from "./browsers";

export const PAGES = process.env.STACKWEAVE_REPORT_PAGES!;

export type PageName = "calls" | "inside" | "memory" | "devices" | "hostile";

export interface Options {
  /** The text after the "#". */
  address?: string;
  width?: number;
  height?: number;
  theme?: "light" | "dark";
  bypassPolicy?: boolean;
}

/** Waits for a condition in the page. Not `waitForFunction`: that compiles a text, which the policy forbids. */
export async function until<Arguments extends unknown[]>(
  page: Page,
  what: string,
  holds: (...of: Arguments) => boolean | Promise<boolean>,
  ...of: Arguments
): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  while (!(await page.evaluate(holds, ...(of as unknown as never[])))) {
    if (Date.now() > end)
      throw new Error(
        `waited for ${what} in vain: ${await page.evaluate(() => document.body.innerText.slice(0, 2000))}`,
      );
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

/** Firefox sometimes reports this for scripts of the driver, which have a separate realm. */
const FIREFOX_OWN = /Permission denied to access property/;

export class Opened {
  readonly problems: string[] = [];
  readonly requests: string[] = [];

  private constructor(
    readonly page: Page,
    readonly url: string,
  ) {
    page.on("console", (message) => {
      if (["error", "warn"].includes(message.type())) this.problems.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      if (!FIREFOX_OWN.test(text)) this.problems.push(`error: ${text}`);
    });
    page.on("request", (request) => this.requests.push(request.url()));
  }

  static async open(browser: Browser, name: PageName, options: Options = {}): Promise<Opened> {
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const opened = new Opened(page, pathToFileURL(join(PAGES, `${name}.html`)).href);
    // Firefox keeps the size from its start: its protocol can't change it yet.
    if (!(await browser.version()).startsWith("firefox"))
      await page.setViewport({ width: options.width ?? 1280, height: options.height ?? 800 });
    if (options.theme) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: options.theme }]);
    if (options.bypassPolicy) await page.setBypassCSP(true);
    await page.evaluateOnNewDocument(() => {
      const violations: string[] = [];
      Object.assign(window, { violations });
      addEventListener("securitypolicyviolation", (event) =>
        violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`),
      );
    });
    await page.goto(opened.url + (options.address ? `#${options.address}` : ""));
    await opened.ready();
    return opened;
  }

  async ready(): Promise<void> {
    await until(this.page, "the report to open", () => document.getElementById("app")?.dataset.ready === "true");
    await this.settled();
  }

  /** Waits until the view has drawn the current request: the engine has answered, and nothing shows a pending answer. */
  async settled(): Promise<void> {
    await until(this.page, "the view", async () => {
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      const isPending = () =>
        [...document.querySelectorAll("#view [role=status], #view [aria-busy=true]")].some(
          (element) => element.getAttribute("aria-busy") === "true" || element.textContent?.trim().endsWith("…"),
        );
      for (let turn = 0; turn < 3; turn++) {
        await (globalThis as unknown as { stackweave: { query(method: string): Promise<unknown> } }).stackweave.query(
          "open",
        );
        await frame();
        await frame();
        if (isPending()) return false;
      }
      return true;
    });
  }

  /** Returns the names of the views that have tabs, in their order. */
  views(): Promise<string[]> {
    return this.page.$$eval("[role=tab]", (tabs) => tabs.map((tab) => tab.id.slice("tab-".length)));
  }

  async show(view: string): Promise<void> {
    await this.page.click(`#tab-${view}`);
    await this.shows(view);
  }

  async shows(view: string): Promise<void> {
    await until(this.page, view, (wanted) => document.getElementById("view")?.dataset.view === wanted, view);
    await this.settled();
  }

  /** Returns the parameters after the "#" of the address. */
  async address(): Promise<URLSearchParams> {
    return new URLSearchParams(await this.page.evaluate(() => location.hash.slice(1)));
  }

  text(selector = "#view"): Promise<string> {
    return this.page.$eval(selector, (element) => (element as HTMLElement).innerText);
  }

  async close(): Promise<void> {
    await this.mustBeRight();
    await this.page.close();
  }

  /** Asserts that there was no error, no violation of the policy, no request, and no forbidden script. */
  async mustBeRight(): Promise<void> {
    assert.deepEqual(this.problems, []);
    const { violations, pwned } = await this.page.evaluate(() => {
      const { violations, pwned } = window as unknown as { violations: string[]; pwned: unknown };
      return { violations, pwned: String(pwned) };
    });
    assert.deepEqual(violations, []);
    assert.equal(pwned, "undefined");
    // Firefox requests fonts of its own, which are data URLs.
    const loaded = this.requests.filter((url) => url.split("#")[0] !== this.url && !/^(blob|data):/.test(url));
    assert.deepEqual(loaded, []);
  }
}
