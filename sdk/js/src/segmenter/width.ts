/**
 * Mode `width`: a segment is a line that is not wider than so much, as the page measures it.
 *
 * Lines break after white space (which hangs over, unmeasured), around characters of scripts without spaces, at line
 * ends, and within a word only where the word alone is too wide. What time pushes out is a part of its line.
 * The measure must not shrink when text is added.
 */

import { characterAt, graphemeEnd, isSpace } from "./graphemes.js";
import { checkedCount, Rule, type Saved, type Segment, SegmentStateError } from "./rule.js";

const withoutSpaces = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;
/** They never begin a line. */
const closing = /^[、。，．！？：；」』）】〉》〕］｝ー…]/u;

export class WidthRule extends Rule {
  readonly #measure: (text: string) => number;
  readonly #maxWidth: number;
  #line = 1;
  /** What is out of the line already. */
  #out = "";
  /** Where the first word begins that is not known to fit. */
  #scan = 0;

  constructor(measure: (text: string) => number, maxWidth: number) {
    super();
    this.#measure = measure;
    this.#maxWidth = maxWidth;
  }

  override find(held: string): number {
    while (this.#scan < held.length) {
      const start = this.#scan;
      const end = wordEnd(held, start);
      if (!this.#fits(held.slice(0, end))) {
        if (start) return start;
        if (!this.#out) return this.#fittingPart(held);
        this.#nextLine();
        continue;
      }
      if (held[end - 1] === "\n") return end;
      if (end === held.length) return 0;
      this.#scan = end;
    }
    return 0;
  }

  #fits(text: string): boolean {
    return this.#measure(withoutEnd(this.#out + text)) <= this.#maxWidth;
  }

  /** The most graphemes of a word that is too wide for any line, at least one; 0: the next one may still grow, or ends it. */
  #fittingPart(held: string, isWhole = false): number {
    let cut = graphemeEnd(held, 0);
    for (;;) {
      if (cut >= held.length) return 0;
      const next = graphemeEnd(held, cut);
      if (!this.#fits(held.slice(0, next))) return isWhole || next < held.length ? cut : 0;
      cut = next;
    }
  }

  /** Where a word is cut that leaves although its end is too wide. */
  #cutOf(text: string): number {
    return this.#fits(text) ? 0 : this.#fittingPart(text, true);
  }

  #nextLine(): void {
    this.#line += 1;
    this.#out = "";
    this.#scan = 0;
  }

  override unfinished(held: string): number {
    let start = 0;
    for (let end = wordEnd(held, 0); end < held.length; end = wordEnd(held, end)) start = end;
    return isSpace(held, held.length - 1) ? held.length : start;
  }

  override take(text: string, out: Segment[]): void {
    out.push({ text, isCode: false, fields: { line: this.#line, last: true } });
    this.#nextLine();
  }

  override leave(text: string, atEnd: boolean, out: Segment[]): void {
    let rest = text;
    for (let cut = this.#cutOf(rest); cut; cut = this.#cutOf(rest)) {
      this.take(rest.slice(0, cut), out);
      rest = rest.slice(cut);
    }
    if (atEnd) {
      this.take(rest, out);
      return;
    }
    out.push({ text: rest, isCode: false, fields: { line: this.#line, last: false } });
    this.#out += rest;
    this.#scan = 0;
  }

  override save(): Saved {
    return [this.#line, this.#out];
  }

  override load(values: Saved, _held: string): void {
    if (typeof values[1] !== "string") throw new SegmentStateError("the state's line cannot be read");
    this.#line = checkedCount(values[0]);
    this.#out = values[1];
  }
}

/** Where the word at `start` ends, with the white space after it and at most one line end. */
function wordEnd(text: string, start: number): number {
  let at = start;
  while (at < text.length && !isSpace(text, at)) {
    const next = graphemeEnd(text, at);
    const isSingle = withoutSpaces.test(characterAt(text, at));
    at = next;
    const following = characterAt(text, at);
    if (following && !closing.test(following) && (isSingle || withoutSpaces.test(following))) return at;
  }
  while (at < text.length && isSpace(text, at)) {
    if (text[at] === "\n") return at + 1;
    at += 1;
  }
  return at;
}

function withoutEnd(line: string): string {
  let end = line.length;
  while (end && isSpace(line, end - 1)) end -= 1;
  return line.slice(0, end);
}
