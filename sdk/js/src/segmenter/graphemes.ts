/**
 * Where text may be cut: on graphemes (UAX 29, extended), within a number of UTF-8 bytes, as the gateway does it.
 *
 * Places are those of JavaScript's strings; what the gateway counts in code points is counted in code points here too.
 */

import { GRAPHEME_RANGES } from "./grapheme_table.js";

/** White space, for a character class: as the gateway has it, which is not what `\s` is in JavaScript. */
export const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

enum Kind {
  Control,
  Linker,
  Joining,
  Extend,
  Prepend,
  SpacingMark,
  L,
  V,
  T,
  Regional,
  Pictograph,
  Consonant,
  Other,
  CR,
  LF,
  ZWJ,
  LV,
  LVT,
}

const isSpaceAt = new RegExp(`[${SPACE}]`, "y");

export function isSpace(text: string, at: number): boolean {
  isSpaceAt.lastIndex = at;
  return isSpaceAt.test(text);
}

let firsts: Uint32Array | undefined;
let ends: Uint32Array | undefined;
let kinds: Uint8Array | undefined;

function readTable(): void {
  const entries = GRAPHEME_RANGES.match(/[A-Z][^A-Z]+/g) ?? [];
  firsts = new Uint32Array(entries.length);
  ends = new Uint32Array(entries.length);
  kinds = new Uint8Array(entries.length);
  let end = 0;
  entries.forEach((entry, index) => {
    const [gap = "0", length = "1"] = entry.slice(1).split(".");
    const first = end + Number.parseInt(gap, 36);
    end = first + Number.parseInt(length, 36);
    firsts![index] = first;
    ends![index] = end;
    kinds![index] = entry.charCodeAt(0) - 65;
  });
}

function kindOf(code: number): Kind {
  if (code < 0x80) {
    if (code === 10) return Kind.LF;
    if (code === 13) return Kind.CR;
    return code < 32 || code === 127 ? Kind.Control : Kind.Other;
  }
  if (code === 0x200d) return Kind.ZWJ;
  if (code >= 0xac00 && code <= 0xd7a3) return (code - 0xac00) % 28 ? Kind.LVT : Kind.LV;
  if (!firsts) readTable();
  let low = 0;
  let high = firsts!.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends![middle]! > code) high = middle;
    else low = middle + 1;
  }
  return low < firsts!.length && firsts![low]! <= code ? kinds![low]! : Kind.Other;
}

/** Where the grapheme that begins at `start` ends; `start` is a boundary of `text` or its beginning. */
export function graphemeEnd(text: string, start: number): number {
  let code = text.codePointAt(start)!;
  let at = start + (code > 0xffff ? 2 : 1);
  if (code < 0x80 && code !== 13 && !(text.charCodeAt(at) >= 0x80)) return at;
  let before = kindOf(code);
  let emoji = before === Kind.Pictograph ? 1 : 0; // 1: an emoji, 2: and a joiner
  let isLinked = before === Kind.Linker; // a consonant would join: also where the linker stands after none (as at the gateway)
  let regionals = before === Kind.Regional ? 1 : 0;
  while (at < text.length) {
    code = text.codePointAt(at)!;
    const kind = kindOf(code);
    if (!joins(before, kind, emoji, isLinked, regionals)) break;
    if (kind === Kind.Pictograph) emoji = 1;
    else if (emoji === 1 && kind === Kind.ZWJ) emoji = 2;
    else if (!(emoji === 1 && isExtending(kind))) emoji = 0;
    if (kind === Kind.Linker) isLinked = true;
    else if (kind !== Kind.Joining && kind !== Kind.ZWJ) isLinked = false;
    regionals = kind === Kind.Regional ? regionals + 1 : 0;
    before = kind;
    at += code > 0xffff ? 2 : 1;
  }
  return at;
}

function isExtending(kind: Kind): boolean {
  return kind === Kind.Extend || kind === Kind.Joining || kind === Kind.Linker;
}

function joins(before: Kind, kind: Kind, emoji: number, isLinked: boolean, regionals: number): boolean {
  if (before === Kind.CR) return kind === Kind.LF;
  if (before === Kind.LF || before === Kind.Control) return false;
  switch (kind) {
    case Kind.CR:
    case Kind.LF:
    case Kind.Control:
      return false;
    case Kind.Extend:
    case Kind.Joining:
    case Kind.Linker:
    case Kind.ZWJ:
    case Kind.SpacingMark:
      return true;
  }
  if (before === Kind.Prepend) return true;
  switch (kind) {
    case Kind.L:
    case Kind.LV:
    case Kind.LVT:
      return before === Kind.L;
    case Kind.V:
      return before === Kind.L || before === Kind.V || before === Kind.LV;
    case Kind.T:
      return before === Kind.V || before === Kind.T || before === Kind.LV || before === Kind.LVT;
    case Kind.Pictograph:
      return emoji === 2;
    case Kind.Consonant:
      return isLinked;
    case Kind.Regional:
      return regionals % 2 === 1;
  }
  return false;
}

