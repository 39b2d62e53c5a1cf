/**
 * Interrupt, pause, resume, cancel, answer: each settled by `accepted`. What is not settled is said again on the next
 * connection, since all of them are idempotent.
 */

import { QueueFullError, type RelayError } from "./errors.js";
import { type JsonObject, numberOf, textOf } from "./messages.js";
import type { Platform } from "./platform.js";
import { refusalOf } from "./refusal.js";
import type { Answered } from "./uplink.js";

const MAX_PENDING = 64;
/** After a refusal that passes, when it does not say how long it takes. */
const RETRY_MS = 500;
const ID_BYTES = 8;

interface Pending {
  readonly payload: JsonObject;
  resolve(accepted: JsonObject): void;
  reject(error: RelayError): void;
}

/** Hand it to the connection, if there is one. Its answer comes by `settle`, or by `answered`. */
export type SendControl = (payload: JsonObject, answered: Answered) => void;

export class Requests {
  isPaused = false;
  private readonly _pending = new Map<string, Pending>();
  private readonly _timers = new Set<() => void>();
  private _closed: RelayError | null = null;
  private _goOn: () => void = () => undefined;

  constructor(
    private readonly _platform: Platform,
    private readonly _send: SendControl,
  ) {}

  ask(kind: string, fields: JsonObject): Promise<JsonObject> {
    if (kind === "pause" || kind === "resume") this.isPaused = kind === "pause";
    if (kind === "resume") this._goOn();
    if (this._closed !== null) return Promise.reject(this._closed);
    if (this._pending.size >= MAX_PENDING) return Promise.reject(new QueueFullError("too many wait"));
    const id = this._platform.randomHex(ID_BYTES);
    const promise = new Promise<JsonObject>((resolve, reject) => {
      this._pending.set(id, { payload: { kind, ...fields, id }, resolve, reject });
    });
    promise.catch(() => undefined); // nobody has to wait for it
    this._say(id);
    return promise;
  }

  /** Until nothing is paused; for what is paused by not asking for more. */
  async unpaused(): Promise<void> {
    if (!this.isPaused || this._closed !== null) return;
    await new Promise<void>((resolve) => {
      const before = this._goOn;
      this._goOn = () => {
        before();
        resolve();
      };
    });
  }

  /** A connection is live: everything that is open is said again. */
  welcome(): void {
    const kinds = [...this._pending.values()].map(({ payload }) => payload.kind);
    if (this.isPaused && !kinds.includes("pause") && !kinds.includes("resume")) {
      this._send({ kind: "pause" }, () => undefined);
    }
    for (const id of this._pending.keys()) this._say(id);
  }

  /** An `accepted` or `error` of the gateway. One that answers nothing of ours changes nothing. */
  settle(id: string, payload: JsonObject, isAccepted: boolean): void {
    const request = this._pending.get(id);
    if (request === undefined) return;
    const passes = payload.retryable === true || payload.code === "fenced"; // a newer connection of ours writes
    if (!isAccepted && passes) return this._again(id, numberOf(payload.after_ms));
    this._pending.delete(id);
    if (isAccepted) request.resolve(payload);
    else request.reject(refusalOf(textOf(payload.code), textOf(payload.message) || "refused"));
  }

  /** Say it once more, soon. */
  private _again(id: string, afterMs: number | null): void {
    const cancel = this._platform.after(afterMs ?? RETRY_MS, () => {
      this._timers.delete(cancel);
      this._say(id);
    });
    this._timers.add(cancel);
  }

  close(error: RelayError): void {
    this._closed = error;
    this._goOn();
    for (const cancel of this._timers) cancel();
    for (const { reject } of this._pending.values()) reject(error);
    this._pending.clear();
  }

  private _say(id: string): void {
    const request = this._pending.get(id);
    if (request === undefined || this._closed !== null) return;
    this._send(request.payload, (answer, isAccepted, afterMs) => {
      if (answer === null) this._again(id, afterMs);
      else this.settle(id, answer, isAccepted);
    });
  }
}
