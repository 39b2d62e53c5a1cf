/**
 * Cuts a text into segments, as it comes: nothing lost, nothing added, nothing held for long. The same as the gateway's.
 *
 * Owns what is held, its limits and its due time; a rule (one per mode) says where segments end. Never reads a clock:
 * the caller passes milliseconds of its own.
 */

import { byteLength, characterAt, endWithin, lastBoundary, lastCharacters } from "./graphemes.js";
import { planOf, type SegmentOptions, type SegmentPlan } from "./options.js";
import { PatternRule } from "./pattern.js";
import { Rule, type Segment, SegmentStateError } from "./rule.js";
import { SentenceRule } from "./sentences.js";
import { StructureRule } from "./structure.js";
import { TokenRule } from "./tokens.js";
import { WidthRule } from "./width.js";

const MAX_RAW_BYTES = 8 * 1024; // a gateway's message of the default size holds it even if JSON escapes every byte
const RAW_TAIL = 128; // longer graphemes are not kept whole in mode `raw`
const VERSION = 1;
const anySurrogate = /[\ud800-\udfff]/;
const loneSurrogates = /\p{Surrogate}/gu;

/**
 * Of one text. Without `tick` the segments depend on the text alone, not on how it was cut into feeds (except in mode
 * `raw`). Another segmenter with the same options goes on from `save()` as if it were this one.
 */
export class Segmenter {
  readonly #plan: SegmentPlan;
  readonly #rule: Rule;
  #held = "";
  /** The first half of a character whose second half is still to come. */
  #half = "";
  #isFirst: boolean;
  #dueMs: number | null = null;
  #fedMs = Number.NEGATIVE_INFINITY;
  #fedFrom = 0;
  #restored = false;

  /** Throws RangeError for options, SegmentStateError when `state` is not what `save` gave with the same options. */
  constructor(options: SegmentOptions = {}, state?: string) {
    this.#plan = planOf(options);
    this.#rule = ruleOf(this.#plan);
    this.#isFirst = this.#plan.firstImmediately;
    if (state !== undefined) this.#load(state);
  }

