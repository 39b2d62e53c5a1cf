/**
 * The text of each run as this client has it: put together from deltas, cut after lost writes. Says what is new to show;
 * never shows a byte twice. Offsets are UTF-8 bytes, as on the wire.
 */

import type { Frame, JsonObject } from "./messages.js";
import { numberOf, objectOf, textOf } from "./messages.js";

const encoder = new TextEncoder();
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
export class RunText {
  /** Bytes of the run's text up to here, counted from its start. */
  length = 0;
  /** The log lost writes and did not say how much of this text: it goes on at the next `at`. */
  isCutByNext = false;
  private _start = 0;
  private _kept = "";
  /** Bytes of `kept`. */
  private _keptBytes = 0;
  /** `kept` in UTF-8, while it stays as it is: what is sent again is compared piece by piece. */
  private _encoded: Uint8Array | null = null;

  /** Known from its first byte on without a hole. */
  get isWhole(): boolean {
    return this._start === 0;
  }

  /** What of it is new; an overlap with what is there is sliced by bytes. */
  add(text: string, at: number | null): Added {
    if (at !== null) {
      if (this.isCutByNext) this.cut(at);
      this.isCutByNext = false;
      if (at > this.length) this._beginAt(at);
    }
    if ((at === null || at === this.length) && this.length - this._start === this._keptBytes) {
      this._kept += text;
      this._encoded = null;
      this._grow(utf8Length(text));
      return { text, isRewritten: false };
    }
    return this._addOver(encoder.encode(text), at ?? this.length);
  }

  /** The log goes on from here: what lies beyond is gone from it. */
  cut(length: number): void {
    if (length < this._start) this._beginAt(length);
    this.length = Math.min(this.length, length);
  }

  restart(): void {
    if (this.length || this._start) this._beginAt(0);
  }

  value(): string {
    const bytes = this.length - this._start;
    return bytes === this._keptBytes ? this._kept : decoder.decode(encoder.encode(this._kept).subarray(0, bytes));
  }

  /** The whole text as fetched again. */
  replace(value: string): void {
    this._beginAt(0);
    this.add(value, 0);
  }

  /** What came before our part, from a text that has it. False: that one has a hole there, too. */
  prepend(whole: RunText): boolean {
    const before = encoder.encode(whole.value()).subarray(0, this._start);
    if (!whole.isWhole || before.length < this._start) return false;
    this._kept = decoder.decode(before) + this._kept;
    this._encoded = null;
    this._keptBytes += this._start;
    this._start = 0;
    return true;
  }

  private _addOver(data: Uint8Array, at: number): Added {
    const fresh = data.subarray(Math.max(0, this.length - at));
    const here = this.length - this._start;
    this._encoded ??= encoder.encode(this._kept);
    const known = this._encoded;
    const shown = known.subarray(here, here + fresh.length);
    const isRewritten = fresh.length > 0 && !shown.every((byte, i) => byte === fresh[i]);
    const isLonger = shown.length < fresh.length;
    if (isRewritten || isLonger) {
      this._kept = decoder.decode(known.subarray(0, here)) + decoder.decode(fresh);
      this._keptBytes = here + fresh.length;
      this._encoded = null;
    }
    const added = isRewritten ? fresh : fresh.subarray(shown.length);
    this.length += fresh.length;
    this._bound();
    return { text: decoder.decode(added), isRewritten };
  }

  private _grow(bytes: number): void {
    this.length += bytes;
    this._keptBytes += bytes;
    this._bound();
  }

  private _bound(): void {
    if (this._keptBytes > MAX_TEXT_BYTES) this._beginAt(this.length);
  }

  private _beginAt(at: number): void {
    this._start = this.length = at;
    this._kept = "";
    this._encoded = null;
    this._keptBytes = 0;
  }
}

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
export class RunTexts {
  readonly runs = new Map<string, Run>();

  /** Take one frame at its place; null when it is about no run's text. */
  apply(frame: Frame): Change | null {
    const { run, kind, payload } = frame;
    if (frame.isControl && kind === "gap") this._gap(payload);
    if (run === null) return null;
    if (frame.isControl) return kind === "snapshot" ? this._rebuild(run, payload) : null;
    const track = trackOf(kind);
    const change: Change = { run, track, added: NOTHING, begins: false, end: null };
    if (track !== null) {
      return { ...change, added: this._of(run)[track].add(textOf(payload.text), numberOf(payload.at)) };
    }
    if (kind === "run_start") {
      this._begin(this._of(run));
      return { ...change, begins: true };
    }
    if (kind === "run_end") {
      this._end(run, payload);
      return { ...change, end: payload };
    }
    if (kind === "cut") this._of(run).isCut = true;
    return null;
  }

  private _begin(known: Run): void {
    known.text.restart();
    known.thinking.restart();
    known.reason = null;
    known.hasGap = known.isCut = known.isHealed = known.isFilled = false;
  }

  /** Part of a text from its beginning on: what is known of it is not shown again. */
  private _rebuild(run: string, payload: JsonObject): Change {
    const known = this._of(run);
    const track: Track = payload.track === "thinking" ? "thinking" : "text";
    const begins = payload.start !== undefined;
    const isCut = payload.cut === true;
    if (begins) {
      known.hasGap = false;
      known.reason = null;
    }
    const at = numberOf(payload.at);
    if (at === 0 && !isCut) known[track].cut(0);
    const added = known[track].add(textOf(payload.text), at);
    if (payload.partial === true) known.hasGap = true;
    if (isCut) known.isCut = true;
    const end = payload.end === undefined ? null : objectOf(payload.end);
    if (end) this._end(run, end);
    return { run, track, added, begins, end };
  }

  private _of(name: string): Run {
    let known = this.runs.get(name);
    if (known === undefined) {
      known = {
        text: new RunText(),
        thinking: new RunText(),
        reason: null,
        hasGap: true,
        isCut: false,
        isHealed: false,
        isFilled: false,
      };
      this.runs.set(name, known);
      this._forgetOld();
    }
    return known;
  }

  private _end(name: string, payload: JsonObject): void {
    const known = this._of(name);
    known.reason = textOf(payload.reason) || "complete";
    this.runs.delete(name);
    this.runs.set(name, known);
    this._forgetOld();
  }

  /** Another life or stretch of the log names what is still true; an eviction only leaves holes. */
  private _gap(payload: JsonObject): void {
    const reason = payload.reason;
    if (reason === "evicted") {
      for (const run of this.runs.values()) run.hasGap = true;
      return;
    }
    const isKnown = reason === "epoch_changed";
    const lengths = isKnown ? objectOf(payload.runs) : {};
    const thinking = isKnown && payload.thinking !== undefined ? objectOf(payload.thinking) : null;
    for (const [name, run] of this.runs) {
      const length = lengths[name];
      run.text.cut(numberOf(length) ?? 0);
      if (thinking !== null) run.thinking.cut(numberOf(thinking[name]) ?? 0);
      else run.thinking.isCutByNext = length !== undefined;
      if (length === undefined) {
        run.thinking.cut(0);
        run.reason = null;
        run.hasGap = true;
      }
    }
  }

  private _forgetOld(): void {
    const ended = [...this.runs].filter(([, run]) => run.reason !== null).map(([name]) => name);
    for (const name of ended.slice(0, Math.max(0, ended.length - ENDED_RUNS_KEPT))) this.runs.delete(name);
    for (const name of this.runs.keys()) {
      if (this.runs.size <= RUNS_KEPT) break;
      this.runs.delete(name);
    }
  }
}
