/**
 * Mode `tokens`: a segment is so many word-like tokens, by a rule that does not depend on how the text arrived.
 *
 * A token is, with up to 15 white-space graphemes before it: a word or number of up to 16 graphemes (a longer one counts
 * again), or one character of Chinese or Japanese, or up to 16 marks and symbols in a row, or white space beyond the 15.
 */

import { graphemeEnd, isSpace } from "./graphemes.js";
import { checkedCount, checkedPlace, Rule, type Saved, type Segment, SegmentStateError } from "./rule.js";

const MAX_SPACES = 15;
const MAX_LENGTH = 16;
const withoutSpaces = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/uy;
const word = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/uy;

enum Sort {
  Space,
  Word,
  Mark,
  /** A token of its own. */
  Single,
  /** The same at the beginning of a token, and a mark within marks: a radical. */
  SingleMark,
}

function sortAt(text: string, at: number): Sort {
  const unit = text.charCodeAt(at);
  if (unit < 0x80) {
    if ((unit >= 9 && unit <= 13) || unit === 32) return Sort.Space;
    const isWord =
      (unit >= 48 && unit <= 57) || (unit >= 65 && unit <= 90) || unit === 95 || (unit >= 97 && unit <= 122);
    return isWord ? Sort.Word : Sort.Mark;
  }
  if (isSpace(text, at)) return Sort.Space;
  withoutSpaces.lastIndex = word.lastIndex = at;
  const isWord = word.test(text);
  if (withoutSpaces.test(text)) return isWord ? Sort.Single : Sort.SingleMark;
  return isWord ? Sort.Word : Sort.Mark;
}

function goesOn(sort: Sort, next: Sort): boolean {
  return next === sort || (sort === Sort.Mark && next === Sort.SingleMark);
}

/** Where the token at `at` ends, once something follows it; 0: not yet. */
function tokenEnd(text: string, at: number): number {
  const length = text.length;
  let end = at;
  for (let spaces = 0; spaces < MAX_SPACES && end < length && sortAt(text, end) === Sort.Space; spaces += 1) {
    end = graphemeEnd(text, end);
  }
  if (end >= length) return 0;
  const sort = sortAt(text, end);
  const limit = sort === Sort.Word || sort === Sort.Mark ? MAX_LENGTH : 1;
  for (let count = 0; count < limit && end < length && goesOn(sort, sortAt(text, end)); count += 1) {
    end = graphemeEnd(text, end);
  }
  return end < length ? end : 0;
}

export class TokenRule extends Rule {
  readonly #tokens: number;
  #seen = 0;
  #scan = 0;

  constructor(tokens: number) {
    super();
    this.#tokens = tokens;
  }

  override find(held: string): number {
    for (let end = tokenEnd(held, this.#scan); end; end = tokenEnd(held, end)) {
      this.#scan = end;
      this.#seen += 1;
      if (this.#seen === this.#tokens) return end;
    }
    return 0;
  }

  override take(text: string, out: Segment[]): void {
    this.#seen = this.#scan = 0;
    super.take(text, out);
  }

  override save(): Saved {
    return [this.#seen, this.#scan];
  }

  override load(values: Saved, held: string): void {
    this.#seen = checkedCount(values[0]);
    this.#scan = checkedPlace(values[1], held);
    if (this.#seen >= this.#tokens) throw new SegmentStateError(`${this.#seen} tokens seen of ${this.#tokens}`);
  }
}
