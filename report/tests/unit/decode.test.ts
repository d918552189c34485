import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { bytesOfBase64, Columns, inflate } from "../../src/engine/decode";
import { transferables } from "../../src/engine/transferables";

const columns = (...bytes: number[]) => new Columns(Uint8Array.from(bytes));

test("base64 of any length gives its bytes, with and without the browser's own decoder", () => {
  const builtIn = (Uint8Array as { fromBase64?: unknown }).fromBase64;
  for (const self of [false, true]) {
    if (self) delete (Uint8Array as { fromBase64?: unknown }).fromBase64;
    for (let length = 0; length < 40; length++) {
      const bytes = Uint8Array.from({ length }, (_, at) => (at * 97 + length * 13) & 255);
      assert.deepEqual(bytesOfBase64(Buffer.from(bytes).toString("base64")), bytes);
    }
  }
  if (builtIn) Object.assign(Uint8Array, { fromBase64: builtIn });
});

test("zlib is inflated", async () => {
  const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at * at) & 255);
  assert.deepEqual(await inflate(Uint8Array.from(deflateSync(bytes))), bytes);
});

test("a column is its length and as many varints", () => {
  assert.deepEqual([...columns(4, 0, 127, 0x80, 1, 0xff, 0xff, 3).small()], [0, 127, 128, 65_535]);
  assert.deepEqual([...columns(0).plain()], []);
});

test("numbers are exact up to 2^53", () => {
  const most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
  assert.deepEqual([...columns(1, ...most).plain()], [Number.MAX_SAFE_INTEGER]);
  assert.deepEqual([...columns(1, 0x80, 0x80, 0x80, 0x80, 0x10).plain()], [2 ** 32]);
});

test("signed numbers are zigzag", () => {
  assert.deepEqual([...columns(5, 0, 1, 2, 3, 0xfe, 0xff, 0xff, 0xff, 0x1f).signed()], [0, -1, 1, -2, 2 ** 32 - 1]);
});

test("increasing numbers are stored as differences", () => {
  assert.deepEqual([...columns(4, 5, 0, 1, 100).rising()], [5, 5, 6, 106]);
  assert.deepEqual([...columns(2, 1, 2).rising(1000)], [1001, 1003]);
});

test("columns follow each other, and bytes come after them", () => {
  const all = columns(2, 1, 2, 1, 3, 3, 0x61, 0x62, 0x63);
  assert.deepEqual([...all.small()], [1, 2]);
  assert.deepEqual([...all.plain()], [3]);
  assert.equal(new TextDecoder().decode(all.rest()), "abc");
});

test("a block that ends too early is an error, not a wrong number", () => {
  assert.throws(() => columns(3, 1, 2).small(), /ends too early/);
  assert.throws(() => columns(1, 0x80).plain(), /ends too early/);
  assert.throws(() => columns().varint(), /ends too early/);
});

test("only columns of an answer are transferred", () => {
  const [a, b, kept] = [new Uint8Array(1), new Float64Array(1), new Uint8Array(1)];
  const found = transferables({ rowsColumns: { a, again: a.subarray(0), b, count: 3 }, kept, other: { kept } });
  assert.deepEqual(found, [a.buffer, b.buffer]);
  assert.deepEqual(transferables(undefined), []);
});
