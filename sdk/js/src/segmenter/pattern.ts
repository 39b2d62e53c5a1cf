/**
 * Mode `pattern`: a segment ends where a match of the pattern ends; a match of no length cuts too.
 *
 * The pattern sees the held text only, at lengths that depend on the text alone (16 code points, then a quarter more
 * each time, and all of it when time or limit want it out), so that what is found does not depend on the feeds.
 * Nothing can stop a pattern that takes long: unlike the gateway, a page must trust whoever wrote it.
 */

import { boundaries, characterCount, placeOf } from "./graphemes.js";
import { checkedCount, Rule, type Saved, type Segment } from "./rule.js";

const STEP = 16;

export class PatternRule extends Rule {
  readonly #pattern: RegExp;
  /** Code points that were looked at. */
  #scan = 0;
  /** Where segments end in the text that `take` gets next. */
  #ends: number[] = [];

  constructor(pattern: RegExp) {
    super();
    this.#pattern = pattern;
  }

  override find(held: string): number {
    const count = characterCount(held);
    for (;;) {
      const length = this.#scan + Math.max(STEP, this.#scan >> 2);
      if (length > count) return 0;
      if (!this.#ends.length) this.#look(held.slice(0, placeOf(held, length)));
      const last = this.#ends[this.#ends.length - 1];
      if (last !== undefined) return last;
      this.#scan = length;
    }
  }

  /** Where matches end within `text`, on graphemes. */
  #look(text: string): void {
    const ends = new Set<number>();
    for (const match of text.matchAll(this.#pattern)) ends.add(match.index + match[0].length);
    ends.delete(0);
    ends.delete(text.length);
    const graphemes = ends.size ? new Set(boundaries(text)) : ends;
    this.#ends = [...ends].filter((end) => graphemes.has(end)).sort((one, other) => one - other);
  }

  override take(text: string, out: Segment[]): void {
    const ends = this.#ends;
    this.#scan = 0;
    this.#ends = [];
    let start = 0;
    for (const end of ends.slice(0, -1)) {
      out.push({ text: text.slice(start, end), isCode: false });
      start = end;
    }
    out.push({ text: text.slice(start), isCode: false });
  }

  override leave(text: string, _atEnd: boolean, out: Segment[]): void {
    this.#look(text);
    this.#ends.push(text.length);
    this.take(text, out);
  }

  override save(): Saved {
    return [this.#scan];
  }

  override load(values: Saved, _held: string): void {
    this.#scan = checkedCount(values[0]);
  }
}
