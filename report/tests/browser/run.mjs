// Runs the tests in browsers: all of them in one process, so that each browser is started once.
//
//   STACKWEAVE_REPORT_PAGES=FOLDER node tests/browser/run.mjs [TEXT]    only the files whose names hold TEXT

import { spawnSync } from "node:child_process";
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
process.exit(spawnSync(process.execPath, ["--test", outfile], { stdio: "inherit" }).status ?? 1);
