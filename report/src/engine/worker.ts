// The engine: does all long work, off the page's thread.
//
// The page calls methods by name and gets a promise. The engine requests the texts of blocks from the page when it needs them.

import type { Block } from "../shared/format";
import type { FromEngine, ToEngine } from "../shared/messages";
import { type Engine, methodsOf } from "./methods";
import { Report } from "./report";
import { transferables } from "./transferables";

const waiting = new Map<Block | "head", (text: string) => void>();
let engine: Promise<Engine> | undefined;

function post(message: FromEngine, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

function blockText(block: Block | "head"): Promise<string> {
  return new Promise((resolve) => {
    const others = waiting.get(block);
    waiting.set(block, (text) => {
      others?.(text);
      resolve(text);
    });
    if (!others) post({ kind: "block", block });
  });
}

self.onmessage = async ({ data }: MessageEvent<ToEngine>) => {
  if (data.kind === "block") {
    const resolve = waiting.get(data.block);
    waiting.delete(data.block);
    resolve?.(data.text);
    return;
  }
  engine ??= Report.open(blockText).then(methodsOf);
  try {
    const methods = (await engine) as Record<string, (...of: unknown[]) => unknown>;
    const value = await methods[data.method]!(...data.arguments);
    post({ kind: "done", id: data.id, value }, transferables(value));
  } catch (error) {
    post({ kind: "failed", id: data.id, reason: error instanceof Error ? error.message : String(error) });
  }
};
