/** Where a session is: what came twice, out of order, or not at all. Frames of all its connections pass here. */

import type { Cursor } from "./cursor.js";
import { parseCursor } from "./cursor.js";
import type { Frame } from "./messages.js";
import { BadFrame } from "./messages.js";

/** `hole`: something before it is missing. `foreign`: of another stretch of the log than we are on. */
export type Offer = "next" | "repeat" | "hole" | "foreign";

export class Place {
  /** After the last message received; null before the first welcome. */
  cursor: Cursor | null = null;

  /** Judge a message of a connection that is on `line`, and move on when it is the next. */
  offer(frame: Frame, line: string): Offer {
    if (frame.seq === null || frame.firstSeq === null || this.cursor === null)
      throw new BadFrame("a message too early");
    if (line !== this.cursor.line) return "foreign";
    if (frame.seq <= this.cursor.seq) return "repeat";
    if (frame.firstSeq > this.cursor.seq + 1) return "hole";
    this.cursor = { line, seq: frame.seq };
    return "next";
  }

  /** Take over the position that a frame names; false when we are there or beyond. Throws ProtocolError. */
  follow(frame: Frame): boolean {
    const cursor = parseCursor(frame.payload.cursor);
    if (this.cursor !== null && this.cursor.line === cursor.line && cursor.seq <= this.cursor.seq) return false;
    this.cursor = cursor;
    return true;
  }

  /** What is missing never came: go on rather than stand still. Returns the range that is lost. */
  skipTo(seq: number): { first: number; last: number } {
    const { line, seq: here } = this.cursor ?? { line: "", seq: 0 };
    this.cursor = { line, seq };
    return { first: here + 1, last: seq };
  }
}
