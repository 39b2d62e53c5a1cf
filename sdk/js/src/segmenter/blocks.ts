/**
 * The code block of a text: which one it is, where it ends, and its parts. Called by the structure rule.
 *
 * A block keeps its number over any number of parts, restores and flushes, until its closing line or brace.
 */

import { characterAt, characterBefore, isBoundary } from "./graphemes.js";
import { closes, fenceOf, languageOf, objectLanguage } from "./lines.js";
import { checkedCount, type Saved, type Segment, SegmentStateError } from "./rule.js";

const MAX_DEPTH = 10_000; // deeper is no object that anybody wrote; it ends there
const outside = /[^"{}]*/y;
const inside = /[^"\\\n]*/y;

/** The open block, or the last one. Methods that look for an end return (end, where to look on); end 0: not yet. */
export class Block {
  number = 0;
  /** How many parts of it are out. */
  part = 0;
  /** The character of its fence; empty: it is an object. */
  fence = "";
  fenceLength = 0;
  language: string | null = null;
  depth = 0;
  inString = false;
  isEscaped = false;

  openFence(line: string): void {
    this.number += 1;
    this.part = 0;
    this.learnFence(line);
  }

  /** False when `line` turns out to open no block: a backtick came late, and it is code within a line. */
  learnFence(line: string): boolean {
    const fence = fenceOf(line);
    if (!fence) return false;
    this.fence = fence[0]!;
    this.fenceLength = fence.length;
    this.language = languageOf(line);
    return true;
  }

  /** `outAlready` is what is out of the object, as text. */
  openObject(outAlready: string): void {
    this.number += 1;
    this.part = 0;
    this.fence = "";
    this.fenceLength = 0;
    this.language = null;
    if (outAlready) this.#follow(outAlready, 0);
  }

  /** At `scan` a line begins, or at 0 the rest of one that began with `head` (null: too long to close it). */
  closingLine(held: string, from: number, head: string | null): readonly [end: number, scan: number] {
    let scan = from;
    if ((scan || head === "") && held.indexOf(this.fence.repeat(3), scan) < 0) {
      const newline = held.lastIndexOf("\n");
      return [0, newline >= scan ? newline + 1 : scan];
    }
    for (;;) {
      const newline = held.indexOf("\n", scan);
      if (newline < 0) return [0, scan];
      const line = held.slice(scan, newline + 1);
      const began = scan ? "" : head;
      scan = newline + 1;
      if (began !== null && closes(began + line, this.fence, this.fenceLength)) return [scan, scan];
    }
  }

  /** Whether `line` would close the block if it ended here. */
  isClosing(line: string | null): boolean {
    return !!line && closes(line, this.fence, this.fenceLength);
  }

  /** A brace is the end only when it is known that no mark is put on it. */
  objectEnd(held: string, from: number): readonly [end: number, scan: number] {
    let scan = from;
    if (this.depth || !scan) {
      scan = this.#follow(held, scan);
      if (this.depth) return [0, scan];
    }
    let end = scan;
    while (end < held.length && !isBoundary(characterBefore(held, end), characterAt(held, end))) {
      end += characterAt(held, end).length;
    }
    return [end === held.length && held[held.length - 1] !== "\n" ? 0 : end, scan];
  }

  /** Goes on from `from`: where the object ends, or the end of the text while `depth` is not 0. */
  #follow(text: string, from: number): number {
    let scan = from;
    while (scan < text.length) {
      if (this.isEscaped && text[scan] !== "\n") {
        this.isEscaped = false;
        scan += 1;
        continue;
      }
      const plain = this.inString ? inside : outside;
      plain.lastIndex = scan;
      plain.test(text);
      scan = plain.lastIndex;
      if (scan === text.length) break;
      const mark = text[scan];
      scan += 1;
      if (mark === '"') this.inString = !this.inString;
      else if (mark === "\\") this.isEscaped = true;
      else if (mark === "{") this.depth += 1;
      else if (mark === "}") this.depth -= 1;
      if (mark === "\n" || this.depth === 0 || this.depth > MAX_DEPTH) {
        this.depth = 0;
        this.inString = this.isEscaped = false;
        return scan;
      }
    }
    return scan;
  }

  nextPart(text: string, isLast: boolean): Segment {
    this.part += 1;
    if (!this.fence && this.language === null) this.language = objectLanguage(text);
    return {
      text,
      isCode: true,
      fields: { block: this.number, language: this.language, part: this.part, last: isLast },
    };
  }

  save(): Saved {
    return [
      this.number,
      this.part,
      this.fence,
      this.fenceLength,
      this.language,
      this.depth,
      this.inString,
      this.isEscaped,
    ];
  }

  load(values: unknown): void {
    if (!Array.isArray(values) || values.length !== 8) throw new SegmentStateError("the state has no code block");
    const [number, part, fence, fenceLength, language, depth, inString, isEscaped] = values as unknown[];
    if (typeof fence !== "string" || (language !== null && typeof language !== "string")) {
      throw new SegmentStateError("the state's code block cannot be read");
    }
    this.number = checkedCount(number);
    this.part = checkedCount(part);
    this.fence = fence;
    this.fenceLength = checkedCount(fenceLength);
    this.language = language;
    this.depth = checkedCount(depth);
    this.inString = inString === true;
    this.isEscaped = isEscaped === true;
  }
}
