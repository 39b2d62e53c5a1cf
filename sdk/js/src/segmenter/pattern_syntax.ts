/** A pattern as the gateway's operators write it, as a JavaScript one: classes of all scripts, `(?im)` at the beginning. */

import { SPACE } from "./graphemes.js";

const MAX_PATTERN_CHARS = 1_000;
const WORD = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
/** All that is not in SPACE. */
const NO_SPACE =
  "\\0-\\x08\\x0e-\\x1f!-\\x84\\x86-\\x9f\\xa1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\u{10ffff}";
const SYNTAX = "^$\\.*+?()[]{}|/";
const OUTSIDE: Readonly<Record<string, string>> = {
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  s: `[${SPACE}]`,
  S: `[^${SPACE}]`,
  d: "\\p{Nd}",
  D: "\\P{Nd}",
  b: `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`,
  B: `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`,
  A: "(?<![^])",
  Z: "(?![^])",
};
const INSIDE: Readonly<Record<string, string>> = { w: WORD, s: SPACE, S: NO_SPACE, d: "\\p{Nd}", D: "\\P{Nd}" };

/** Global and with Unicode. Throws SyntaxError or RangeError that says what to change. */
export function compilePattern(pattern: string | RegExp): RegExp {
  const compiled = typeof pattern === "string" ? compileText(pattern) : compileAsIs(pattern);
  if (compiled.exec("")) {
    throw new RangeError("the pattern matches the empty text and would cut everywhere; let it match something");
  }
  return compiled;
}

function compileAsIs(pattern: RegExp): RegExp {
  const flags = pattern.flags.replace(/[gy]/g, "");
  return new RegExp(pattern.source, `g${flags}${/[uv]/.test(flags) ? "" : "u"}`);
}

function compileText(pattern: string): RegExp {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new RangeError(`the pattern has ${pattern.length} characters; at most ${MAX_PATTERN_CHARS} are allowed`);
  }
  const [inline = "", flags = ""] = /^\(\?([ims]+)\)/.exec(pattern) ?? [];
  return new RegExp(translated(pattern.slice(inline.length), marksOf(flags)), flags.includes("i") ? "giu" : "gu");
}

/** A line ends at `\n` and nowhere else, as the gateway has it. */
function marksOf(flags: string): Readonly<Record<string, string>> {
  const isMultiline = flags.includes("m");
  return {
    "^": isMultiline ? "(?<![^\\n])" : "(?<![^])",
    $: isMultiline ? "(?![^\\n])" : "(?=\\n?(?![^]))",
    ".": flags.includes("s") ? "[^]" : "[^\\n]",
  };
}

function translated(pattern: string, marks: Readonly<Record<string, string>>): string {
  let out = "";
  let inClass = false;
  for (let at = 0; at < pattern.length; at += 1) {
    const mark = pattern.charAt(at);
    if (mark === "\\" && at + 1 < pattern.length) {
      at += 1;
      out += escaped(pattern.charAt(at), inClass);
      continue;
    }
    const isMark = !inClass;
    if (mark === "[" && !inClass) inClass = true;
    else if (mark === "]") inClass = false;
    out += (isMark && marks[mark]) || mark;
  }
  return out;
}

function escaped(letter: string, inClass: boolean): string {
  const known = (inClass ? INSIDE : OUTSIDE)[letter];
  if (known !== undefined) return known;
  if (inClass && letter === "W") throw new SyntaxError("\\W within [...] is not understood here; write it outside");
  const isPlain =
    letter < "\x7f" && !/[A-Za-z0-9]/.test(letter) && !SYNTAX.includes(letter) && !(inClass && letter === "-");
  return isPlain ? letter : `\\${letter}`;
}
