/**
 * Mode `structure`: code blocks become typed segments; headings, list items and tables stay whole; the rest is sentences.
 *
 * One step per phase of a line; `scan` is how far the held text is understood. What time or limit pushed out of a line
 * that is not understood yet is kept as `head`, so that a fence is known also when its line comes late.
 */

import { Block } from "./blocks.js";
import { characterBefore, isBoundary } from "./graphemes.js";
import { fenceOf, headOf, joined, type Kind, kindOf, objectAt } from "./lines.js";
import { checkedPlace, Rule, type Saved, type Segment, SegmentStateError } from "./rule.js";
import { plainLineEnd, sentenceEnd } from "./sentences.js";

const GO_ON = -1;
const blankLines = /(?:[ \t]*\r?\n)+/y;
const indentAt = /[ \t]*/y;

/** Where the blank lines at `at` end; 0: there are none. */
function blankEnd(text: string, at: number): number {
  blankLines.lastIndex = at;
  return blankLines.test(text) ? blankLines.lastIndex : 0;
}

const PHASES = [
  "line", // at the beginning of a line that is not understood yet
  "flow",
  "heading",
  "item",
  "afterItem", // at the beginning of the line after a line of an item, which may go on
  "table",
  "afterRow",
  "fenceInfo", // in the line that opens a block, part of which is out already
  "code",
  "object",
] as const;
type Phase = (typeof PHASES)[number];

export class StructureRule extends Rule {
  #phase: Phase = "line";
  #scan = 0;
  /** What is out of the line, or in flow of what may become an object, in which the held text begins; null: too much. */
  #head: string | null = "";
  /** The end of a block was found, and is about to be taken. */
  #isClosed = false;
  #block = new Block();

  override find(held: string): number {
    for (;;) {
      const end = this.#step(held);
      if (end !== GO_ON) return end;
    }
  }

  #step(held: string): number {
    switch (this.#phase) {
      case "line":
        return this.#line(held);
      case "flow":
        return this.#flow(held);
      case "heading": {
        const newline = held.indexOf("\n", this.#scan);
        if (newline < 0) this.#scan = held.length;
        return newline + 1;
      }
      case "item":
        return this.#toNextLine(held, "afterItem");
      case "afterItem":
        return this.#afterItem(held);
      case "table":
        return this.#toNextLine(held, "afterRow");
      case "afterRow":
        return this.#goesOn(held, "table", "table");
      case "fenceInfo":
        return this.#fenceInfo(held);
      case "code":
        return this.#code(held);
      case "object": {
        const [end, scan] = this.#block.objectEnd(held, this.#scan);
        this.#scan = scan;
        this.#isClosed = end > 0;
        return end;
      }
    }
  }

