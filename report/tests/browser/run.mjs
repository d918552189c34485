// Runs the tests in both browsers at the same time. One process runs all tests of a browser, so that the browser starts once.
//
//   STACKWEAVE_REPORT_PAGES=FOLDER node tests/browser/run.mjs [TEXT]    only files whose names contain TEXT

import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

if (!process.env.STACKWEAVE_REPORT_PAGES) {
  console.error("error: there are no pages to test; make test-report makes them");
  process.exit(1);
}
const here = dirname(fileURLToPath(import.meta.url));
const wanted = process.argv[2] ?? "";
const files = readdirSync(here).filter((name) => name.endsWith(".test.ts") && name.includes(wanted));
const outfile = join(here, "../../build/browser/all.test.mjs");
await build({
  stdin: { contents: files.map((name) => `import "./${name}";`).join("\n"), resolveDir: here },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node18",
  packages: "external",
  logLevel: "warning",
  outfile,
});

/** Runs the tests of a browser, prints their output, and returns whether they passed. */
function passes(browser) {
  const options = { env: { ...process.env, STACKWEAVE_REPORT_BROWSER: browser }, maxBuffer: 1 << 28 };
  return new Promise((resolve) => {
    execFile(process.execPath, ["--test", outfile], options, (error, printed, errors) => {
      process.stdout.write(printed);
      process.stderr.write(errors);
      resolve(error === null);
    });
  });
}

const passed = await Promise.all(["chromium", "firefox"].map(passes));
process.exitCode = passed.every(Boolean) ? 0 : 1;
