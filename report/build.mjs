// Builds the page from the sources: one HTML file with everything except the data, and a policy that forbids other code.
//
//   node build.mjs            writes the page to the Rust crate
//   node build.mjs --check    fails if the page there differs from the sources

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { notices } from "./notices.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, "../crates/stackweave-export/src/formats/report/page.html");
const MOST_BYTES = 1_000_000;

const common = {
  bundle: true,
  minify: true,
  write: false,
  format: "iife",
  target: ["chrome103", "firefox115"],
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
  absWorkingDir: here,
  metafile: true,
};

const metafiles = [];

/** Returns the text that esbuild builds from an entry. */
async function bundled(entry, extra = {}) {
  const result = await build({ ...common, ...extra, entryPoints: [join(here, entry)] });
  metafiles.push(result.metafile);
  return result.outputFiles[0].text.trimEnd();
}

/** Escapes text that would end a script element. */
function inScript(text) {
  return text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

function hash(text) {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

function page(script, style, body, ending) {
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "worker-src blob:",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types stackweave",
  ].join("; ");
  return [
    "<!doctype html>",
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="color-scheme" content="light dark">',
    '<meta name="referrer" content="no-referrer">',
    "<title>Stackweave report</title>",
    `<style>${style}</style></head>`,
    `<body>${body}`,
    `<script>${script}</script>`,
    "<!--DATA-->",
    "</body></html>",
    ending,
    "",
  ].join("\n");
}

const worker = await bundled("src/engine/worker.ts");
const style = await bundled("src/page/style/page.css");
const define = { WORKER_SOURCE: JSON.stringify(worker) };
const script = inScript(await bundled("src/page/main.tsx", { define }));
const body = readFileSync(join(here, "src/page/body.html"), "utf8").trim();
const html = page(script, style, body, notices(here, metafiles));
if (Buffer.byteLength(html) > MOST_BYTES) throw new Error(`the page has ${Buffer.byteLength(html)} bytes`);

if (process.argv.includes("--check")) {
  const there = readFileSync(output, "utf8");
  if (there !== html) {
    console.error("error: the page in crates/stackweave-export is not what report/ gives; run make report-page");
    process.exit(1);
  }
} else {
  writeFileSync(output, html);
  console.log(`${output.slice(join(here, "..").length + 1)}: ${Math.ceil(html.length / 1024)} KiB`);
}
