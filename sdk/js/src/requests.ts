/**
 * Interrupt, pause, resume, cancel, answer: each settled by `accepted`. What is not settled is said again on the next
 * connection, since all of them are idempotent.
 */

import type { Core } from "./core.js";
import { QueueFullError, type RelayError } from "./errors.js";
import { type JsonObject, numberOf } from "./messages.js";
import { createGate, createTimer, type Timer } from "./platform.js";
import { passes, RETRY_MS, refusalOf } from "./refusal.js";

const MAX_PENDING = 64;
const ID_BYTES = 8;

interface Pending {
  readonly payload: JsonObject;
  resolve(accepted: JsonObject): void;
  reject(error: RelayError): void;
  /** Until it is said again. */
  readonly pause: Timer;
}

/** `send` hands one to the connection, if there is one. Its answer comes by `settle`. */
export function createRequests({ platform }: Core, send: (payload: JsonObject) => void) {
  let _isPaused = false;
  const _pending = new Map<string, Pending>();
  let _closed: RelayError | null = null;
  const _gate = createGate();
  return {
    ask(kind: string, fields: JsonObject): Promise<JsonObject> {
      if (kind === "pause") _isPaused = true;
      if (kind === "resume") _goOn();
      if (_closed) throw _closed;
      if (_pending.size >= MAX_PENDING) throw new QueueFullError("too many wait");
      const id = platform.randomHex(ID_BYTES);
      return new Promise((resolve, reject) => {
        _pending.set(id, { payload: { kind, ...fields, id }, resolve, reject, pause: createTimer(platform) });
        _say(id);
      });
    },

    /** Until nothing is paused; for what is paused by not asking for more. */
    async unpaused(): Promise<void> {
      if (_isPaused && !_closed) await _gate.wait();
    },

    /** A connection is live: everything that is open is said again. */
    welcome(): void {
      const kinds = [..._pending.values()].map(({ payload }) => payload.kind);
      if (_isPaused && !kinds.includes("pause") && !kinds.includes("resume")) send({ kind: "pause" });
      for (const id of _pending.keys()) _say(id);
    },

    /** An `accepted` or `error` of the gateway. One that answers nothing of ours changes nothing. */
    settle(id: string, payload: JsonObject, isAccepted: boolean): void {
      const request = _pending.get(id);
      if (!request) return;
      if (!isAccepted && passes(payload)) {
        return request.pause.start(numberOf(payload.after_ms) ?? RETRY_MS, () => _say(id));
      }
      _pending.delete(id);
      if (isAccepted) request.resolve(payload);
      else request.reject(refusalOf(payload));
    },

    close(error: RelayError): void {
      _closed = error;
      _goOn();
      for (const request of _pending.values()) {
        request.pause.stop();
        request.reject(error);
      }
      _pending.clear();
    },
  };

  function _goOn(): void {
    _isPaused = false;
    _gate.open();
  }

  function _say(id: string): void {
    const request = _pending.get(id);
    if (request) send(request.payload);
  }
}

export type Requests = ReturnType<typeof createRequests>;
