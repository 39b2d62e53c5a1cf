/**
 * What the user says to the agent: bounded, in order, exactly once over reconnects, channels and reloads. Numbers are the
 * client's own, contiguous from what the gateway accepted last; a number is sent again until it is settled, and a
 * repeat is accepted. An input is kept with its number before it is sent.
 */

import { ConflictError, QueueFullError, type RelayError, TooLargeError } from "./errors.js";
import type { InputEvent } from "./events.js";
import { type JsonObject, numberOf, objectOf, textOf } from "./messages.js";
import type { Platform } from "./platform.js";
import { refusalOf } from "./refusal.js";
import type { SavedInput } from "./store.js";
import { utf8Length } from "./texts.js";
import type { Answered } from "./uplink.js";

/** Sent and not settled. */
const WINDOW = 16;
/** After a refusal that passes, when it does not say how long it takes. */
const RETRY_MS = 500;
const DEFAULT_LIMIT_BYTES = 64 * 1024;

interface Entry {
  seq: number | null;
  readonly payload: JsonObject;
  readonly bytes: number;
  isSent: boolean;
  resolve(value: JsonObject): void;
  reject(error: RelayError): void;
}

export interface InputSink {
  /** Hand it to the connection; false when there is none. Its answer comes by `accepted`, `refused` or `answered`. */
  send(seq: number, payload: JsonObject, answered: Answered): boolean;
  /** Else one at a time: its answer is waited for. */
  isDuplex(): boolean;
  keep(inputs: readonly SavedInput[]): Promise<void>;
  status(event: InputEvent): void;
}

export class InputQueue {
  private _entries: Entry[] = [];
  private _bytes = 0;
  private _limitBytes = DEFAULT_LIMIT_BYTES;
  /** What the gateway accepted last; null before the first welcome. */
  private _accepted: number | null = null;
  private _isOnline = false;
  private _isPumping = false;
  private _isAsked = false;
  private _cancelPause: (() => void) | null = null;
  private _closed: RelayError | null = null;

  constructor(
    private readonly _platform: Platform,
    private readonly _maxItems: number,
    private readonly _maxBytes: number,
    private readonly _sink: InputSink,
  ) {}

  get length(): number {
    return this._entries.length;
  }

  /** From an earlier life of this page: sent again under the same numbers. */
  restore(inputs: readonly SavedInput[]): void {
    const restored = inputs.map(({ seq, payload }) => entryOf(payload, seq));
    this._entries = [...restored, ...this._entries];
    this._bytes += restored.reduce((sum, entry) => sum + entry.bytes, 0);
  }

  /** Settles when the gateway has it for good, or never will. */
  add(payload: JsonObject): Promise<JsonObject> {
    const entry = entryOf(payload);
    const problem = this._problemOf(entry);
    if (problem !== null) return Promise.reject(problem);
    const promise = new Promise<JsonObject>((resolve, reject) => Object.assign(entry, { resolve, reject }));
    promise.catch(none); // who does not wait for it learns of a failure by the event
    this._entries.push(entry);
    this._bytes += entry.bytes;
    this._tell(entry, "queued");
    void this._pump();
    return promise;
  }

  /** A connection is live. Whatever is not settled is sent again. */
  welcome(inputSeq: number | null, limitBytes: number | null): void {
    if (inputSeq !== null) this._accepted = Math.max(inputSeq, 0);
    if (limitBytes !== null) this._limitBytes = limitBytes;
    this._isOnline = true;
    for (const entry of this._entries) entry.isSent = false;
    this._unpause();
    void this._pump();
  }

  lost(): void {
    this._isOnline = false;
  }

  accepted(payload: JsonObject): void {
    const seq = numberOf(payload.seq);
    const entry = this._entries.find((known) => known.seq === seq);
    if (entry === undefined || seq === null) return;
    this._accepted = Math.max(this._accepted ?? 0, seq);
    this._remove(entry, "accepted");
    entry.resolve(payload);
    void this._pump();
  }

  /** The gateway's `error` about an input. */
  refused(payload: JsonObject): void {
    const seq = numberOf(payload.seq) ?? numberOf(objectOf(payload.details).seq);
    const entry = this._entries.find((known) => known.seq === seq);
    if (entry === undefined) return;
    const code = textOf(payload.code);
    const expected = numberOf(payload.expected) ?? numberOf(objectOf(payload.details).expected);
    if (code === "expected") return this._goOnFrom(expected ?? 1);
    if (payload.retryable === true || code === "fenced") {
      return this._sendAgainFrom(entry, numberOf(payload.after_ms) ?? RETRY_MS);
    }
    if (code === "conflict") {
      this._fail(entry, new ConflictError(textOf(payload.message)));
      this._renumber(expected ?? (seq ?? 0) + 1);
    } else {
      this._fail(entry, refusalOf(code, textOf(payload.message) || code));
      this._renumber(entry.seq ?? 1);
    }
  }

