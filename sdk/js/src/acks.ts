/** Tells the gateway what was applied, every so many bytes or ms: it sends no more than a window beyond. */

import type { Cursor } from "./cursor.js";
import type { Platform } from "./platform.js";

export class Acks {
  private _applied: Cursor | null = null;
  private _bytes = 0;
  private _cancelTimer: (() => void) | null = null;

  /** `send`: to the connection, if it is on the cursor's line. */
  constructor(
    private readonly _platform: Platform,
    private readonly _ackBytes: number,
    private readonly _ackAfterMs: number,
    private readonly _send: (cursor: Cursor) => void,
  ) {}

  note(cursor: Cursor, bytes: number): void {
    this._applied = cursor;
    this._bytes += bytes;
    if (this._bytes >= this._ackBytes) this.flush();
    else this._cancelTimer ??= this._platform.after(this._ackAfterMs, () => this.flush());
  }

  flush(): void {
    this.stop();
    if (this._applied !== null) this._send(this._applied);
    this._applied = null;
    this._bytes = 0;
  }

  stop(): void {
    this._cancelTimer?.();
    this._cancelTimer = null;
  }
}
