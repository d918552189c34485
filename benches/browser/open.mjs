// Measures how long a page takes to open and to zoom in a browser: node open.mjs BROWSER CONTENDER CASE FILE [SPEEDSCOPE]
//
// Prints lines for the benchmark. Times are from the start of the navigation, by the page's own clock, to the first frame in which the
// view is drawn and the page responds. SPEEDSCOPE is the folder of that package, whose page loads FILE as the command `speedscope` does.

import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { PAGES } from "./pages.mjs";

const { default: puppeteer } = await import(
  createRequire(new URL("../../report/package.json", import.meta.url)).resolve("puppeteer-core")
);

const PATIENCE_MS = 120_000;
const ZOOM_STEPS = 30;
const MOST_IN_SCRIPT = 350e6;
const [browserName, contender, caseName, file, speedscope] = process.argv.slice(2);

function printFigure(bench, unit, outcome) {
  const figure = { bench, case: caseName, unit, peer: contender, ...outcome };
  const fields = Object.entries(figure).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  console.log(`{${fields.join(", ")}}`);
}

function launch() {
  const program = browserName === "firefox" ? "firefox-esr" : "chromium";
  const paths = process.env.PATH.split(delimiter).map((folder) => join(folder, program));
  const executablePath = paths.find(existsSync);
  if (!executablePath) throw new Error(`${program} is not installed`);
  const common = { executablePath, timeout: PATIENCE_MS, protocolTimeout: 2 * PATIENCE_MS };
  if (browserName === "firefox") return puppeteer.launch({ ...common, browser: "firefox", defaultViewport: null });
  // speedscope needs WebGL, which a machine without a screen has only in software.
  const webgl = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
  const args = [...webgl, "--disable-dev-shm-usage", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  return puppeteer.launch({ ...common, args, defaultViewport: { width: 1280, height: 800 } });
}

/** Returns what the browser opens. speedscope's page reads data from a script beside it, which is written before the clock starts. */
function address() {
  if (!speedscope) return { url: pathToFileURL(file).href };
  const page = pathToFileURL(join(speedscope, "dist/release/index.html")).href;
    // A JavaScript string can't be longer than that. For such a file, speedscope's command requires that it is chosen in the page.
  if (statSync(file).size > MOST_IN_SCRIPT) return { url: page, choose: file };
  const script = `${file}.js`;
  const data = readFileSync(file).toString("base64");
  writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(basename(file))}, ${JSON.stringify(data)})`);
  return { url: `${page}#localProfilePath=${script}`, script };
}

/** Chooses the file in speedscope's page, and returns the time at which that began. */
async function choose(page, path) {
  const input = await page.waitForSelector("input[type=file]");
  const began = await page.evaluate(() => performance.now());
  await input.uploadFile(path);
  return began;
}

const crashes = [];
const problems = [];

/** Records, from the start of the page on, the time of the first frame in which the view is shown. */
function watch(isShown) {
  const look = () => {
    if (isShown()) requestAnimationFrame(() => Object.assign(window, { shownAt: performance.now() }));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}

async function opened(page) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    let alarm;
    const late = new Promise((resolve) => {
      alarm = setTimeout(resolve, Math.max(0, end - Date.now()), "late");
    });
    const at = await Promise.race([page.evaluate(() => window.shownAt ?? null), late]);
    clearTimeout(alarm);
    if (typeof at === "number") return at;
    if (crashes.length > 0) throw new Error(crashes[0]);
    if (at === "late" || Date.now() > end) throw new Error(`not shown after ${PATIENCE_MS / 1000} s${problems[0] ?? ""}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Returns the longest time between two frames while the wheel turns. */
async function zoomed(page, selector) {
  const canvas = await page.waitForSelector(selector);
  const { x, y, width, height } = await canvas.boundingBox();
  await page.mouse.move(x + width / 3, y + Math.min(height / 2, 60));
  return page.evaluate(
    async (of, steps) => {
      const target = [...document.querySelectorAll(of)].pop();
      const box = target.getBoundingClientRect();
      const place = { clientX: box.x + box.width / 3, clientY: box.y + Math.min(box.height / 2, 60) };
      const gaps = [];
      let before = await new Promise(requestAnimationFrame);
      for (let step = 0; step < steps; step++) {
        const wheel = { ...place, deltaY: step < steps / 2 ? -40 : 40, ctrlKey: true, bubbles: true, cancelable: true };
        target.dispatchEvent(new WheelEvent("wheel", wheel));
        const now = await new Promise(requestAnimationFrame);
        gaps.push(now - before);
        before = now;
      }
      return Math.max(...gaps);
    },
    selector,
    ZOOM_STEPS,
  );
}

const steps = PAGES[contender];
let browser;
let at;
try {
  browser = await launch();
  at = address();
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("error", (error) => crashes.push(`the page crashed: ${error.message}`));
  page.on("pageerror", (error) => problems.push(`: ${error.message ?? error}`.split("\n")[0]));
  await page.evaluateOnNewDocument(`(${watch})(${steps.isShown})`);
  await page.goto(at.url, { waitUntil: "domcontentloaded" });
  const began = at.choose ? await choose(page, at.choose) : 0;
  printFigure("report/open", "ms", { cost: (await opened(page)) - began });
  if (steps.zoom) {
    await steps.beforeZoom?.(page);
    printFigure("report/zoom", "ms", { cost: await zoomed(page, steps.zoom) });
  }
} catch (error) {
  printFigure("report/open", "ms", { absent: `${error.message ?? error}`.split("\n")[0] });
} finally {
  if (at?.script) rmSync(at.script);
  await browser?.close();
}
