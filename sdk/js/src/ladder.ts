/**
 * Which way to the gateway is tried: WebSocket, then SSE, then long poll; down by transport failures only. Pure.
 */

import { CHANNELS, type ChannelName } from "./states.js";

const SPREAD = 0.25;

export class Ladder {
  private _rung: number;
  private _failures = 0;
  private _target = 0;

  constructor(
    private readonly _choice: "auto" | ChannelName,
    private readonly _maxFailures: number,
    private readonly _climbAfterMs: number,
    private readonly _random: () => number,
  ) {
    this._rung = _choice === "auto" ? 0 : CHANNELS.indexOf(_choice);
  }

  get channel(): ChannelName {
    return CHANNELS[this._rung] ?? "websocket";
  }

  /** What a climb tries: the best one, then those below it; null at the top, or where the application has chosen. */
  get target(): ChannelName | null {
    return this._choice === "auto" && this._rung > 0 ? (CHANNELS[this._target] ?? null) : null;
  }

  /** A climb failed: when to try the next rung, or all again. */
  missed(): number {
    this._target = (this._target + 1) % Math.max(1, this._rung);
    return this._target > 0 ? 0 : this.climbDelayMs();
  }

  /** The transport failed although somebody is there: where nobody answers at all, nothing is known about the rungs. */
  failed(): void {
    this._failures += 1;
    if (this._choice !== "auto" || this._failures < this._maxFailures) return;
    this._failures = 0;
    this._rung = (this._rung + 1) % CHANNELS.length; // nothing works here: begin anew
  }

  /** The connection was heard: failures are no longer in a row. */
  proved(): void {
    this._failures = 0;
  }

  /** By make before break: this one is live now. */
  moveTo(channel: ChannelName): void {
    this._target = 0;
    this._rung = CHANNELS.indexOf(channel);
    this._failures = 0;
  }

  /** When to climb, counted from now; Infinity when there is nowhere to. */
  climbDelayMs(): number {
    if (this.target === null) return Infinity;
    return this._climbAfterMs * (1 - SPREAD + 2 * SPREAD * this._random());
  }
}