  /** At most `maxBytes`. */
  get heldBytes(): number {
    return byteLength(this.#held);
  }

  /** The segments that `text` completes. Ask `dueMs` afterwards: the first text is due at once. */
  feed(text: string, nowMs: number): Segment[] {
    const whole = this.#wellFormed(text);
    if (!whole) return [];
    if (this.#plan.mode === "raw") return rawSegments(whole);
    if (this.#restored) this.#clampDue(nowMs);
    const oldLength = this.#held.length;
    const out: Segment[] = [];
    const held = this.#held + whole;
    const start = this.#cutUp(held, out);
    this.#held = held.slice(start);
    this.#fedMs = nowMs;
    this.#fedFrom = Math.max(0, oldLength - start);
    if (!this.#held) this.#dueMs = null;
    else if (this.#dueMs === null || start >= oldLength) {
      // What is held now came with this text; else part of it is older, and the old time stays.
      this.#dueMs = this.#isFirst ? nowMs : nowMs + this.#plan.maxDelayMs;
    }
    return out;
  }

  #wellFormed(text: string): string {
    if (!this.#half && !anySurrogate.test(text)) return text;
    let whole = this.#half + text;
    this.#half = "";
    if (/[\ud800-\udbff]$/.test(whole)) {
      this.#half = whole.slice(-1);
      whole = whole.slice(0, -1);
    }
    return whole.replace(loneSurrogates, "\ufffd");
  }

  /** Everything that is decided leaves; returns where the rest begins, which is within the limit. */
  #cutUp(text: string, out: Segment[]): number {
    let start = 0;
    while (start < text.length) {
      const end = endWithin(text, start, this.#plan.maxBytes);
      const held = text.slice(start, end);
      let cut = this.#rule.find(held);
      if (cut) this.#rule.take(held.slice(0, cut), out);
      else if (end < text.length) {
        cut = this.#rule.force(held, characterAt(text, end));
        this.#rule.leave(held.slice(0, cut), false, out);
      } else break;
      this.#isFirst = false;
      start += cut;
    }
    return start;
  }

  /**
   * When `tick` must be called, on the clock of `nowMs`; in the past or now: at once. Null: nothing is held.
   * After a restore it is 0 until the first `feed` or `tick` tells the time.
   */
  dueMs(): number | null {
    return this.#restored && this.#held ? 0 : this.#dueMs;
  }

  /** What has waited long enough; of what is likely still growing, only what came long enough ago. */
  tick(nowMs: number): Segment[] {
    if (this.#restored) this.#clampDue(nowMs);
    if (this.#dueMs === null || nowMs < this.#dueMs) return [];
    const keepUntil = this.#fedMs + this.#plan.maxDelayMs;
    let end = this.#held.length;
    if (nowMs < keepUntil) {
      const tail = this.#rule.unfinished(this.#held);
      if (tail >= this.#fedFrom) end = tail;
    }
    this.#dueMs = end === this.#held.length ? null : keepUntil;
    return this.#leave(end, false);
  }

  /** All that is held, because another kind follows or the text ends; more text may follow. */
  flush(): Segment[] {
    this.#dueMs = null;
    this.#restored = false;
    const out: Segment[] = [];
    if (this.#half) {
      // The other half never came.
      this.#half = "";
      out.push(...this.feed("\ufffd", this.#fedMs));
      this.#dueMs = null;
    }
    return [...out, ...this.#leave(this.#held.length, true)];
  }

  #leave(end: number, atEnd: boolean): Segment[] {
    const out: Segment[] = [];
    if (end) {
      this.#rule.leave(this.#held.slice(0, end), atEnd, out);
      this.#held = this.#held.slice(end);
      this.#isFirst = false;
    }
    return out;
  }

  /** A few KiB at most; the held text is in it. Due times are those of the caller's clock. */
  save(): string {
    const { mode } = this.#plan;
    return JSON.stringify([VERSION, mode, this.#isFirst, this.#dueMs, this.#held, this.#half, this.#rule.save()]);
  }

  #load(state: string): void {
    const [version, mode, isFirst, dueMs, held, half, rule] = parsedState(state);
    if (version !== VERSION || mode !== this.#plan.mode) {
      throw new SegmentStateError(`the state is of version ${String(version)} and mode ${String(mode)}`);
    }
    if (typeof held !== "string" || typeof half !== "string" || !Array.isArray(rule)) {
      throw new SegmentStateError("the segmenter's state cannot be read");
    }
    if (byteLength(held) > this.#plan.maxBytes) throw new SegmentStateError("more is held than maxBytes");
    this.#rule.load(rule, held);
    this.#held = held;
    this.#half = half;
    this.#isFirst = isFirst === true;
    this.#dueMs = typeof dueMs === "number" ? dueMs : null;
    this.#restored = held !== "";
  }

  /** The saved time may be of another clock: nothing waits longer for that. */
  #clampDue(nowMs: number): void {
    const latest = nowMs + this.#plan.maxDelayMs;
    this.#dueMs = this.#dueMs === null ? latest : Math.min(this.#dueMs, latest);
    this.#restored = false;
  }
}

function parsedState(state: string): unknown[] {
  let values: unknown;
  try {
    values = JSON.parse(state);
  } catch {
    values = null;
  }
  if (!Array.isArray(values)) throw new SegmentStateError("the segmenter's state cannot be read");
  return values;
}

function ruleOf(plan: SegmentPlan): Rule {
  switch (plan.mode) {
    case "tokens":
      return new TokenRule(plan.tokens);
    case "sentence":
      return new SentenceRule();
    case "structure":
      return new StructureRule();
    case "width":
      return new WidthRule(plan.measure, plan.maxWidth);
    default:
      return plan.pattern ? new PatternRule(plan.pattern) : new Rule();
  }
}

/** One, unless it would not fit a message. */
function rawSegments(text: string): Segment[] {
  const out: Segment[] = [];
  for (let start = 0; start < text.length; ) {
    let end = endWithin(text, start, MAX_RAW_BYTES);
    if (end < text.length) {
      const tail = lastCharacters(text.slice(start, end), RAW_TAIL);
      end += (lastBoundary(tail, characterAt(text, end)) || tail.length) - tail.length;
    }
    out.push({ text: text.slice(start, end), isCode: false });
    start = end;
  }
  return out;
}
