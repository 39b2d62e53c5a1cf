/**
 * What the user says to the agent: bounded, in order, exactly once over reconnects, channels and reloads. Numbers are the
 * client's own, contiguous from what the gateway accepted last; a number is sent again until it is settled, and a
 * repeat is accepted. An input is kept with its number before it is sent.
 */

import type { Core } from "./core.js";
import { QueueFullError, type RelayError, TooLargeError } from "./errors.js";
import type { InputEvent } from "./events.js";
import { type JsonObject, numberOf, objectOf } from "./messages.js";
import { createTimer, none } from "./platform.js";
import { passes, RETRY_MS, refusalOf } from "./refusal.js";
import type { SavedInput } from "./store.js";
import { utf8Length } from "./texts.js";

/** Sent and not settled. */
const WINDOW = 16;
const DEFAULT_LIMIT_BYTES = 64 * 1024;

interface Entry {
  seq: number | null;
  readonly payload: JsonObject;
  readonly bytes: number;
  isSent: boolean;
  resolve(value: JsonObject): void;
  reject(error: RelayError): void;
}

/** `send` hands one to the connection, and says whether there is one. Its answer comes by `settle`. */
export function createInputQueue(core: Core, send: (input: JsonObject) => boolean) {
  const { platform, settings, emitter } = core;
  let _entries: Entry[] = [];
  let _limitBytes = DEFAULT_LIMIT_BYTES;
  /** What the gateway accepted last; null before the first welcome. */
  let _accepted: number | null = null;
  let _isRestored = false;
  let _isOnline = false;
  let _isPumping = false;
  let _isAsked = false;
  let _isPaused = false;
  const _pause = createTimer(platform);
  let _closed: RelayError | null = null;
  return {
    get length(): number {
      return _entries.length;
    },

    /** From an earlier life of this page: sent again under the same numbers. Before it, nothing is kept or sent. */
    restore(inputs: readonly SavedInput[]): void {
      _entries = [...inputs.map(entryOf), ..._entries];
      _isRestored = true;
      void _pump();
    },

    /** Settles when the gateway has it for good, or never will. Throws when it cannot wait here. */
    add(payload: JsonObject): Promise<JsonObject> {
      const entry = entryOf({ seq: null, payload });
      const { bytes } = entry;
      if (_closed) throw _closed;
      if (bytes > _limitBytes) throw new TooLargeError(`${bytes} bytes, at most ${_limitBytes}`);
      const waiting = _entries.reduce((sum, other) => sum + other.bytes, bytes);
      if (_entries.length >= settings.queueItems || waiting > settings.queueBytes)
        throw new QueueFullError("too many wait");
      return new Promise((resolve, reject) => {
        _entries.push(Object.assign(entry, { resolve, reject }));
        _tell(entry, "queued");
        void _pump();
      });
    },

    /** A connection is live. Whatever is not settled is sent again. */
    welcome(inputSeq: number | null, limitBytes: number | null): void {
      if (inputSeq !== null) _accepted = Math.max(inputSeq, 0);
      _limitBytes = limitBytes ?? _limitBytes;
      _isOnline = true;
      _sendAgain(_entries);
    },

    lost(): void {
      _isOnline = false;
    },

    /** The gateway's answer about an input. */
    settle(payload: JsonObject, isAccepted: boolean): void {
      const details = objectOf(payload.details);
      const seq = numberOf(payload.seq) ?? numberOf(details.seq) ?? 0;
      const expected = numberOf(payload.expected) ?? numberOf(details.expected);
      const entry = _find(seq);
      if (!entry) return;
      if (isAccepted) {
        _accepted = Math.max(_accepted ?? 0, seq);
        _remove(entry, "accepted");
        entry.resolve(payload);
        void _pump();
      } else if (payload.code === "expected") {
        const next = _find(expected ?? 1);
        if (!next) _renumber(expected ?? 1);
        else if (!_isPaused) _sendAgain(_entries.slice(_entries.indexOf(next)), RETRY_MS / 2);
      } else if (passes(payload)) {
        _sendAgain(_entries.slice(_entries.indexOf(entry)), numberOf(payload.after_ms) ?? RETRY_MS);
      } else {
        _fail(entry, refusalOf(payload), payload.code === "conflict" ? (expected ?? seq + 1) : seq);
      }
    },

    /** The connection was closed for a message that was too big: the biggest of those that were sent. */
    tooBig(): void {
      const [entry] = _entries.filter(({ isSent }) => isSent).sort((a, b) => b.bytes - a.bytes);
      if (entry) _fail(entry, new TooLargeError("closed for its size"), entry.seq ?? 1);
    },

    /** What waits stays in the store, and is sent when the session is opened again from there. */
    close(error: RelayError): void {
      _closed = error;
      _pause.stop();
      for (const entry of _entries) entry.reject(error);
    },
  };

  function _find(seq: number): Entry | undefined {
    return _entries.find((entry) => entry.seq === seq);
  }

  /** Number, keep, send: one after the other, as far as the window goes. */
  async function _pump(): Promise<void> {
    _isAsked = true;
    if (_isPumping || !_isRestored) return;
    _isPumping = true;
    while (_isAsked && !_closed) {
      _isAsked = false;
      _number();
      await core.keeper.keepInputs(_entries.map(({ seq, payload }) => ({ seq, payload })));
      _sendDue();
    }
    _isPumping = false;
  }

  function _number(): void {
    if (_accepted === null) return;
    let last = _accepted;
    for (const entry of _entries) {
      entry.seq ??= last + 1;
      last = Math.max(last, entry.seq);
    }
  }

  function _sendDue(): void {
    if (!_isOnline || _closed || _isPaused) return;
    // Where each has an answer of its own, that is waited for.
    for (const entry of _entries.slice(0, core.conductor.current?.isDuplex ? WINDOW : 1)) {
      const { seq, payload, isSent } = entry;
      if (isSent || seq === null) continue;
      if (!send({ seq, payload })) return;
      entry.isSent = true;
      _tell(entry, "sent");
    }
  }

  /** After so many ms; nothing is sent before. */
  function _sendAgain(entries: readonly Entry[], afterMs = 0): void {
    for (const entry of entries) entry.isSent = false;
    _pause.stop();
    _isPaused = afterMs > 0;
    if (_isPaused) _pause.start(afterMs, () => _sendAgain([]));
    else void _pump();
  }

  /** None of those that are left was accepted: contiguous numbers make sure of it. */
  function _renumber(from: number): void {
    _accepted = from - 1;
    for (const entry of _entries) Object.assign(entry, { seq: null, isSent: false });
    void _pump();
  }

  /** For good. Those behind it are numbered anew, from `from`. */
  function _fail(entry: Entry, error: RelayError, from: number): void {
    _remove(entry, "failed");
    entry.reject(error);
    _renumber(from);
  }

  function _remove(entry: Entry, status: "accepted" | "failed"): void {
    _entries = _entries.filter((other) => other !== entry);
    _tell(entry, status);
  }

  function _tell({ seq, payload }: Entry, status: InputEvent["status"]): void {
    emitter.emit("input", { seq, status, payload });
  }
}

export type InputQueue = ReturnType<typeof createInputQueue>;

function entryOf({ seq, payload }: SavedInput): Entry {
  return { seq, payload, bytes: utf8Length(JSON.stringify(payload)), isSent: false, resolve: none, reject: none };
}
