/** How good the connection is for its reader, and whether whole segments should be shown instead of tokens. Pure. */

import type { QualityEvent } from "./events.js";

const SMOOTHING = 0.3;
/** Above: token by token is a stutter. */
const BAD_RTT_MS = 800;
const FAIR_RTT_MS = 300;
/** So long must the round trip have been good before tokens are shown again. */
const RECOVERY_MS = 10_000;
const BEHIND_MS = 2_000;
const LEAST_CHANGE = 0.1;

export class Quality {
  rtt: number | null = null;
  isDegraded = false;
  private _feedMs = 0;
  private _pageMs = 0;
  private _goodSince: number | null = null;
  private _told: QualityEvent | null = null;

  sample(rttMs: number, now: number): void {
    this.rtt = this.rtt === null ? rttMs : this.rtt + SMOOTHING * (rttMs - this.rtt);
    this._judge(now);
  }

  /** How old the oldest message is that the application has not taken; or else that its page has not shown. */
  behind(ms: number, now: number, isFeed = false): void {
    if (isFeed) this._feedMs = ms;
    else this._pageMs = ms;
    this._judge(now);
  }

  private get _behindMs(): number {
    return Math.max(this._feedMs, this._pageMs);
  }

  current(): QualityEvent {
    const rtt = this.rtt ?? 0;
    const isBad = rtt > BAD_RTT_MS || this._behindMs > BEHIND_MS;
    const level = isBad ? "poor" : rtt > FAIR_RTT_MS ? "fair" : "good";
    const badness = (rtt / BAD_RTT_MS) ** 2 + (this._behindMs / BEHIND_MS) ** 2;
    return { score: Math.round(100 / (1 + badness)) / 100, level, rtt: this.rtt };
  }

  /** What is worth telling since the last time; null when nothing is. */
  news(): QualityEvent | null {
    const now = this.current();
    const { _told: told } = this;
    if (told && told.level === now.level && Math.abs(told.score - now.score) < LEAST_CHANGE) return null;
    this._told = now;
    return now;
  }

  private _judge(now: number): void {
    const isBad = (this.rtt ?? 0) > BAD_RTT_MS || this._behindMs > BEHIND_MS;
    if (isBad) {
      this.isDegraded = true;
      this._goodSince = null;
    } else if (this.isDegraded) {
      this._goodSince ??= now;
      if (now - this._goodSince >= RECOVERY_MS) {
        this.isDegraded = false;
        this._goodSince = null;
      }
    }
  }
}
