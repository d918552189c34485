// The report in the engine: the head, the names, and blocks on request.

import type { Block, Head, TreeInfo } from "../shared/format";
import { type Names, namesOf } from "../shared/names";
import { bytesOfBase64, Columns, inflate } from "./decode";
import { TileStore } from "./timeline/tiles";
import { CallTree } from "./tree";

/** Returns the text of a block from the page, which has the document. */
export type BlockText = (block: Block | "head") => Promise<string>;

export class Report {
  /** Tiles of the timeline. */
  readonly tiles = new TileStore(this);
  private readonly trees = new Map<Block, Promise<CallTree>>();

  private constructor(
    readonly head: Head,
    readonly names: Names,
    private readonly text: BlockText,
  ) {}

  static async open(text: BlockText): Promise<Report> {
    const head = (await jsonOf(text, "head")) as Head;
    const strings = (await jsonOf(text, head.strings)) as string[];
    const functions = new Columns(await bytesOf(text, head.functions));
    const frames = new Columns(await bytesOf(text, head.frames));
    return new Report(head, namesOf(strings, functions, frames), text);
  }

  bytes(block: Block): Promise<Uint8Array> {
    return bytesOf(this.text, block);
  }

  async columns(block: Block): Promise<Columns> {
    return new Columns(await this.bytes(block));
  }

  json(block: Block): Promise<unknown> {
    return jsonOf(this.text, block);
  }

  /** Returns a tree of the recording, decoded once. */
  tree(info: TreeInfo): Promise<CallTree> {
    let tree = this.trees.get(info.block);
    if (!tree) {
      tree = this.columns(info.block).then((columns) => CallTree.decode(columns, this.names));
      this.trees.set(info.block, tree);
    }
    return tree;
  }
}

async function bytesOf(text: BlockText, block: Block | "head"): Promise<Uint8Array> {
  return inflate(bytesOfBase64((await text(block)).trim()));
}

async function jsonOf(text: BlockText, block: Block | "head"): Promise<unknown> {
  return JSON.parse(new TextDecoder().decode(await bytesOf(text, block)));
}
