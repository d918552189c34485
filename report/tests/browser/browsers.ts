// The browsers of this machine. This process tests one of them, and starts it when a test first needs it.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import puppeteer, { type Browser } from "puppeteer-core";

export type BrowserName = "chromium" | "firefox";

const PROGRAMS: Record<BrowserName, string[]> = {
  chromium: ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"],
  firefox: ["firefox-esr", "firefox"],
};

/** The timeout for operations that take long on a busy machine. */
export const PATIENCE_MS = 60_000;

function programOf(name: BrowserName): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = PROGRAMS[name].flatMap((program) => folders.map((folder) => join(folder, program)));
  return paths.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function launch(name: BrowserName, executablePath: string): Promise<Browser> {
  const common = { executablePath, timeout: PATIENCE_MS, protocolTimeout: PATIENCE_MS };
  if (name === "firefox") {
    // A proxy without a server: no network.
    const proxy = { "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9 };
    const secure = { "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9 };
    const extraPrefsFirefox = { ...proxy, ...secure };
    const args = ["--width=1280", "--height=900"];
    return puppeteer.launch({ ...common, browser: "firefox", defaultViewport: null, args, extraPrefsFirefox });
  }
  // Chromium's sandbox does not work for root.
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return puppeteer.launch({ ...common, args: [...sandbox, "--disable-gpu", "--disable-dev-shm-usage"] });
}

let started: Promise<Browser> | undefined;

after(async () => (await started)?.close());

/** Defines a test in each of these browsers. It is skipped with a message if one is not installed. */
export function inBrowsers(
  names: BrowserName[],
  what: string,
  body: (browser: Browser, name: BrowserName) => Promise<void>,
) {
  // Tests of another browser run in another process.
  for (const name of names.filter((name) => name === process.env.STACKWEAVE_REPORT_BROWSER)) {
    const program = programOf(name);
    const skip = program === undefined && `${name} is not installed`;
    test(`${what} (${name})`, { skip, timeout: 2 * PATIENCE_MS }, async () => {
      started ??= launch(name, program!);
      await body(await started, name);
    });
  }
}
