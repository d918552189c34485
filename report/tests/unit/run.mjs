// Runs the unit tests of the engine. Each is bundled for Node, like the page for browsers.
//
//   node tests/unit/run.mjs [part of a test file's name]

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [part = ""] = process.argv.slice(2);
const tests = readdirSync(here).filter((name) => name.endsWith(".test.ts") && name.includes(part));
const output = mkdtempSync(join(tmpdir(), "stackweave-unit-"));
try {
  await build({
    entryPoints: tests.map((name) => join(here, name)),
    outdir: output,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    sourcemap: "inline",
    logLevel: "warning",
  });
  const files = tests.map((name) => join(output, `${basename(name, ".ts")}.mjs`));
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(output, { recursive: true, force: true });
}
