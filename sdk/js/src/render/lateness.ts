/** Tells the session how far the page is behind, so that it hands out whole segments when that is too far. */

/** What of a session is needed here. */
export interface LagSink {
  /** How long what came had to wait until it was shown. */
  reportBehind?(ms: number): void;
}

/** Less is how pages are. */
const WORTH_TELLING_MS = 500;
const TELL_AFTER_MS = 250;

export class Lateness {
  readonly #sink: LagSink;
  #toldMs = 0;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(sink: LagSink) {
    this.#sink = sink;
  }

  /** True: the page was late, and another frame should be looked at even if nothing changes. */
  seen(lateMs: number, now: number): boolean {
    const ms = lateMs < WORTH_TELLING_MS ? 0 : lateMs;
    const isNews = ms > 0 || this.#toldMs > 0;
    if (isNews && (ms === 0 || now - this.#toldAt >= TELL_AFTER_MS)) {
      this.#toldMs = ms;
      this.#toldAt = now;
      this.#sink.reportBehind?.(ms);
    }
    return this.#toldMs > 0;
  }
}
