/**
 * Where the frames of all connections of a session meet: one place decides what is next, what came twice, what waits for
 * something before it. Positions are taken from the newest connection only; a predecessor that still delivers can add
 * messages, and nothing else.
 */

import type { Core } from "./core.js";
import { type Cursor, formatCursor, parseCursor } from "./cursor.js";
import { BadFrame, type Frame, numberOf } from "./messages.js";
import { createTimer } from "./platform.js";

/** Where frames come from: a connection, or pages of history. */
export interface Source {
  /** `<epoch>.<fork>` that its frames are on. */
  lineId: string;
  /** Named by its welcome. */
  start: Cursor | null;
  /** Parts of snapshots whose position has not been named yet. */
  parts: Sized[];
}

export interface Sized {
  readonly frame: Frame;
  readonly bytes: number;
}

/** Out of order; beyond it what is missing is fetched at once. */
const HELD_FRAMES = 256;

/** `hole`: something before it is missing. `past`: it came already, or is of another stretch of the log than we are on. */
type Offer = "next" | "past" | "hole";

export function createReception(core: Core) {
  const { platform, settings } = core;
  let _current: Source | null = null;
  let _held: Sized[] = [];
  const _timer = createTimer(platform);
  let _isFetching = false;
  /** Where we connected again for the same hole. */
  let _askedAgainAt = "";
  const self = {
    /** After the last message received; null before the first welcome. */
    place: null as Cursor | null,

    /** As text. */
    get cursor(): string | null {
      return self.place && formatCursor(self.place);
    },

    /** From here on it is the one that names positions. A long poll welcomes again and again. */
    welcome(source: Source, frame: Frame): void {
      const start = parseCursor(frame.payload.cursor);
      source.lineId = start.lineId;
      source.start = start;
      _current = source;
      // Later on gap, forked and snapshot say what becomes of our place.
      if (!self.place && frame.payload.resumed !== "gap") self.place = start;
    },

    take(source: Source, sized: Sized): void {
      const { isControl, kind, payload } = sized.frame;
      if (!isControl) return _message(source, sized);
      const cursor = kind === "snapshot" && payload.cursor === undefined ? null : parseCursor(payload.cursor);
      if (cursor) source.lineId = cursor.lineId;
      if (source !== _current) return;
      if (kind === "snapshot") source.parts.push(sized);
      else if (cursor && kind === "gap") _gap(source, sized, cursor);
      else if (cursor) _forked(cursor, numberOf(payload.base) ?? cursor.seq);
      if (!cursor || kind !== "snapshot") return;
      if (_follow(cursor)) _flush(source, cursor);
      source.parts = [];
      _forgetHeld();
    },

    /** A page of history for a hole. */
    takeHistory(source: Source, sized: Sized): void {
      const current = _current;
      _current = source;
      self.take(source, sized);
      _current = current;
    },

    stop: _timer.stop,
  };

  // ---- messages ----------------------------------------------------------------------------------------------------
  function _message(source: Source, sized: Sized): void {
    _flush(source, null);
    // Neither gap nor fork said what became of what we had.
    if (source === _current && source.lineId !== self.place?.lineId && source.start) _moveTo(source.start);
    const offer = _offer(sized, source.lineId);
    if (offer === "hole") _hold(sized);
    if (offer === "next") _releaseHeld();
  }

  /** Judge a message of a connection that is on that line, and hand it on when it is the next. */
  function _offer({ frame, bytes }: Sized, lineId: string): Offer {
    const { place } = self;
    const { seq, firstSeq } = frame;
    if (seq === null || firstSeq === null || place === null) throw new BadFrame("a message too early");
    if (lineId !== place.lineId || seq <= place.seq) return "past";
    if (firstSeq > place.seq + 1) return "hole";
    self.place = { lineId, seq };
    // What a merged frame repeats is not counted again.
    core.intake.put({ ...frame, firstSeq: place.seq + 1 }, self.place, bytes);
    return "next";
  }

  // ---- positions ---------------------------------------------------------------------------------------------------
  /** False when we are there or beyond. */
  function _follow(cursor: Cursor): boolean {
    const { place } = self;
    if (place?.lineId === cursor.lineId && cursor.seq <= place.seq) return false;
    self.place = cursor;
    return true;
  }

  /** Texts are rebuilt when all of them are there: what we have already is not cut by a part. */
  function _flush(source: Source, cursor: Cursor | null): void {
    const { parts } = source;
    source.parts = [];
    parts.forEach(({ frame, bytes }, i) => {
      core.intake.put(frame, i === parts.length - 1 ? cursor : null, bytes);
    });
  }

  function _gap(source: Source, { frame, bytes }: Sized, cursor: Cursor): void {
    _flush(source, null);
    if (frame.payload.reason === "ahead") self.place = cursor;
    else if (!_follow(cursor)) return;
    core.intake.put(frame, cursor, bytes);
    _forgetHeld();
  }

  /** Up to `base` the new stretch is the old one: nothing of that is taken again. */
  function _forked({ lineId, seq }: Cursor, base: number): void {
    const { place } = self;
    if (place?.lineId !== lineId) _moveTo({ lineId, seq: place && place.seq <= base ? Math.max(place.seq, seq) : seq });
  }

  function _moveTo(cursor: Cursor): void {
    self.place = cursor;
    _forgetHeld();
  }

  // ---- holes -------------------------------------------------------------------------------------------------------
  function _hold(sized: Sized): void {
    if (_held.length >= HELD_FRAMES) return void _fill();
    _held.push(sized);
    _timer.start(settings.timing.reorder, _fill);
  }

  function _releaseHeld(): void {
    const waiting = _held.sort((a, b) => (a.frame.firstSeq ?? 0) - (b.frame.firstSeq ?? 0));
    _held = waiting.filter((sized) => _offer(sized, self.place?.lineId ?? "") === "hole");
    if (_held.length === 0) self.stop();
  }

  function _forgetHeld(): void {
    _held = [];
    self.stop();
  }

  /** Nothing filled the hole in time: fetch it, else connect again, else say that it is lost and go on. */
  async function _fill(): Promise<void> {
    const { conductor, recovery } = core;
    const since = self.cursor;
    if (_isFetching || !_held.length || !since) return;
    _isFetching = true;
    await recovery.missing(since);
    _isFetching = false;
    _releaseHeld();
    const frame = _held[0]?.frame;
    if (!frame || !self.place) return;
    if (self.cursor !== since) return void _fill();
    if (_askedAgainAt !== since) {
      _askedAgainAt = since;
      _forgetHeld();
      return conductor.reconnect("a message is missing");
    }
    const { lineId, seq } = self.place;
    const last = (frame.firstSeq ?? 1) - 1;
    const payload = { kind: "gap", first: seq + 1, last, reason: "missing" };
    self.place = { lineId, seq: last };
    core.intake.put({ ...frame, isControl: true, kind: "gap", run: null, payload }, self.place, 0);
    _releaseHeld();
  }
  return self;
}

export type Reception = ReturnType<typeof createReception>;
