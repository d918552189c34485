// Finds the packages in the page, and the notices that their licences require in each copy.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ALLOWED = new Set(["MIT", "ISC", "0BSD", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"]);

/** Returns the folders of the packages in esbuild's output, from its metafile. */
function foldersIn(metafiles) {
  const folders = new Set();
  for (const metafile of metafiles) {
    for (const output of Object.values(metafile.outputs)) {
      for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
        const folder = path.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0];
        if (folder && bytesInOutput > 0) folders.add(folder);
      }
    }
  }
  return [...folders].sort();
}

function noticeOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (!ALLOWED.has(license)) throw new Error(`${name} ${version} is under ${license}, which may not be in the page`);
  const file = readdirSync(folder).find((of) => /^licen[cs]e(\.|$)/i.test(of));
  if (!file) throw new Error(`${name} ${version} comes without the text of its licence`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
}

/** Returns the notices as a comment for the page. Throws if a licence is not allowed. */
export function notices(root, metafiles) {
  const texts = foldersIn(metafiles).map((folder) => noticeOf(join(root, folder)));
  const text = ["This page holds code of others:", ...texts].join("\n\n");
  return `<!--\n${text.replaceAll("--", "- -")}\n-->`;
}
