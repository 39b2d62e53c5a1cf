/**
 * Where the frames of all connections of a session meet: one place decides what is next, what came twice, what waits for
 * something before it. Positions are taken from the newest connection only; a predecessor that still delivers can add
 * messages, and nothing else.
 */

import { type Cursor, formatCursor, parseCursor } from "./cursor.js";
import type { Frame } from "./messages.js";
import { numberOf, textOf } from "./messages.js";
import { Place } from "./place.js";
import type { Platform } from "./platform.js";

/** Where frames come from: a connection, or pages of history. */
export interface Source {
  /** `<epoch>.<fork>` that its frames are on. */
  line: string;
  /** Named by its welcome. */
  start: Cursor | null;
  /** Parts of snapshots whose position has not been named yet. */
  parts: Sized[];
}

export interface Sized {
  readonly frame: Frame;
  readonly bytes: number;
}

export interface ReceptionSink {
  /** At its place; `cursor` is null when it moves nothing. */
  put(frame: Frame, cursor: Cursor | null, bytes: number): void;
  /** Fetch what follows `since`, and hand it to `takeHistory`. Never rejects. */
  fetch(since: string): Promise<unknown>;
  /** What is missing could not be fetched: connect again from the cursor. */
  reconnect(cause: string): void;
}

/** Out of order; beyond it what is missing is fetched at once. */
const HELD_FRAMES = 256;

export class Reception {
  readonly place = new Place();
  private _current: Source | null = null;
  private _held: Sized[] = [];
  private _cancelTimer: (() => void) | null = null;
  private _isFetching = false;
  /** Where we connected again for the same hole. */
  private _askedAgainAt = "";

  constructor(
    private readonly _platform: Platform,
    private readonly _reorderMs: number,
    private readonly _sink: ReceptionSink,
  ) {}

  /** After the last message received; null before the first welcome. */
  get cursor(): string | null {
    return this.place.cursor && formatCursor(this.place.cursor);
  }

  get line(): string {
    return this.place.cursor?.line ?? "";
  }

  /** From here on it is the one that names positions. A long poll welcomes again and again. */
  welcome(source: Source, frame: Frame): void {
    const start = parseCursor(frame.payload.cursor);
    source.line = start.line;
    source.start = start;
    this._current = source;
    // Later on gap, forked and snapshot say what becomes of our place.
    if (this.place.cursor === null && frame.payload.resumed !== "gap") this.place.follow(frame);
  }

  take(source: Source, frame: Frame, bytes: number): void {
    if (!frame.isControl) this._message(source, { frame, bytes });
    else if (frame.kind === "snapshot") this._snapshot(source, { frame, bytes });
    else if (frame.kind === "gap") this._gap(source, frame, bytes);
    else this._forked(source, frame);
  }

  /** A page of history for a hole. */
  takeHistory(source: Source, frame: Frame, bytes: number): void {
    const { _current: current } = this;
    this._current = source;
    this.take(source, frame, bytes);
    this._current = current;
  }

  stop(): void {
    this._cancelTimer?.();
    this._cancelTimer = null;
  }

  // ---- messages ----------------------------------------------------------------------------------------------------

  private _message(source: Source, sized: Sized): void {
    this._flush(source, null);
    if (source === this._current && source.line !== this.line && source.start !== null) {
      this._moveTo(source.start); // neither gap nor fork said what became of what we had
    }
    const before = this.place.cursor?.seq ?? 0;
    const offer = this.place.offer(sized.frame, source.line);
    if (offer === "hole") return this._hold(sized);
    if (offer !== "next") return;
    this._deliver(sized, before);
    this._releaseHeld();
  }

  /** `before`: our position before it; what a merged frame repeats of it is not counted again. */
  private _deliver({ frame, bytes }: Sized, before: number): void {
    const firstSeq = Math.max(frame.firstSeq ?? 0, before + 1);
    this._sink.put({ ...frame, firstSeq }, this.place.cursor, bytes);
  }

