/** How far a client is: `<epoch>.<fork>.<seq>`, one value. Opaque to applications. */

import { ProtocolError } from "./errors.js";
import { textOf } from "./messages.js";

export interface Cursor {
  /** `<epoch>.<fork>`: two positions may be compared only when their lines are equal. */
  readonly lineId: string;
  readonly seq: number;
}

const FORM = /^([0-9a-z]{1,32}\.[0-9a-z]{1,32})\.(0|[1-9][0-9]{0,15})$/;

/** Throws ProtocolError for what no gateway gave out, and for a seq that a double cannot hold. */
export function parseCursor(text: unknown): Cursor {
  const match = FORM.exec(textOf(text));
  const seq = Number(match?.[2]);
  if (!match?.[1] || !Number.isSafeInteger(seq)) throw new ProtocolError("not a cursor of a gateway");
  return { lineId: match[1], seq };
}

export const formatCursor = (cursor: Cursor): string => `${cursor.lineId}.${cursor.seq}`;