  /** Over HTTP. No answer: the same again. */
  private _answered(seq: number, answer: JsonObject | null, isAccepted: boolean, afterMs: number | null): void {
    const told = answer ?? { retryable: true, after_ms: afterMs ?? RETRY_MS };
    if (isAccepted) this.accepted({ ...told, seq });
    else this.refused({ ...told, seq });
  }

  /** The connection was closed for a message that was too big: the biggest of those that were sent. False: none was. */
  tooBig(): boolean {
    const sent = this._entries.filter((entry) => entry.isSent).sort((a, b) => b.bytes - a.bytes);
    const entry = sent[0];
    if (entry === undefined) return false;
    this._fail(entry, new TooLargeError("closed for its size"));
    this._renumber(entry.seq ?? 1);
    return true;
  }

  /** What waits stays in the store, and is sent when the session is opened again from there. */
  close(error: RelayError): void {
    this._closed = error;
    this._unpause();
    for (const entry of this._entries) {
      entry.reject(error);
    }
  }

  private _problemOf(entry: Entry): RelayError | null {
    if (this._closed !== null) return this._closed;
    if (entry.bytes > this._limitBytes) {
      return new TooLargeError(`${entry.bytes} bytes, at most ${this._limitBytes} are allowed`);
    }
    if (this._entries.length >= this._maxItems || this._bytes + entry.bytes > this._maxBytes) {
      return new QueueFullError("too many wait");
    }
    return null;
  }

  /** Number, keep, send: one after the other, as far as the window goes. */
  private async _pump(): Promise<void> {
    this._isAsked = true;
    if (this._isPumping) return;
    this._isPumping = true;
    while (this._isAsked && this._closed === null) {
      this._isAsked = false;
      this._number();
      await this._sink.keep(this._entries.map(({ seq, payload }) => ({ seq, payload })));
      this._sendDue();
    }
    this._isPumping = false;
  }

  private _number(): void {
    if (this._accepted === null) return;
    let next = this._accepted + 1;
    for (const entry of this._entries) {
      entry.seq ??= next;
      next = Math.max(next, entry.seq + 1);
    }
  }

  private _sendDue(): void {
    if (!this._isOnline || this._closed !== null || this._cancelPause !== null) return;
    for (const entry of this._entries.slice(0, this._sink.isDuplex() ? WINDOW : 1)) {
      if (entry.isSent || entry.seq === null) continue;
      if (!this._sink.send(entry.seq, entry.payload, this._answered.bind(this, entry.seq))) return;
      entry.isSent = true;
      this._tell(entry, "sent");
    }
  }

  private _sendAgainFrom(entry: Entry, afterMs: number): void {
    for (const later of this._entries.slice(this._entries.indexOf(entry))) later.isSent = false;
    this._unpause();
    this._cancelPause = this._platform.after(afterMs, () => {
      this._cancelPause = null;
      void this._pump();
    });
  }

  /** The gateway says which number comes next: one of ours is sent again, else all get new ones. */
  private _goOnFrom(expected: number): void {
    const entry = this._entries.find((known) => known.seq === expected);
    if (entry !== undefined) {
      if (this._cancelPause === null) this._sendAgainFrom(entry, RETRY_MS / 2);
      return;
    }
    this._renumber(expected);
  }

  /** None of those that are left was accepted: contiguous numbers make sure of it. */
  private _renumber(from: number): void {
    this._accepted = from - 1;
    for (const entry of this._entries) {
      entry.seq = null;
      entry.isSent = false;
    }
    void this._pump();
  }

  private _fail(entry: Entry, error: RelayError): void {
    this._remove(entry, "failed");
    entry.reject(error);
  }

  private _remove(entry: Entry, status: "accepted" | "failed"): void {
    this._entries.splice(this._entries.indexOf(entry), 1);
    this._bytes -= entry.bytes;
    this._tell(entry, status);
  }

  private _tell(entry: Entry, status: InputEvent["status"]): void {
    this._sink.status({ seq: entry.seq, status, payload: entry.payload });
  }

  private _unpause(): void {
    this._cancelPause?.();
    this._cancelPause = null;
  }
}

const none = (): void => undefined;

function entryOf(payload: JsonObject, seq: number | null = null): Entry {
  return { seq, payload, bytes: utf8Length(JSON.stringify(payload)), isSent: false, resolve: none, reject: none };
}
