// The names of functions and frames, for the page and the engine.

import type { FunctionIndex } from "./format";

/** Columns that the engine reads. */
interface ColumnReader {
  small(): Uint32Array;
}

/** Columns of functions and of frames. It is plain data, and is sent from the engine to the page as it is. */
export interface Names {
  strings: string[];
  functions: {
    name: Uint32Array;
    /** The index of the string + 1; 0 if there is none. The same applies to modules. */
    file: Uint32Array;
    line: Uint32Array;
    kind: Uint32Array;
    origin: Uint32Array;
    module: Uint32Array;
    modulePath: Uint32Array;
  };
  frames: { function: Uint32Array; line: Uint32Array };
}

export function namesOf(strings: string[], functions: ColumnReader, frames: ColumnReader): Names {
  return {
    strings,
    functions: {
      name: functions.small(),
      file: functions.small(),
      line: functions.small(),
      kind: functions.small(),
      origin: functions.small(),
      module: functions.small(),
      modulePath: functions.small(),
    },
    frames: { function: frames.small(), line: frames.small() },
  };
}

export function functionName(names: Names, of: FunctionIndex): string {
  return names.strings[names.functions.name[of]!] ?? "";
}

/** Returns the file of a function, or undefined. */
export function fileOf(names: Names, of: FunctionIndex): string | undefined {
  return names.strings[names.functions.file[of]! - 1];
}

export function moduleOf(names: Names, of: FunctionIndex): string | undefined {
  return names.strings[names.functions.module[of]! - 1];
}

/** Returns the location of a function: `file:line`, or the module of a native one without a file. */
export function placeOf(names: Names, of: FunctionIndex): string {
  const file = fileOf(names, of);
  if (file === undefined) return moduleOf(names, of) ?? "";
  const line = names.functions.line[of]!;
  return line > 0 ? `${file}:${line}` : file;
}

/** Returns the end of a path, its most informative part: as many folders as fit into the length, and at least the file. */
export function shortPath(path: string, most: number): string {
  if (path.length <= most) return path;
  const parts = path.split("/");
  let short = parts.pop()!;
  while (parts.length > 0 && short.length + parts[parts.length - 1]!.length + 3 <= most)
    short = `${parts.pop()}/${short}`;
  return `…/${short}`;
}
