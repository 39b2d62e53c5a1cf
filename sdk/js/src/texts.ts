/**
 * The text of each run as this client has it: put together from deltas, cut after lost writes. Says what is new to show;
 * never shows a byte twice. Offsets are UTF-8 bytes, as on the wire.
 */

import type { Frame, JsonObject } from "./messages.js";
import { numberOf, objectOf, textOf } from "./messages.js";

export const encoder = new TextEncoder();
/** A byte-order mark is text like any other. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Of one text; of what is longer only the end is kept, and its digest cannot be compared. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
/** Ended runs are kept for a while: lost writes may take back the end of one. */
const ENDED_RUNS_KEPT = 16;
const RUNS_KEPT = 1_000;

const TRACKS: Readonly<Record<string, Track>> = { delta: "text", code_block: "text", thinking: "thinking" };

export type Track = "text" | "thinking";

/** The track that a kind's text belongs to; null for kinds that have none. */
export const trackOf = (kind: string): Track | null => TRACKS[kind] ?? null;

export const utf8Length = (text: string): number => encoder.encode(text).length;

export interface Added {
  readonly text: string;
  readonly isRewritten: boolean;
}

/**
 * One text (answer or reasoning) of one run. After a cut the bytes beyond it stay as shown: a producer that sends the
 * same again adds nothing to the screen.
 */
export function createRunText() {
  let _start = 0;
  let _kept = "";
  /** Bytes of `kept`. */
  let _keptBytes = 0;
  /** `kept` in UTF-8, while it stays as it is: what is sent again is compared piece by piece. */
  let _encoded: Uint8Array | null = null;
  const self = {
    /** Bytes of the run's text up to here, counted from its start. */
    length: 0,
    /** The log lost writes and did not say how much of this text: it goes on at the next `at`. */
    isCutByNext: false,

    /** Known from its first byte on without a hole. */
    get isWhole(): boolean {
      return _start === 0;
    },

    /** What of it is new; an overlap with what is there is sliced by bytes. */
    add(text: string, at: number | null): Added {
      if (at !== null) {
        if (self.isCutByNext) self.cut(at);
        self.isCutByNext = false;
        if (at > self.length) _beginAt(at);
      }
      if ((at === null || at === self.length) && self.length - _start === _keptBytes) {
        const bytes = utf8Length(text);
        _keep(_kept + text, _keptBytes + bytes);
        _grow(bytes);
        return { text, isRewritten: false };
      }
      return _addOver(encoder.encode(text), at ?? self.length);
    },

    /** The log goes on from here: what lies beyond is gone from it. */
    cut(length: number): void {
      if (length < _start) _beginAt(length);
      self.length = Math.min(self.length, length);
    },

    restart(): void {
      if (self.length || _start) _beginAt(0);
    },

    value(): string {
      const bytes = self.length - _start;
      return bytes === _keptBytes ? _kept : decoder.decode(encoder.encode(_kept).subarray(0, bytes));
    },

    /** The whole text as fetched again. */
    replace(value: string): void {
      _beginAt(0);
      self.add(value, 0);
    },

    /** What came before our part, from a text that has it. False: that one has a hole there, too. */
    prepend(whole: { readonly isWhole: boolean; value(): string }): boolean {
      const before = encoder.encode(whole.value()).subarray(0, _start);
      if (!whole.isWhole || before.length < _start) return false;
      _keep(decoder.decode(before) + _kept, _keptBytes + _start);
      _start = 0;
      return true;
    },
  };

  function _addOver(data: Uint8Array, at: number): Added {
    const fresh = data.subarray(Math.max(0, self.length - at));
    const here = self.length - _start;
    _encoded ??= encoder.encode(_kept);
    const known = _encoded;
    const shown = known.subarray(here, here + fresh.length);
    const isRewritten = fresh.length > 0 && !shown.every((byte, i) => byte === fresh[i]);
    if (isRewritten || shown.length < fresh.length) {
      _keep(decoder.decode(known.subarray(0, here)) + decoder.decode(fresh), here + fresh.length);
    }
    _grow(fresh.length);
    return { text: decoder.decode(isRewritten ? fresh : fresh.subarray(shown.length)), isRewritten };
  }

  function _grow(bytes: number): void {
    self.length += bytes;
    if (_keptBytes > MAX_TEXT_BYTES) _beginAt(self.length);
  }

  function _keep(kept: string, bytes: number): void {
    _kept = kept;
    _keptBytes = bytes;
    _encoded = null;
  }

  function _beginAt(at: number): void {
    _start = self.length = at;
    _keep("", 0);
  }
  return self;
}

