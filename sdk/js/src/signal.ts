/** One waiter that can be woken early. */

import type { Platform } from "./platform.js";

export class Signal {
  private _go = none;
  private _isSet = false;

  /** What was signalled while nobody waited ends the next wait at once. */
  wake(): void {
    this._isSet = true;
    this._go();
  }

  async wait(platform: Platform, ms: number): Promise<void> {
    let cancel = none;
    if (!this._isSet) {
      await new Promise<void>((resolve) => {
        this._go = resolve;
        if (ms < Infinity) cancel = platform.after(ms, resolve);
      });
    }
    cancel();
    this._isSet = false;
  }
}

function none(): void {}