  // ---- positions ---------------------------------------------------------------------------------------------------

  private _snapshot(source: Source, sized: Sized): void {
    if (source !== this._current) return;
    source.parts.push(sized);
    if (sized.frame.payload.cursor === undefined) return;
    source.line = parseCursor(sized.frame.payload.cursor).line;
    if (this.place.follow(sized.frame)) this._flush(source, this.place.cursor);
    else source.parts = [];
    this._forgetHeld();
  }

  /** Texts are rebuilt when all of them are there: what we have already is not cut by a part. */
  private _flush(source: Source, cursor: Cursor | null): void {
    const parts = source.parts;
    source.parts = [];
    parts.forEach(({ frame, bytes }, i) => {
      this._sink.put(frame, i === parts.length - 1 ? cursor : null, bytes);
    });
  }

  private _gap(source: Source, frame: Frame, bytes: number): void {
    if (source !== this._current) return;
    this._flush(source, null);
    const cursor = parseCursor(frame.payload.cursor);
    source.line = cursor.line;
    if (textOf(frame.payload.reason) === "ahead") this._moveTo(cursor);
    else if (!this.place.follow(frame)) return;
    this._sink.put(frame, this.place.cursor, bytes);
    this._forgetHeld();
  }

  /** Up to `base` the new stretch is the old one: nothing of that is taken again. */
  private _forked(source: Source, frame: Frame): void {
    const cursor = parseCursor(frame.payload.cursor);
    source.line = cursor.line;
    const here = this.place.cursor;
    if (source !== this._current || here?.line === cursor.line) return;
    const base = numberOf(frame.payload.base) ?? cursor.seq;
    const seq = here !== null && here.seq <= base ? Math.max(here.seq, cursor.seq) : cursor.seq;
    this._moveTo({ line: cursor.line, seq });
  }

  private _moveTo(cursor: Cursor): void {
    this.place.cursor = cursor;
    this._forgetHeld();
  }

  // ---- holes -------------------------------------------------------------------------------------------------------

  private _hold(sized: Sized): void {
    if (this._held.length >= HELD_FRAMES) return void this._fill();
    this._held.push(sized);
    this._cancelTimer ??= this._platform.after(this._reorderMs, () => {
      this._cancelTimer = null;
      void this._fill();
    });
  }

  private _releaseHeld(): void {
    if (this._held.length === 0) return;
    this._held.sort((a, b) => (a.frame.firstSeq ?? 0) - (b.frame.firstSeq ?? 0));
    const waiting = this._held;
    this._held = [];
    for (const sized of waiting) {
      const before = this.place.cursor?.seq ?? 0;
      const offer = this.place.offer(sized.frame, this.line);
      if (offer === "next") this._deliver(sized, before);
      if (offer === "hole") this._held.push(sized);
    }
    if (this._held.length === 0) this.stop();
  }

  private _forgetHeld(): void {
    this._held = [];
    this.stop();
  }

  /** Nothing filled the hole in time: fetch it, else connect again, else say that it is lost and go on. */
  private async _fill(): Promise<void> {
    const since = this.cursor;
    if (this._isFetching || this._held.length === 0 || since === null) return;
    this._isFetching = true;
    await this._sink.fetch(since);
    this._isFetching = false;
    this._releaseHeld();
    const first = this._held[0];
    if (first === undefined) return;
    if (this.cursor !== since) return void this._fill();
    if (this._askedAgainAt !== since) {
      this._askedAgainAt = since;
      this._forgetHeld();
      return this._sink.reconnect("a message is missing");
    }
    const lost = this.place.skipTo((first.frame.firstSeq ?? 1) - 1);
    const payload = { kind: "gap", ...lost, reason: "missing" };
    this._sink.put({ ...first.frame, isControl: true, kind: "gap", run: null, payload }, this.place.cursor, 0);
    this._releaseHeld();
  }
}
