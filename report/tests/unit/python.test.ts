// Strings, comments and keywords of Python.

import assert from "node:assert/strict";
import { test } from "node:test";
import { opensOf, tokensOf } from "../../src/page/views/source/python";

/** Marks the tokens of each line: strings in angles, comments in braces, keywords in capitals. */
function marked(text: string): string[] {
  const lines = text.split("\n");
  const opens = opensOf(lines);
  return lines.map((line, at) =>
    tokensOf(line, opens[at]!)
      .map(({ text: part, kind }) => {
        if (kind === "string") return `‹${part}›`;
        if (kind === "comment") return `«${part}»`;
        return kind === "keyword" ? part.toUpperCase() : part;
      })
      .join(""),
  );
}

const CASES: [string, string[]][] = [
  ["if x: # 'no' string", ["IF x: «# 'no' string»"]],
  ["x = '# no comment'", ["x = ‹'# no comment'›"]],
  ["x = 'it\\'s' + y", ["x = ‹'it\\'s'› + y"]],
  ["x = r'\\' + 'y'", ["x = ‹r'\\' + '›y‹'›"]],
  ["x = '\\\\' + y", ["x = ‹'\\\\'› + y"]],
  ["rb'a' Rb'b' u'c' BR'd' xr 'e'", ["‹rb'a'› ‹Rb'b'› ‹u'c'› ‹BR'd'› xr ‹'e'›"]],
  ["'''a\n# b\n''' + c # d", ["‹'''a›", "‹# b›", "‹'''› + c «# d»"]],
  ["'''a' '' \"\"\" b''' is c", ["‹'''a' '' \"\"\" b'''› IS c"]],
  ["'open\nnext", ["‹'open›", "next"]],
  ["'goes \\\non' or x", ["‹'goes \\›", "‹on'› OR x"]],
  ["'' in x", ["‹''› IN x"]],
  ["f'{a}b' if c else d", ["‹f'{›a‹}b'› IF c ELSE d"]],
  ["f'{{a}}' + b", ["‹f'{{a}}'› + b"]],
  ["f'{a[\"b\"]}' + c", ["‹f'{›a[‹\"b\"›]‹}'› + c"]],
  ["f'{x['y']}z' + c", ["‹f'{›x[‹'y'›]‹}z'› + c"]],
  ["f'{a:>{b}}c' + d", ["‹f'{›a‹:>{›b‹}}c'› + d"]],
  ['f"{a:\'>4}" + d', ['‹f"{›a‹:\'>4}"› + d']],
  ["f'{ {1: 2}[x] }' + d", ["‹f'{› {1: 2}[x] ‹}'› + d"]],
  ["f'{(lambda: 1)()}' + d", ["‹f'{›(LAMBDA: 1)()‹}'› + d"]],
  ["f'\\N{DASH}{a}' + b", ["‹f'\\N{DASH}{›a‹}'› + b"]],
  ["f'''{a\n + b} c\n''' + d", ["‹f'''{›a", " + b‹} c›", "‹'''› + d"]],
  ["rf'\\{a}' + b", ["‹rf'\\{›a‹}'› + b"]],
  ["classes = notable or define", ["classes = notable OR define"]],
  ["ünïcode = 'ü' # ü", ["ünïcode = ‹'ü'› «# ü»"]],
];

test("strings, comments and keywords are those of Python", () => {
  for (const [text, expected] of CASES) assert.deepEqual(marked(text), expected, text);
});

test("no character of a line is lost", () => {
  const lines = CASES.flatMap(([text]) => text.split("\n"));
  const opens = opensOf(lines);
  for (const [at, line] of lines.entries()) {
    assert.equal(
      tokensOf(line, opens[at]!)
        .map((token) => token.text)
        .join(""),
      line,
    );
  }
});

test("names of definitions are marked", () => {
  const kinds = tokensOf("async def run(self) -> int: return 0x10", []);
  assert.deepEqual(
    kinds.filter((token) => token.kind !== "").map((token) => [token.text, token.kind]),
    [
      ["async", "keyword"],
      ["def", "keyword"],
      ["run", "defined"],
      ["return", "keyword"],
      ["0x10", "number"],
    ],
  );
});
