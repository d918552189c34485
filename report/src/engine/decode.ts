// Blocks to bytes, and bytes to columns.

const DIGITS = new Uint8Array(128);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  DIGITS[digit.charCodeAt(0)] = value;
}

type FromBase64 = { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> };

/** Decodes base64. */
export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const builtIn = (Uint8Array as unknown as FromBase64).fromBase64;
  if (builtIn) return builtIn.call(Uint8Array, text);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  for (let from = 0, to = 0; from < text.length; from += 4) {
    const word =
      (DIGITS[text.charCodeAt(from)]! << 18) |
      (DIGITS[text.charCodeAt(from + 1)]! << 12) |
      (DIGITS[text.charCodeAt(from + 2)]! << 6) |
      DIGITS[text.charCodeAt(from + 3)]!;
    bytes[to++] = word >> 16;
    if (to < bytes.length) bytes[to++] = word >> 8;
    if (to < bytes.length) bytes[to++] = word;
  }
  return bytes;
}

/** Decompresses zlib data. */
export async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads columns in order. Numbers are exact up to 2^53. */
export class Columns {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  varint(): number {
    const { bytes } = this;
    let byte = bytes[this.at++];
    if (byte === undefined) throw new Error("a block ends too early");
    if (byte < 128) return byte;
    let value = byte & 127;
    let scale = 128;
    for (;;) {
      byte = bytes[this.at++];
      if (byte === undefined) throw new Error("a block ends too early");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  /** Reads small numbers, up to 2^32. */
  small(): Uint32Array {
    const column = new Uint32Array(this.varint());
    for (let row = 0; row < column.length; row++) column[row] = this.varint();
    return column;
  }

  plain(): Float64Array {
    const column = new Float64Array(this.varint());
    for (let row = 0; row < column.length; row++) column[row] = this.varint();
    return column;
  }

  signed(): Float64Array {
    const column = this.plain();
    for (let row = 0; row < column.length; row++) {
      const value = column[row]!;
      column[row] = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    return column;
  }

  /** Reads non-decreasing numbers, which are stored as differences. */
  rising(first = 0): Float64Array {
    const column = this.plain();
    let value = first;
    for (let row = 0; row < column.length; row++) {
      value += column[row]!;
      column[row] = value;
    }
    return column;
  }

  /** Reads bytes, with their number as a varint before them. */
  rest(): Uint8Array {
    const length = this.varint();
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}
