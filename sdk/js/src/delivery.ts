/** Hands messages to the application, by its loop or its listeners, and applies each in that moment: texts, runs, asks. */

import { type Cursor, formatCursor } from "./cursor.js";
import type { RelayError } from "./errors.js";
import { type Ask, CONTENT_EVENTS, type Emitter, type RunInfo } from "./events.js";
import { Feed, type Item } from "./feed.js";
import { type Frame, type JsonObject, type Message, numberOf, textOf } from "./messages.js";
import type { Platform } from "./platform.js";
import { type Change, type Run, type RunTexts, trackOf } from "./texts.js";

export interface DeliverySink {
  isWhole(): boolean;
  applied(cursor: Cursor, bytes: number): void;
  /** How old the oldest message is that waits. */
  behind(ms: number): void;
  roomAgain(): void;
  /** The beginning of this run is missing here, and is there. */
  fill(run: string, known: Run): void;
  /** A run ended, with what is told of its text. */
  verify(run: string, told: JsonObject): void;
}

const DONE = { done: true, value: undefined } as const;

export class Delivery {
  /** After the last message applied; null before the first. */
  cursor: string | null = null;
  /** We began at a stored position: beginnings of runs are fetched. */
  isFilling = false;
  private readonly _feed: Feed;
  private readonly _openAsks = new Map<string, Ask>();
  /** Runs that we interrupted: their text that is still on its way is not shown. */
  private readonly _silenced = new Set<string>();
  private _isLooping = false;
  private _isDraining = false;
  private _wakeLoop: () => void = () => undefined;
  private _isOver = false;
  private _error: RelayError | null = null;

  constructor(
    platform: Platform,
    private readonly _emitter: Emitter,
    private readonly _texts: RunTexts,
    private readonly _sink: DeliverySink,
  ) {
    this._feed = new Feed(platform, _sink.isWhole, () => this.drain());
  }

  get isFull(): boolean {
    return this._feed.isFull;
  }

  get asks(): readonly Ask[] {
    return [...this._openAsks.values()];
  }

  get runs(): readonly RunInfo[] {
    return [...this._texts.runs].map(([run, { reason }]) => ({
      run,
      state: reason === null ? "open" : "ended",
      reason,
    }));
  }

  put(frame: Frame, cursor: Cursor | null, bytes: number): void {
    this._feed.put(frame, cursor, bytes);
    this._sink.behind(this._feed.behindMs);
  }

  room(): Promise<void> {
    return this._feed.room();
  }

  /** A loop takes what there is, else listeners do, else it waits. */
  drain(): void {
    if (this._isLooping) return this._wakeLoop();
    if (this._isDraining) return; // a listener that subscribes or closes while it is called
    this._isDraining = true;
    while (!this._isLooping && this._emitter.has(CONTENT_EVENTS) && this._next() !== null);
    this._isDraining = false;
  }

  loop(): AsyncIterator<Message, undefined> {
    if (this._isLooping) throw new Error("this session is being read by another loop");
    this._isLooping = true;
    let isStopped = false;
    const take = async (): Promise<IteratorResult<Message, undefined>> => {
      while (!isStopped) {
        const item = this._next();
        if (item?.message) return { done: false, value: item.message };
        if (item !== null) continue;
        if (this._isOver) {
          stop();
          if (this._error !== null) throw this._error;
          break;
        }
        await new Promise<void>((resolve) => {
          this._wakeLoop = resolve;
        });
      }
      return DONE;
    };
    const stop = () => {
      if (isStopped) return;
      isStopped = true;
      this._isLooping = false;
      this._wakeLoop();
      this.drain();
    };
    let last: Promise<unknown> = Promise.resolve();
    return {
      // One after the other, also where several are asked for at once.
      next: () => {
        const taken = last.then(take);
        last = taken.catch(none);
        return taken;
      },
      return: async () => {
        stop();
        return DONE;
      },
    };
  }

  /** Nothing comes any more; what came can still be taken. */
  end(error: RelayError | null): void {
    this._isOver = true;
    this._error = error;
    this._feed.close();
    this.drain();
  }

  silence(run: string): void {
    this._silenced.add(run);
  }

  /** An open ask, announced ahead of its place. */
  opened(payload: JsonObject): void {
    const ask = textOf(payload.ask);
    if (ask === "" || this._openAsks.has(ask)) return;
    const run = typeof payload.run === "string" ? payload.run : null;
    const known: Ask = { ask, message: textOf(payload.message), run, payload };
    this._openAsks.set(ask, known);
    this._emitter.emit("ask", known);
  }

  // ---- one message -------------------------------------------------------------------------------------------------

  private _next(): { message: Message | null } | null {
    const item = this._feed.take();
    if (item === null) return null;
    const message = this._isSilenced(item.frame) ? this._pass(item) : this._apply(item);
    this._sink.behind(this._feed.behindMs);
    this._sink.roomAgain();
    if (message !== null) this._emitter.emit("message", message);
    return { message };
  }

  private _isSilenced({ kind, run }: Frame): boolean {
    if (run === null || !this._silenced.has(run)) return false;
    if (kind === "run_end") this._silenced.delete(run);
    return trackOf(kind) !== null || kind === "tool";
  }

  private _pass({ cursor, bytes }: Item): null {
    if (cursor !== null) {
      this.cursor = formatCursor(cursor);
      this._sink.applied(cursor, bytes);
    }
    return null;
  }

  private _apply(item: Item): Message | null {
    const { frame } = item;
    const change = this._texts.apply(frame);
    this._pass(item);
    const message = messageOf(frame, change);
    if (change !== null) this._tellChange(change, frame);
    if (frame.isControl && frame.kind === "gap") {
      const { first, last, reason } = frame.payload;
      this._emitter.emit("gap", { first: numberOf(first) ?? 0, last: numberOf(last) ?? 0, reason: textOf(reason) });
    } else if (frame.kind === "ask") {
      this.opened(frame.payload);
    } else if (frame.kind === "ask_resolved") {
      this._resolved(frame.payload);
    }
    return message;
  }

  private _tellChange({ run, track, added, begins, end }: Change, { payload, isControl }: Frame): void {
    if (begins) this._emitter.emit("run", { run, state: "open", reason: null, payload: isControl ? {} : payload });
    const known = this._texts.runs.get(run);
    if (track !== null && (added.text || added.isRewritten)) {
      this._emitter.emit(track, { run, added: added.text, isRewritten: added.isRewritten });
      if (this.isFilling && known?.[track].isWhole === false) this._sink.fill(run, known);
    }
    if (end !== null) {
      this._emitter.emit("run", { run, state: "ended", reason: known?.reason ?? null, payload: end });
      this._sink.verify(run, end);
    }
  }

  private _resolved(payload: JsonObject): void {
    const ask = textOf(payload.ask);
    this._openAsks.delete(ask);
    this._emitter.emit("ask_resolved", { ask, status: textOf(payload.status), value: payload.value, payload });
  }
}

const none = (): void => undefined;

/** Null for what only moves the position. */
function messageOf(frame: Frame, change: Change | null): Message | null {
  const { isControl, kind, run, timestamp, payload } = frame;
  if (isControl && kind === "snapshot" && run === null) return null;
  const text = change?.track ? change.added.text : textOf(payload.text);
  const [seq, firstSeq] = isControl ? [null, null] : [frame.seq, frame.firstSeq];
  return { kind, seq, firstSeq, timestamp, run, text, payload, late: payload.late === true };
}
