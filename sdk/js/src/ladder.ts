/** Which way to the gateway is tried: WebSocket, then SSE, then long poll; down by transport failures only. Pure. */

import { CHANNELS, type ChannelName } from "./states.js";

/** After a failure of everything the rung that answered first says nothing about the others: look up soon. */
const SOON_MS = 3_000;
const SPREAD = 0.25;

export class Ladder {
  private _rung: number;
  private _failures = 0;
  private _target = 0;
  /** The rung that we are on failed as well before it worked. */
  private _wasAllDown = false;

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

  failed(): void {
    this._failures += 1;
    this._wasAllDown = this._rung > 0;
    if (this._choice !== "auto" || this._failures < this._maxFailures) return;
    this._failures = 0;
    this._rung = (this._rung + 1) % CHANNELS.length; // after the last one the network as a whole is down: begin anew
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
    this._wasAllDown = false;
  }

  /** When to climb, counted from now; Infinity when there is nowhere to. */
  climbDelayMs(): number {
    if (this.target === null) return Infinity;
    const ms = this._wasAllDown ? Math.min(SOON_MS, this._climbAfterMs) : this._climbAfterMs;
    this._wasAllDown = false;
    return ms * (1 - SPREAD + 2 * SPREAD * this._random());
  }
}
