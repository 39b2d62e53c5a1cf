/** While two connections of ours overlap: the old one is let go in time, and no long poll takes over from the new one. */

import type { Connection } from "./connection.js";
import type { Platform } from "./platform.js";

/** A long poll that is out for so long has its place at the gateway. */
const PARK_MS = 1_000;

export class Overlap {
  private _predecessor: Connection | null = null;
  private _cancelTimer = none;
  private _isHeld = false;
  private _onParked = none;
  private _goOn = none;

  constructor(
    private readonly _platform: Platform,
    private readonly _overlapMs: number,
  ) {}

  /** The server closes it when its successor is live; if not, we do. */
  letGo(old: Connection): void {
    this.close();
    this._predecessor = old;
    this._cancelTimer = this._platform.after(this._overlapMs, () => old.close());
  }

  close(): void {
    this._cancelTimer();
    this._predecessor?.close();
  }

  /** No long poll goes out until `release`: one that came later than what is about to be opened would take over from it. */
  async hold(current: Connection | null): Promise<void> {
    this._isHeld = true;
    if (current?.name !== "poll") return;
    let cancel = none;
    await new Promise<void>((resolve) => {
      this._onParked = resolve;
      cancel = this._platform.after(PARK_MS, resolve);
    });
    cancel();
  }

  release(): void {
    this._isHeld = false;
    this._goOn();
  }

  /** Resolves when the next long poll may go out. */
  async mayPoll(): Promise<void> {
    if (!this._isHeld) return;
    this._onParked();
    await new Promise<void>((resolve) => {
      this._goOn = resolve;
    });
  }
}

function none(): void {}
