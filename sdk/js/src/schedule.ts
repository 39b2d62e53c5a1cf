/** When the next attempt is due: jittered waits, slots that servers gave, replacements and climbs. */

import { Backoff, spread } from "./backoff.js";
import type { Platform } from "./platform.js";

/** After "online" or "visible": at once, but not all devices of a network in the same moment. */
const SOON_MS = 500;
/** Between two looks whether a browser that says so is right. */
const OFFLINE_MS = 30_000;

export class Schedule {
  private readonly _backoff: Backoff;
  private _notBefore = 0;
  private _replaceAt = Infinity;
  private _slotAt = 0;
  private _climbAt = Infinity;

  constructor(
    private readonly _platform: Platform,
    baseMs: number,
    maxMs: number,
  ) {
    this._backoff = new Backoff(baseMs, maxMs, _platform.random);
  }

  /** Failures since a connection was stable. */
  get failures(): number {
    return this._backoff.attempt;
  }

  /** A server named a time that is still to come. */
  get hasSlot(): boolean {
    return this._slotAt > this._platform.now();
  }

  /** The live connection is to go: an attempt beside it is no mere climb. */
  get isReplacing(): boolean {
    return this._replaceAt <= this._platform.now();
  }

  /** Beside a live connection. Infinity: never. */
  dueBeside(): number {
    return Math.min(Math.max(this._replaceAt, this._notBefore), this._climbAt);
  }

  /** Without one. */
  dueAlone(isOffline: boolean): number {
    return this._notBefore + (isOffline ? OFFLINE_MS : 0);
  }

  /** Nothing is live, and something says that an attempt may succeed now. */
  soon(): void {
    this._notBefore = Math.min(this._notBefore, this._platform.now() + SOON_MS * this._platform.random());
  }

  replaceNow(): void {
    this._replaceAt = this._platform.now();
  }

  slot(afterMs: number, isReplaced: boolean): void {
    this._slotAt = this._platform.now() + spread(afterMs, this._platform.random);
    if (isReplaced) this._replaceAt = this._slotAt;
  }

  climb(afterMs: number): void {
    this._climbAt = this._platform.now() + afterMs;
  }

  welcomed(): void {
    this._replaceAt = Infinity;
    this._slotAt = 0;
  }

  lost(): void {
    this._replaceAt = Infinity;
  }

  stable(): void {
    this._backoff.reset();
  }

  /** The next attempt waits: for its slot, or else with full jitter; never less than `afterMs`. */
  wait(afterMs: number): void {
    const now = this._platform.now();
    const slotMs = this.hasSlot ? this._slotAt - now : -1;
    this._slotAt = 0;
    this._notBefore = now + (slotMs >= afterMs ? slotMs : this._backoff.nextDelayMs(afterMs));
  }
}
