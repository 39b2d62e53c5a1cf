/**
 * Messages between their arrival and the application: in order, waiting until it takes them. What waits is not
 * acknowledged, so the server holds back when it is too much; transports that can be paused are.
 */

import type { Core } from "./core.js";
import type { Cursor } from "./cursor.js";
import type { Frame } from "./messages.js";
import { textOf } from "./messages.js";
import { createGate, createTimer } from "./platform.js";
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

export function createFeed(core: Core) {
  const { platform, settings } = core;
  const _items: Item[] = [];
  const _joining = createTimer(platform);
  let _bytes = 0;
  const _room = createGate();
  const self = {
    get isFull(): boolean {
      return _bytes > FULL_BYTES;
    },

    put(frame: Frame, cursor: Cursor | null, bytes: number): void {
      _items.push({ frame, cursor, bytes, arrivedAt: platform.now() });
      _bytes += bytes;
      core.delivery.drain();
      _tellAge();
    },

    /** The next one; null when there is none, or its sentence is not complete yet. */
    take(): Item | null {
      const [first] = _items;
      const joined = first && _isWhole() && isText(first.frame) ? _joinable(first) : 1;
      if (!first || !joined) return null;
      const items = _items.splice(0, joined);
      const item = joined === 1 ? first : join(items);
      const wasFull = self.isFull;
      _bytes -= item.bytes;
      if (wasFull && !self.isFull) core.conductor.wake();
      if (_bytes < ROOM_BYTES) _room.open();
      _tellAge();
      return item;
    },

    async room(): Promise<void> {
      if (_bytes >= ROOM_BYTES) await _room.wait();
    },

    close(): void {
      _joining.stop();
      _room.open();
    },
  };
  return self;

  function _tellAge(): void {
    core.quality.behind(_items[0] ? platform.now() - _items[0].arrivedAt : 0, true);
  }

  /** Sentences are waited for. */
  function _isWhole(): boolean {
    const { segments } = settings;
    return segments === "whole" || (segments === "auto" && core.quality.isDegraded);
  }

  /** How many of the first messages are one segment; 0: wait for more. */
  function _joinable({ frame: { kind, run }, arrivedAt }: Item): number {
    let count = 0;
    for (const { frame } of _items) {
      if (frame.kind !== kind || frame.run !== run || !isText(frame)) return count;
      count += 1;
      if (SENTENCE_END.test(textOf(frame.payload.text))) return count;
    }
    const leftMs = arrivedAt + JOIN_MS - platform.now();
    if (leftMs <= 0) return count;
    _joining.start(leftMs, core.delivery.drain);
    return 0;
  }
}

export type Feed = ReturnType<typeof createFeed>;

/** What more than its text a message says must not be lost in a joined one. */
const isText = ({ isControl, kind, payload }: Frame): boolean =>
  !isControl && trackOf(kind) !== null && Object.keys(payload).every((name) => PLAIN.includes(name));

/** Adjacent deltas of one run as one merged frame. Parts that we have already of an overlap were cut before. */
function join(items: readonly Item[]): Item {
  const [first, last] = [items[0], items[items.length - 1]] as [Item, Item];
  const text = items.map(({ frame }) => textOf(frame.payload.text)).join("");
  const payload = { ...last.frame.payload, ...first.frame.payload, text };
  const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
  return { ...last, frame: { ...last.frame, firstSeq: first.frame.firstSeq, payload }, bytes };
}
