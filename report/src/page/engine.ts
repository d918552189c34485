// Calls of the engine, which runs in its own thread and is a part of this page.

import type { Engine } from "../engine/methods";
import type { FromEngine, ToEngine } from "../shared/messages";
import { blockText } from "./blocks";

declare const WORKER_SOURCE: string;

type MethodResult<Method extends keyof Engine> = Awaited<ReturnType<Engine[Method]>>;

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

const waiting = new Map<number, Waiting>();
let last = 0;
let worker: Worker | undefined;

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

function start(): Worker {
  const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" }));
  // The only script address that this page creates.
  const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy("stackweave", { createScriptURL: (made) => (made === url ? made : "") });
  const started = new Worker(policy ? policy.createScriptURL(url) : url, { name: "stackweave" });
  started.onmessage = ({ data }: MessageEvent<FromEngine>) => {
    if (data.kind === "block") {
      post({ kind: "block", block: data.block, text: blockText(data.block) });
      return;
    }
    const call = waiting.get(data.id);
    waiting.delete(data.id);
    if (data.kind === "done") call?.resolve(data.value);
    else call?.reject(new Error(data.reason));
  };
  started.onerror = ({ message }) => {
    const reason = new Error(
      message || "the page that embeds the report blocks workers: open the report in a tab of its own",
    );
    for (const call of waiting.values()) call.reject(reason);
    waiting.clear();
  };
  return started;
}

function post(message: ToEngine): void {
  worker ??= start();
  worker.postMessage(message);
}

/** Calls a method of the engine. */
export function query<Method extends keyof Engine>(
  method: Method,
  ...of: Parameters<Engine[Method]>
): Promise<MethodResult<Method>> {
  const id = ++last;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
    post({ kind: "call", id, method, arguments: of });
  });
}
