/**
 * Mode `sentence`: where sentences of Latin, Chinese, Japanese, Indic, Arabic and other scripts end, and lines.
 *
 * A mark is judged when what follows is known. Closing quotes, brackets and white space stay with their sentence, and a
 * dot is no end in a decimal, an address, an abbreviation, an initial, an ellipsis, or before a small letter.
 */

import { characterAt, characterBefore, isBoundary, lastCharacters, SPACE } from "./graphemes.js";
import { checkedPlace, Rule, type Saved, type Segment } from "./rule.js";

const LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029";
const SOFT = ".!?…‥"; // an end only before white space or a character of a script without spaces
const HARD = "。｡．！？‼⁇⁈⁉؟۔।॥։።፧၊။།༎។៕᠃᠉"; // an end whatever follows
const CLOSERS = "\"')\\]}*_`~”’»›」』﹂﹄）】〉》〕］｝｠〗〙〛＂＇"; // also emphasis: `**Done.** Next`
const OPENING_OR_CLOSING = "“‘«‹"; // white space after them tells
/** What Python's `str.isspace` says yes to. */
const WHITE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const LETTER = "\\p{L}\\p{Nl}\\p{No}";

const candidate = new RegExp(`[${SOFT}${HARD}${LINE_ENDS}]`, "g");
const tailOf = new RegExp(
  `(?:[${SOFT}${HARD}](?:[${SOFT}${HARD}${CLOSERS}\\ufe0e\\ufe0f]|[${OPENING_OR_CLOSING}](?=[${SPACE}]))*` +
    `(?:(?![${LINE_ENDS}])[${SPACE}])*)+`,
  "y",
);
const whiteAt = new RegExp(`[${SPACE}]+`, "y");
const plainLineOf = new RegExp(`^[${LETTER}][^${SOFT}${HARD}${LINE_ENDS}{]*\\n`, "u");
const withoutSpaces = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}「『（《〈【]/u;
const hasHard = new RegExp(`[${HARD}]`);
const notSoft = new RegExp(`[^${SOFT}]+`, "g");
const isLineEnd = new RegExp(`^[${LINE_ENDS}]`);
const isWhite = new RegExp(`^[${WHITE}]`);
const whiteEnd = new RegExp(`[${WHITE}]+$`);
const enumerator = /^(?:\p{Nd}{1,3}|[a-z])$/u;
const dotted = new RegExp(`^(?:[${LETTER}]\\.)+[${LETTER}]$`, "u");
const openers = /^["'([{*_`“‘«‹„‚¿¡]+/;
const isLower = /^\p{Lowercase}/u;
const oneUpper = /^\p{Uppercase}$/u;
const isDigit = new RegExp(
  "^[\\p{Nd}\\u{b2}\\u{b3}\\u{b9}\\u{1369}-\\u{1371}\\u{19da}\\u{2070}\\u{2074}-\\u{2079}\\u{2080}-\\u{2089}" +
    "\\u{2460}-\\u{2468}\\u{2474}-\\u{247c}\\u{2488}-\\u{2490}\\u{24ea}\\u{24f5}-\\u{24fd}\\u{24ff}\\u{2776}-\\u{277e}" +
    "\\u{2780}-\\u{2788}\\u{278a}-\\u{2792}\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}" +
    "\\u{1f100}-\\u{1f10a}]",
  "u",
);

// Small letters after the dot tell most abbreviations; these stand before capitals and numbers.
const ABBREVIATIONS = new Set(
  (
    "Mr Mrs Ms Mx Dr Prof St Sr Rev Hon Gen Col Maj Capt Lt Sgt Gov Sen Rep Pres Mt Ft Mme Mlle MM Hr Fr Sra Srta " +
    "Dra Ud vs cf eg ie viz approx ca al bzw bspw evtl ggf vgl"
  ).split(" "),
);
const BEFORE_NUMBERS = new Set(
  (
    "no nos nr fig figs eq eqs sec ch chap vol vols p pp art abs tab ref pág núm " +
    "jan feb mar apr jun jul aug sep sept oct nov dec"
  ).split(" "),
);
const LOOK_BACK = 24;

/** Where a line ends that begins with a letter and has no mark in it; 0: it is no such line. */
export function plainLineEnd(held: string): number {
  return plainLineOf.exec(held)?.[0].length ?? 0;
}

/** Where the first sentence of `held` ends (0: undecided), and where to look on from when there is more text. */
export function sentenceEnd(held: string, from: number): readonly [end: number, further: number] {
  let scan = from;
  if (!scan) {
    const line = plainLineEnd(held);
    if (line) return [line, 0];
  }
  if (scan === 0 || isWhite.test(held[scan - 1]!)) {
    whiteAt.lastIndex = 0;
    if (whiteAt.test(held)) scan = Math.max(scan, whiteAt.lastIndex);
  }
  for (;;) {
    candidate.lastIndex = scan;
    if (!candidate.test(held)) return [0, held.length];
    const at = candidate.lastIndex - 1;
    if (isLineEnd.test(held[at]!)) {
      if (held[at] !== "\r") return [at + 1, 0];
      if (at + 1 === held.length) return [0, at];
      return [at + (held[at + 1] === "\n" ? 2 : 1), 0];
    }
    tailOf.lastIndex = at;
    const marks = tailOf.exec(held)![0];
    const end = at + marks.length;
    if (end === held.length || (end + 1 === held.length && OPENING_OR_CLOSING.includes(held[end]!))) return [0, at];
    if (isEnd(held, at, marks)) return [end, 0];
    scan = end;
  }
}

function isEnd(held: string, at: number, marks: string): boolean {
  const following = characterAt(held, at + marks.length);
  // The line's end is the end, marks and all.
  if (isLineEnd.test(following) || !isBoundary(characterBefore(marks, marks.length), following)) return false;
  if (hasHard.test(marks)) {
    return marks !== "．" || !isDigit.test(following) || !isDigit.test(at ? characterBefore(held, at) : "");
  }
  if (!isWhite.test(marks[marks.length - 1]!) && !withoutSpaces.test(following)) return false;
  const onlyMarks = marks.replace(notSoft, "");
  if (!/[!?]/.test(onlyMarks)) {
    return onlyMarks === "." && !isLower.test(following) && !isAbbreviation(held, at, following);
  }
  return !(isLower.test(following) && marks.replace(whiteEnd, "").length > onlyMarks.length);
}

/** Whether the dot at `at` belongs to what is before it: `Dr.`, `e.g.`, `J.`, or the number of a list's item. */
function isAbbreviation(held: string, at: number, following: string): boolean {
  const all = held.slice(0, at);
  const before = lastCharacters(all, LOOK_BACK);
  const words = before.split(new RegExp(`[${WHITE}]+`)).filter(Boolean);
  if (!words.length || isWhite.test(before[before.length - 1]!)) return false;
  const word = words[words.length - 1]!.replace(openers, "");
  if (words.length === 1 && lastCharacters(all, LOOK_BACK - 1) === all && enumerator.test(word)) return true;
  if (oneUpper.test(word)) return word !== "I";
  return (
    ABBREVIATIONS.has(word) || (isDigit.test(following) && BEFORE_NUMBERS.has(word.toLowerCase())) || dotted.test(word)
  );
}

export class SentenceRule extends Rule {
  #scan = 0;

  override find(held: string): number {
    const [end, further] = sentenceEnd(held, this.#scan);
    this.#scan = further;
    return end;
  }

  override take(text: string, out: Segment[]): void {
    this.#scan = 0;
    super.take(text, out);
  }

  override save(): Saved {
    return [this.#scan];
  }

  override load(values: Saved, held: string): void {
    this.#scan = checkedPlace(values[0], held);
  }
}
