/** What a mode must be able to do, and the segment that it makes. Called by the segmenter only. */

import { bestCut, unfinishedTail } from "./graphemes.js";

/** Where a part of a code block belongs. */
export interface BlockFields {
  readonly block: number;
  readonly language: string | null;
  readonly part: number;
  readonly last: boolean;
}

/** Where a part of a measured line belongs. */
export interface LineFields {
  readonly line: number;
  readonly last: boolean;
}

export interface Segment {
  /** Never empty; all texts of a run in order are the run's text. */
  readonly text: string;
  /** A part of a code block, with its fence lines or its object as written. */
  readonly isCode: boolean;
  readonly fields?: BlockFields | LineFields;
}

export type Saved = readonly unknown[];

/**
 * Finds where segments end in the held text, which begins where the last segment ended.
 *
 * `find` must be monotone: what it has found in a text it finds in every longer one. Then the segments do not depend on
 * how the text arrived. A rule may remember how far it has looked; `held` only grows until `take` or `leave`.
 */
export class Rule {
  /** Where the first segment of `held` ends, once no further text could change that; 0: not yet. */
  find(_held: string): number {
    return 0;
  }

  /** Where to cut when `held` is full and nothing was found; > 0. */
  force(held: string, following: string): number {
    return bestCut(held, following);
  }

  /** From where on the held text should rather stay when its time has come but it is still growing. */
  unfinished(held: string): number {
    return unfinishedTail(held);
  }

  /** `text` was found; it leaves. */
  take(text: string, out: Segment[]): void {
    out.push({ text, isCode: false });
  }

  /** `text` must go because of the limit or the time, or because the text ends here. */
  leave(text: string, _atEnd: boolean, out: Segment[]): void {
    this.take(text, out);
  }

  /** Plain values that survive JSON. */
  save(): Saved {
    return [];
  }

  /** What `save` gave. Throws SegmentStateError. */
  load(_values: Saved, _held: string): void {}
}

/** A saved state that is not what `save` gave with the same options. */
export class SegmentStateError extends Error {
  override name = "SegmentStateError";
}

export function checkedPlace(value: unknown, held: string): number {
  const place = checkedCount(value);
  if (place > held.length) throw new SegmentStateError(`place ${place} is not within the held text`);
  return place;
}

export function checkedCount(value: unknown): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) {
    throw new SegmentStateError("the state has no number where one belongs");
  }
  return value;
}
