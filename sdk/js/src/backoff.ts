/** Exponential backoff with full jitter, and the lower bound that a server may give. */

/** Beyond it the cap has long been reached; keeps the power finite. */
const MAX_EXPONENT = 30;
/** Of a server's lower bound, on top of it: many clients were given the same. */
const SPREAD = 0.25;

export class Backoff {
  /** Failures since the last reset. */
  attempt = 0;

  constructor(
    private readonly _baseMs: number,
    private readonly _maxMs: number,
    private readonly _random: () => number,
  ) {}

  reset(): void {
    this.attempt = 0;
  }

  /** The wait before the next attempt; counts one failure. Never below `atLeastMs`, and then at most a quarter above. */
  nextDelayMs(atLeastMs = 0): number {
    const ceiling = Math.min(this._maxMs, this._baseMs * 2 ** Math.min(this.attempt, MAX_EXPONENT));
    this.attempt += 1;
    return atLeastMs > 0 ? spread(atLeastMs, this._random) : this._random() * ceiling;
  }
}

/** A moment that a server named for many clients: never earlier, at most a quarter later. */
export function spread(ms: number, random: () => number): number {
  return ms * (1 + SPREAD * random());
}
