/**
 * Messages between their arrival and the application: in order, waiting until it takes them. What waits is not
 * acknowledged, so the server holds back when it is too much; transports that can be paused are.
 */

import type { Cursor } from "./cursor.js";
import type { Frame, JsonObject } from "./messages.js";
import { textOf } from "./messages.js";
import type { Platform } from "./platform.js";
import { trackOf } from "./texts.js";

/** A frame at its place. `cursor`: ours when it is applied; null when it moves nothing. */
export interface Item {
  readonly frame: Frame;
  readonly cursor: Cursor | null;
  readonly bytes: number;
  readonly arrivedAt: number;
}

/** Above, a transport that can be paused is. */
const ROOM_BYTES = 256 * 1024;
/** Above, no new connection is made: each would bring another window. */
const FULL_BYTES = 4 * 1024 * 1024;
/** A part of a sentence waits no longer for its end. */
const JOIN_MS = 500;
const PLAIN = ["kind", "run", "text", "at"];
const SENTENCE_END = /[.!?…。！？\n]["'”’)\]]*\s*$/u;

export class Feed {
  private _items: Item[] = [];
  private _bytes = 0;
  private _roomWaiters: (() => void)[] = [];
  private _cancelTimer: (() => void) | null = null;

  /** `onItem`: there may be something to take. */
  constructor(
    private readonly _platform: Platform,
    private readonly _isWhole: () => boolean,
    private readonly _onItem: () => void,
  ) {}

  get isFull(): boolean {
    return this._bytes > FULL_BYTES;
  }

  /** Age of the oldest message. */
  get behindMs(): number {
    return this._items[0] ? this._platform.now() - this._items[0].arrivedAt : 0;
  }

  put(frame: Frame, cursor: Cursor | null, bytes: number): void {
    this._items.push({ frame, cursor, bytes, arrivedAt: this._platform.now() });
    this._bytes += bytes;
    this._onItem();
  }

  /** The next one; null when there is none, or its sentence is not complete yet. */
  take(): Item | null {
    const first = this._items[0];
    if (first === undefined) return null;
    const joined = this._isWhole() && isText(first.frame) ? this._joinable() : 1;
    if (joined === 0) return null;
    const items = this._items.splice(0, joined);
    const item = joined === 1 ? first : join(items);
    this._bytes -= item.bytes;
    if (this._bytes < ROOM_BYTES) for (const go of this._roomWaiters.splice(0)) go();
    return item;
  }

  async room(): Promise<void> {
    if (this._bytes >= ROOM_BYTES) await new Promise<void>((resolve) => this._roomWaiters.push(resolve));
  }

  close(): void {
    this._cancelTimer?.();
    for (const go of this._roomWaiters.splice(0)) go();
  }

  /** How many of the first messages are one segment; 0: wait for more. */
  private _joinable(): number {
    const [first] = this._items as [Item];
    let count = 0;
    for (const { frame } of this._items) {
      if (frame.kind !== first.frame.kind || frame.run !== first.frame.run || !isText(frame)) return count;
      count += 1;
      if (SENTENCE_END.test(textOf(frame.payload.text))) return count;
    }
    const left = first.arrivedAt + JOIN_MS - this._platform.now();
    if (left <= 0) return count;
    this._cancelTimer ??= this._platform.after(left, () => {
      this._cancelTimer = null;
      this._onItem();
    });
    return 0;
  }
}

/** What more than its text a message says must not be lost in a joined one. */
const isText = ({ isControl, kind, payload }: Frame): boolean =>
  !isControl && trackOf(kind) !== null && Object.keys(payload).every((name) => PLAIN.includes(name));

/** Adjacent deltas of one run as one merged frame. Parts that we have already of an overlap were cut before. */
function join(items: readonly Item[]): Item {
  const first = items[0] as Item;
  const last = items[items.length - 1] as Item;
  const payload: JsonObject = {
    ...last.frame.payload,
    ...first.frame.payload,
    text: items.map(({ frame }) => textOf(frame.payload.text)).join(""),
  };
  return {
    frame: { ...last.frame, firstSeq: first.frame.firstSeq, payload },
    cursor: last.cursor,
    bytes: items.reduce((sum, item) => sum + item.bytes, 0),
    arrivedAt: first.arrivedAt,
  };
}