/** Where each grapheme of `text` ends. */
export function boundaries(text: string): number[] {
  const out: number[] = [];
  for (let at = 0; at < text.length; ) {
    at = graphemeEnd(text, at);
    out.push(at);
  }
  return out;
}

/** The code point that ends before `at`, as text. */
export function characterBefore(text: string, at: number): string {
  const low = text.charCodeAt(at - 1);
  return low >= 0xdc00 && low <= 0xdfff ? text.slice(at - 2, at) : text.slice(at - 1, at);
}

/** The code point at `at`, as text; empty at the end. */
export function characterAt(text: string, at: number): string {
  const high = text.charCodeAt(at);
  return text.slice(at, at + (high >= 0xd800 && high <= 0xdbff ? 2 : 1));
}

/** The last `count` code points of `text`. */
export function lastCharacters(text: string, count: number): string {
  let at = text.length;
  for (let left = count; left && at; left -= 1) at -= characterBefore(text, at).length;
  return text.slice(at);
}

export function characterCount(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 0xfc00) !== 0xdc00) count += 1;
  return count;
}

/** Where code point number `count` begins, from `start`; at most the length of `text`. */
export function placeOf(text: string, count: number, start = 0): number {
  let at = start;
  for (let left = count; left > 0 && at < text.length; left -= 1)
    at += (text.charCodeAt(at) & 0xfc00) === 0xd800 ? 2 : 1;
  return Math.min(at, text.length);
}

/** Of text without lone surrogates. */
export function byteLength(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0x80) bytes += unit < 0x800 || (unit & 0xf800) === 0xd800 ? 1 : 2;
  }
  return bytes;
}

/** Where the longest part of `text` from `start` ends that has at most `maxBytes` (>= 4) bytes. */
export function endWithin(text: string, start: number, maxBytes: number): number {
  let left = maxBytes;
  let at = start;
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    const isPair = (unit & 0xfc00) === 0xd800;
    left -= unit < 0x80 ? 1 : unit < 0x800 ? 2 : isPair ? 4 : 3;
    if (left < 0) break;
    at += isPair ? 2 : 1;
  }
  return Math.min(at, text.length);
}

/** Whether two neighbouring code points are of two graphemes; exact unless `before` is within a longer one. */
export function isBoundary(before: string, after: string): boolean {
  return graphemeEnd(before + after, 0) === before.length;
}

/** The last place in `text` where no grapheme is cut, given what code point follows; 0: there is none. */
export function lastBoundary(text: string, following: string): number {
  let last = 0;
  for (const end of boundaries(text + following)) {
    if (end > text.length) break;
    last = end;
  }
  return last;
}

const lastBreakMarks = new RegExp(`[${SPACE}，、；]`, "y");

/**
 * Where to cut a text that fills its limit; > 0. After the last line of its second half, else after the last word
 * there, else on a grapheme; in a grapheme only when there is no other.
 */
export function bestCut(text: string, following: string): number {
  const half = placeOf(text, characterCount(text) >> 1);
  const newline = text.lastIndexOf("\n");
  if (newline >= half) return newline + 1;
  for (let at = text.length - 1; at >= half; at -= 1) {
    lastBreakMarks.lastIndex = at;
    if (!lastBreakMarks.test(text)) continue;
    const cut = at + 1;
    if (isBoundary(text[at]!, characterAt(text + following, cut))) return cut;
    break;
  }
  return lastBoundary(text, following) || text.length;
}

/** Where the last grapheme begins if its kind often grows: an emoji, a flag, a syllable, a CR; else the length. */
export function unfinishedTail(text: string): number {
  if (!text || !mayGrow(characterBefore(text, text.length).codePointAt(0)!)) return text.length;
  const all = boundaries(text);
  return all.length > 1 ? all[all.length - 2]! : 0;
}

function mayGrow(code: number): boolean {
  switch (kindOf(code)) {
    case Kind.CR:
    case Kind.ZWJ:
    case Kind.Pictograph:
    case Kind.Regional:
    case Kind.Prepend:
    case Kind.L:
    case Kind.V:
    case Kind.Linker:
    case Kind.Consonant:
      return true;
  }
  return code >= 0x1f3fb && code <= 0x1f3ff;
}
