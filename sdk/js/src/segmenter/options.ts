/** How a text is cut: the modes and their limits, checked once. */

import { compilePattern } from "./pattern_syntax.js";

const MIN_HELD_BYTES = 16;
const MAX_HELD_BYTES = 1_024;
const MAX_TOKENS = 1_000;
const MAX_DELAY_MS = 10_000;

/**
 * `tokens`: so many word-like tokens; `sentence`: sentences and lines; `structure`: code blocks typed, headings, items
 * and tables whole, else sentences; `pattern`: a segment ends where a match ends; `raw`: what comes goes;
 * `width`: lines that are not wider than `maxWidth` as `measure` has it.
 */
export type SegmentMode = "tokens" | "sentence" | "structure" | "pattern" | "raw" | "width";

export interface SegmentOptions {
  /** Default `tokens`, as at the gateway. */
  readonly mode?: SegmentMode;
  /** How many word-like tokens make a segment, in mode `tokens`. Default 15. */
  readonly tokens?: number;
  /** Nothing is held longer, provided that `tick` is called when due. Default 60; in mode `width` 250. */
  readonly maxDelayMs?: number;
  /** UTF-8 bytes that may be held; no segment is longer, except in mode `raw`. Default and most: 1,024. */
  readonly maxBytes?: number;
  /** The first text is due at once. Default true; in mode `width` false. */
  readonly firstImmediately?: boolean;
  /** Of mode `pattern`. A text is read as the gateway reads it: `\w`, `\d`, `\s`, `\b` mean those of all scripts. */
  readonly pattern?: string | RegExp;
  /** Of mode `width`: how wide one line of text is, in any unit, e.g. a canvas' `measureText(text).width`. */
  readonly measure?: (text: string) => number;
  /** Of mode `width`: in the unit of `measure`. */
  readonly maxWidth?: number;
}

/** Checked, with its defaults. */
export interface SegmentPlan {
  readonly mode: SegmentMode;
  readonly tokens: number;
  readonly maxDelayMs: number;
  readonly maxBytes: number;
  readonly firstImmediately: boolean;
  readonly pattern: RegExp | null;
  readonly measure: (text: string) => number;
  readonly maxWidth: number;
}

const MODES: readonly SegmentMode[] = ["tokens", "sentence", "structure", "pattern", "raw", "width"];

/** Throws RangeError or SyntaxError that says what to do. */
export function planOf(options: SegmentOptions): SegmentPlan {
  const mode = options.mode ?? "tokens";
  if (!MODES.includes(mode)) throw new RangeError(`mode \`${mode}\` is none of: ${MODES.join(", ")}`);
  const isWidth = mode === "width";
  if ((options.pattern === undefined) === (mode === "pattern")) {
    throw new RangeError("give a pattern in mode `pattern`, and in no other mode");
  }
  if (isWidth !== (options.measure !== undefined) || isWidth !== (options.maxWidth !== undefined)) {
    throw new RangeError("give measure and maxWidth in mode `width`, and in no other mode");
  }
  if (isWidth && !(options.maxWidth !== undefined && options.maxWidth > 0)) {
    throw new RangeError("maxWidth must be more than 0");
  }
  return {
    mode,
    tokens: checkedRange("tokens", options.tokens ?? 15, 1, MAX_TOKENS),
    maxDelayMs: checkedRange("maxDelayMs", options.maxDelayMs ?? (isWidth ? 250 : 60), 0, MAX_DELAY_MS),
    maxBytes: checkedRange("maxBytes", options.maxBytes ?? MAX_HELD_BYTES, MIN_HELD_BYTES, MAX_HELD_BYTES),
    firstImmediately: options.firstImmediately ?? !isWidth,
    pattern: options.pattern === undefined ? null : compilePattern(options.pattern),
    measure: options.measure ?? (() => 0),
    maxWidth: options.maxWidth ?? 0,
  };
}

function checkedRange(name: string, value: number, low: number, high: number): number {
  if (!(value >= low && value <= high)) throw new RangeError(`${name} is ${value}; choose ${low} to ${high}`);
  return value;
}