export type RunText = ReturnType<typeof createRunText>;

export interface Run {
  readonly text: RunText;
  readonly thinking: RunText;
  /** Of its end; null while it is open. */
  reason: string | null;
  /** Some of it may never have come: until `run_start` is seen, and after a gap. Then a difference proves nothing. */
  hasGap: boolean;
  /** We interrupted it: the rest of its text is not for us. */
  isCut: boolean;
  /** Its text was fetched again once, or is about to be. */
  isHealed: boolean;
  /** The same for its beginning. */
  isFilled: boolean;
}

/** A run of which only that is known, that it is there. */
const FRESH = { reason: null, hasGap: true, isCut: false, isHealed: false, isFilled: false };

export interface Change {
  readonly run: string;
  readonly track: Track | null;
  readonly added: Added;
  readonly begins: boolean;
  /** The payload of its `run_end`. */
  readonly end: JsonObject | null;
}

const NOTHING: Added = { text: "", isRewritten: false };

/** All runs of one session as one reader sees them. */
export function createRunTexts() {
  const self = {
    runs: new Map<string, Run>(),

    /**
     * Take one frame at its place; null when it is about no run's text. A snapshot is a part of a text from its beginning
     * on, and may say what else is true of its run: what is known of it is not shown again.
     */
    apply({ run, kind, payload, isControl }: Frame): Change | null {
      if (isControl && kind === "gap") _gap(payload);
      const isPart = isControl && kind === "snapshot";
      if (run === null || (isControl && !isPart)) return null;
      const { start, text, cut, partial } = payload;
      const at = numberOf(payload.at);
      const begins = isPart ? start !== undefined : kind === "run_start";
      const end = isPart ? payload.end && objectOf(payload.end) : kind === "run_end" && payload;
      const isCut = isPart ? cut === true : kind === "cut";
      const track = isPart ? (payload.track === "thinking" ? "thinking" : "text") : trackOf(kind);
      if (!begins && !end && !isCut && !track) return null;
      const known = _of(run);
      if (begins) {
        Object.assign(known, isPart ? { reason: null, hasGap: false } : { ...FRESH, hasGap: false });
        if (!isPart) known.text.restart();
        if (!isPart) known.thinking.restart();
      }
      if (isPart && at === 0 && !isCut && track) known[track].cut(0);
      const added = track ? known[track].add(textOf(text), at) : NOTHING;
      if (isPart && partial === true) known.hasGap = true;
      if (isCut) known.isCut = true;
      if (end) _end(run, known, end);
      return { run, track, added, begins, end: end || null };
    },
  };

  function _of(name: string): Run {
    let known = self.runs.get(name);
    if (!known) {
      known = { text: createRunText(), thinking: createRunText(), ...FRESH };
      self.runs.set(name, known);
      _forgetOld();
    }
    return known;
  }

  function _end(name: string, known: Run, { reason }: JsonObject): void {
    known.reason = textOf(reason) || "complete";
    self.runs.delete(name);
    self.runs.set(name, known);
    _forgetOld();
  }

  /** Another life or stretch of the log names what is still true; an eviction only leaves holes. */
  function _gap(payload: JsonObject): void {
    const reason = payload.reason;
    if (reason === "evicted") {
      for (const run of self.runs.values()) run.hasGap = true;
      return;
    }
    const isKnown = reason === "epoch_changed";
    const lengths = isKnown ? objectOf(payload.runs) : {};
    const thinking = isKnown && payload.thinking !== undefined ? objectOf(payload.thinking) : null;
    for (const [name, run] of self.runs) {
      const length = lengths[name];
      run.text.cut(numberOf(length) ?? 0);
      if (thinking) run.thinking.cut(numberOf(thinking[name]) ?? 0);
      else run.thinking.isCutByNext = length !== undefined;
      if (length === undefined) {
        run.thinking.cut(0);
        run.reason = null;
        run.hasGap = true;
      }
    }
  }

  function _forgetOld(): void {
    const ended = [...self.runs].filter(([, { reason }]) => reason !== null);
    for (const [name] of ended.slice(0, -ENDED_RUNS_KEPT)) self.runs.delete(name);
    for (const name of self.runs.keys()) if (self.runs.size > RUNS_KEPT) self.runs.delete(name);
  }
  return self;
}

export type RunTexts = ReturnType<typeof createRunTexts>;
