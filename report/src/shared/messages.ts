// The messages between page and engine.

import type { Block } from "./format";

export type ToEngine =
  | { kind: "call"; id: number; method: string; arguments: unknown[] }
  | { kind: "block"; block: Block | "head"; text: string };

export type FromEngine =
  | { kind: "done"; id: number; value: unknown }
  | { kind: "failed"; id: number; reason: string }
  | { kind: "block"; block: Block | "head" };
