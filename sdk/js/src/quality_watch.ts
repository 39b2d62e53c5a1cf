/** Tells listeners how good the connection is when that changes, and has a poor one measured more often. */

import type { Connection } from "./connection.js";
import type { Emitter, QualityEvent } from "./events.js";
import type { Platform } from "./platform.js";
import { Quality } from "./quality.js";

export class QualityWatch {
  private readonly _quality = new Quality();

  constructor(
    private readonly _platform: Platform,
    private readonly _emitter: Emitter,
    private readonly _live: () => Connection | null,
  ) {}

  get isDegraded(): boolean {
    return this._quality.isDegraded;
  }

  current(): QualityEvent {
    return this._quality.current();
  }

  roundTrip(ms: number): void {
    this._quality.sample(ms, this._platform.now());
    this._tell();
  }

  /** As in Quality. */
  behind(ms: number, isFeed: boolean): void {
    this._quality.behind(ms, this._platform.now(), isFeed);
    this._tell();
  }

  private _tell(): void {
    this._live()?.sampleOften(this._quality.isDegraded);
    const news = this._quality.news();
    if (news !== null) this._emitter.emit("quality", news);
  }
}