  #turn(phase: Phase, scan: number, head = ""): number {
    this.#phase = phase;
    this.#scan = scan;
    this.#head = head;
    return GO_ON;
  }

  #line(held: string): number {
    const start = this.#scan;
    const head = this.#head;
    if (start === held.length) return 0;
    if (!start && !head) {
      // An unknown head counts as no head here: the line is plain either way.
      const plain = plainLineEnd(held);
      if (plain) {
        this.#turn("flow", 0);
        return plain;
      }
    }
    if (start || !head) {
      const blank = blankEnd(held, start);
      if (blank) return this.#turn("line", blank);
    }
    if (head === null) return this.#turn("flow", start);
    const line = head + held.slice(start);
    const kind = kindOf(line);
    switch (kind) {
      case "undecided":
        return 0;
      case "blank":
        return this.#turn("line", held.indexOf("\n", start) + 1);
      case "fence":
        if (start) return start;
        this.#block.openFence(line);
        return this.#turn("code", held.indexOf("\n") + 1);
      case "object": {
        const brace = line.indexOf("{");
        const place = start + brace - head.length;
        return place > 0 ? place : this.#openObject(head.slice(brace));
      }
      case "flow":
        if (head.includes("\n")) return this.#turn("line", 0, head.slice(head.lastIndexOf("\n") + 1));
        return this.#turn("flow", start);
      default:
        return this.#turn(kind, start);
    }
  }

  #flow(held: string): number {
    if (this.#head) {
      const match = objectAt(this.#head + held, 0);
      if (match !== "no") return match === "partial" ? 0 : this.#openObject(this.#head);
      const newline = this.#head.lastIndexOf("\n");
      return newline >= 0 ? this.#turn("line", 0, this.#head.slice(newline + 1)) : this.#turn("flow", 0);
    }
    const scan = this.#scan;
    if (!scan || " \t\r".includes(held[scan - 1]!)) {
      const blank = blankEnd(held, 0);
      if (blank) return this.#turn("line", blank);
    }
    const [end, further] = sentenceEnd(held, scan);
    const limit = end || held.length;
    for (let brace = held.indexOf("{", scan); brace >= 0 && brace < limit; brace = held.indexOf("{", brace + 1)) {
      const match = objectAt(held, brace);
      if (match === "no") continue;
      if (match === "partial") {
        this.#scan = Math.min(further, brace);
        return 0;
      }
      if (!brace) return this.#openObject("");
      if (isBoundary(characterBefore(held, brace), "{")) return brace;
    }
    if (!end) this.#scan = further;
    return end;
  }

  #openObject(outAlready: string): number {
    this.#block.openObject(outAlready);
    return this.#turn("object", 0);
  }

  #toNextLine(held: string, phase: Phase): number {
    const newline = held.indexOf("\n", this.#scan);
    if (newline >= 0) return this.#turn(phase, newline + 1);
    this.#scan = held.length;
    return 0;
  }

  #afterItem(held: string): number {
    const start = this.#scan;
    indentAt.lastIndex = start;
    indentAt.test(held);
    const end = indentAt.lastIndex;
    if (end === held.length) return 0;
    const indent = held.slice(start, end);
    if (indent === "" || indent === " ") return start;
    return this.#goesOn(held, "flow", "item");
  }

  #goesOn(held: string, kind: Kind, phase: Phase): number {
    const next = kindOf(held.slice(this.#scan));
    if (next === "undecided") return 0;
    return next === kind ? this.#turn(phase, this.#scan) : this.#scan;
  }

  #fenceInfo(held: string): number {
    const newline = held.indexOf("\n", this.#scan);
    if (newline < 0) {
      this.#scan = held.length;
      return 0;
    }
    if (!this.#block.learnFence((this.#head ?? "") + held.slice(0, newline + 1))) {
      this.#isClosed = true;
      return newline + 1;
    }
    return this.#turn("code", newline + 1);
  }

  #code(held: string): number {
    if (this.#isClosed) return this.#scan;
    const [end, scan] = this.#block.closingLine(held, this.#scan, this.#head);
    this.#scan = scan;
    this.#isClosed = end > 0;
    return end;
  }

  override take(text: string, out: Segment[]): void {
    if (this.#isClosed) {
      this.#part(text, true, out);
      return;
    }
    out.push({ text, isCode: false });
    this.#turn(this.#phase === "flow" && !text.endsWith("\n") ? "flow" : "line", 0);
  }

  override leave(text: string, atEnd: boolean, out: Segment[]): void {
    const scan = this.#scan;
    this.#scan = Math.max(0, scan - text.length);
    switch (this.#phase) {
      case "line":
      case "afterItem":
      case "afterRow":
        this.#leaveLine(text, scan, out);
        return;
      case "flow": {
        out.push({ text, isCode: false });
        const known = (this.#head ?? "") + text;
        const brace = known.lastIndexOf("{");
        this.#head = brace >= 0 && objectAt(known, brace) === "partial" ? known.slice(brace) : "";
        this.#scan = 0;
        return;
      }
      case "fenceInfo":
        this.#head = headOf((this.#head ?? "") + text);
        this.#block.learnFence(this.#head);
        this.#part(text, false, out);
        return;
      case "code":
        this.#head = joined(scan ? "" : this.#head, text.slice(scan));
        this.#part(text, atEnd && this.#block.isClosing(this.#head), out);
        return;
      case "object":
        this.#part(text, this.#block.depth === 0 && scan > 0 && scan <= text.length, out);
        return;
      default:
        out.push({ text, isCode: false });
    }
  }

  #leaveLine(text: string, scan: number, out: Segment[]): void {
    const head = scan ? "" : this.#head;
    const rest = text.slice(scan);
    this.#phase = "line";
    this.#head = joined(head, rest);
    if (rest && head !== null && fenceOf(head + rest)) {
      // What comes next cannot make it prose again, unless it is a backtick in the same line.
      if (scan) out.push({ text: text.slice(0, scan), isCode: false });
      this.#block.openFence(head + rest);
      this.#phase = "fenceInfo";
      this.#head = headOf(head + rest);
      this.#part(rest, false, out);
      return;
    }
    out.push({ text, isCode: false });
  }

  #part(text: string, isLast: boolean, out: Segment[]): void {
    out.push(this.#block.nextPart(text, isLast));
    if (isLast) {
      this.#isClosed = false;
      this.#turn(text.endsWith("\n") ? "line" : "flow", 0);
    }
  }

  override save(): Saved {
    return [this.#phase, this.#scan, this.#head, this.#block.save()];
  }

  override load(values: Saved, held: string): void {
    const [phase, scan, head, block] = values;
    if (!PHASES.includes(phase as Phase) || (head !== null && typeof head !== "string")) {
      throw new SegmentStateError("the state's phase cannot be read");
    }
    this.#phase = phase as Phase;
    this.#scan = checkedPlace(scan, held);
    this.#head = head;
    this.#block.load(block);
  }
}
