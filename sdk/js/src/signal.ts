/** One waiter that can be woken early. */

import type { Platform } from "./platform.js";

export class Signal {
  private _resolve: (() => void) | null = null;
  private _isSet = false;

  /** What was signalled while nobody waited ends the next wait at once. */
  wake(): void {
    this._isSet = true;
    this._resolve?.();
  }

  async wait(platform: Platform, ms: number | null): Promise<void> {
    if (!this._isSet) {
      await new Promise<void>((resolve) => {
        this._resolve = resolve;
        if (ms !== null) this._cancel = platform.after(ms, resolve);
      });
      this._cancel();
    }
    this._isSet = false;
    this._resolve = null;
    this._cancel = none;
  }

  private _cancel: () => void = none;
}

const none = (): void => undefined;
