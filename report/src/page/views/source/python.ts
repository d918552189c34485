// Comments, strings, keywords and numbers of Python, line by line.
//
// The state at the start of a line comes from the line before. Format strings may contain code, and that may contain
// strings.

export interface Token {
  text: string;
  kind: "" | "comment" | "string" | "keyword" | "number" | "defined";
}

/** The open strings and brackets at the end of a line; the innermost is the last. */
export type Open = readonly Inside[];

type Inside =
  | { is: "string"; quote: string; isRaw: boolean; formats: boolean }
  /** Code between braces, with the number of open brackets in it. */
  | { is: "code"; brackets: number }
  /** The format after the colon of such code. */
  | { is: "format" };

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield"
  ).split(" "),
);
const STRING = /(?:[rR][bBfFtT]?|[bBfFtT][rR]?|[uU])?('''|"""|'|")/y;
const WORD = /[\p{L}_][\p{L}\p{N}_]*/uy;
const NUMBER = /\d[\w.]*/y;
const PLAIN = /[^\p{L}\p{N}_'"#()[\]{}:]+/uy;

/** Returns the open strings and brackets before each line of a text. */
export function opensOf(lines: string[]): Open[] {
  const opens: Open[] = [];
  let open: Open = [];
  for (const line of lines) {
    opens.push(open);
    open = new Line(line, open).read().open;
  }
  return opens;
}

/** Returns the tokens of a line that begins inside `open`. */
export function tokensOf(line: string, open: Open): Token[] {
  return new Line(line, open).read().tokens;
}

class Line {
  readonly tokens: Token[] = [];
  open: Inside[];
  private at = 0;

  constructor(
    private readonly line: string,
    open: Open,
  ) {
    this.open = [...open];
  }

  read(): { tokens: Token[]; open: Open } {
    while (this.at < this.line.length) {
      const inside = this.open[this.open.length - 1];
      if (inside?.is === "string") this.readString(inside);
      else if (inside?.is === "format") this.readFormat();
      else this.readCode(inside);
    }
    const inside = this.open[this.open.length - 1];
    const goesOn = /(?:^|[^\\])(?:\\\\)*\\$/.test(this.line);
    if (inside?.is === "string" && inside.quote.length === 1 && !goesOn) this.open.pop();
    return this;
  }

  private take(length: number, kind: Token["kind"]): string {
    const text = this.line.slice(this.at, this.at + length);
    const last = this.tokens[this.tokens.length - 1];
    if (last?.kind === kind) last.text += text;
    else this.tokens.push({ text, kind });
    this.at += length;
    return text;
  }

  private match(what: RegExp): RegExpExecArray | null {
    what.lastIndex = this.at;
    return what.exec(this.line);
  }

  private readCode(inside: { is: "code"; brackets: number } | undefined): void {
    const char = this.line[this.at]!;
    const string = this.match(STRING);
    if (char === "#") {
      this.take(this.line.length - this.at, "comment");
    } else if (string) {
      const prefix = this.take(string[0].length, "string").toLowerCase();
      this.open.push({
        is: "string",
        quote: string[1]!,
        isRaw: prefix.includes("r"),
        formats: /^[^'"]*[ft]/.test(prefix),
      });
    } else {
      const word = this.match(WORD)?.[0];
      const plain = word ? undefined : (this.match(NUMBER)?.[0] ?? this.match(PLAIN)?.[0]);
      if (word) this.take(word.length, KEYWORDS.has(word) ? "keyword" : this.isDefined() ? "defined" : "");
      else if (plain) this.take(plain.length, /\d/.test(plain[0]!) ? "number" : "");
      else this.readSign(char, inside);
    }
  }

  /** Returns whether the previous word is `def` or `class`. */
  private isDefined(): boolean {
    return /\b(?:def|class)\s+$/.test(this.line.slice(Math.max(0, this.at - 12), this.at));
  }

  private readSign(char: string, inside: { is: "code"; brackets: number } | undefined): void {
    if (inside && inside.brackets === 0 && (char === "}" || char === ":")) {
      this.open.pop();
      if (char === ":") this.open.push({ is: "format" });
      this.take(1, "string");
      return;
    }
    const change = "([{".includes(char) ? 1 : ")]}".includes(char) ? -1 : 0;
    if (inside && change !== 0) {
      this.open[this.open.length - 1] = { is: "code", brackets: Math.max(0, inside.brackets + change) };
    }
    this.take(1, "");
  }

  private readString({ quote, isRaw, formats }: Inside & { is: "string" }): void {
    let at = this.at;
    while (at < this.line.length) {
      const char = this.line[at]!;
      if (this.line.startsWith(quote, at)) {
        this.take(at + quote.length - this.at, "string");
        this.open.pop();
        return;
      }
      if (char === "\\") {
        const named = formats && !isRaw && this.line.startsWith("N{", at + 1) ? this.line.indexOf("}", at) : -1;
        at = named > 0 ? named + 1 : at + ("{}".includes(this.line[at + 1] ?? "") ? 1 : 2);
      } else if (formats && char === "{") {
        const isDoubled = this.line[at + 1] === "{";
        if (!isDoubled) {
          this.take(at + 1 - this.at, "string");
          this.open.push({ is: "code", brackets: 0 });
          return;
        }
        at += 2;
      } else {
        at += 1;
      }
    }
    this.take(this.line.length - this.at, "string");
  }

  private readFormat(): void {
    const char = this.line[this.at]!;
    const around = this.open[this.open.length - 2];
    if (around?.is === "string" && this.line.startsWith(around.quote, this.at)) {
      this.open.splice(-2);
      this.take(around.quote.length, "string");
      return;
    }
    this.take(1, "string");
    if (char === "}") this.open.pop();
    else if (char === "{") this.open.push({ is: "code", brackets: 0 });
  }
}
