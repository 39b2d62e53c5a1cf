/** What the page and its machine go through: seen again, online, woken up. Each is a reason to probe. */

import type { PageEvent, Platform } from "./platform.js";

const INTERVAL_MS = 5_000;
/** In intervals: what a sleep or a throttled tab makes of a timer. */
const JUMP = 2;

export interface PageSink {
  /** The connection may be dead without knowing. */
  probe(): void;
  online(): void;
  offline(): void;
  /** Save what is to be saved. */
  leaving(): void;
}

export class PageWatch {
  private _stopListening: () => void;
  private _cancelTimer: () => void = () => undefined;

  constructor(
    private readonly _platform: Platform,
    private readonly _sink: PageSink,
  ) {
    this._stopListening = _platform.onPage((event) => this._on(event));
    this._watchClock();
  }

  stop(): void {
    this._stopListening();
    this._cancelTimer();
  }

  private _on(event: PageEvent): void {
    if (event === "visible" || event === "restored") this._sink.probe();
    else if (event === "online") this._sink.online();
    else if (event === "offline") this._sink.offline();
    else this._sink.leaving();
  }

  /** A timer that is late by more than two intervals: the machine slept, or the page was frozen. */
  private _watchClock(): void {
    const [began, wallBegan] = [this._platform.now(), this._platform.wallNow()];
    this._cancelTimer = this._platform.after(INTERVAL_MS, () => {
      const elapsed = Math.max(this._platform.now() - began, this._platform.wallNow() - wallBegan);
      this._watchClock();
      if (elapsed - INTERVAL_MS > JUMP * INTERVAL_MS) this._sink.probe();
    });
  }
}
