/** One call a frame, whatever comes; and how late frames are. Frames stop in hidden pages: there a timer goes on. */

/** The page's clock and frames; tests bring their own. */
export interface FrameClock {
  now(): number;
  /** Null where there are no frames: a worker, Node. Returns how to cancel. */
  readonly frame: ((fn: () => void) => () => void) | null;
  /** Returns how to cancel. */
  after(ms: number, fn: () => void): () => void;
  isHidden(): boolean;
}

/** In a hidden page, and where the browser withholds its frames. */
const FALLBACK_MS = 250;
/** Where there are no frames at all. */
const NO_FRAMES_MS = 16;

export function pageClock(): FrameClock {
  const { document } = globalThis as { document?: Document };
  return {
    now: () => performance.now(),
    frame:
      typeof requestAnimationFrame === "function"
        ? (fn) => {
            const id = requestAnimationFrame(fn);
            return () => cancelAnimationFrame(id);
          }
        : null,
    after: (ms, fn) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    isHidden: () => document?.visibilityState === "hidden",
  };
}

export class FrameBatch {
  readonly #flush: (lateMs: number) => void;
  readonly #clock: FrameClock;
  #requestedAt: number | null = null;
  #cancels: (() => void)[] = [];

  /** `flush` is given how long the oldest change had waited; 0 in a hidden page, which is not late. */
  constructor(flush: (lateMs: number) => void, clock: FrameClock = pageClock()) {
    this.#flush = flush;
    this.#clock = clock;
  }

  /** Something changed: `flush` will be called once, however often this is. */
  request(): void {
    if (this.#requestedAt !== null) return;
    this.#requestedAt = this.#clock.now();
    const { frame } = this.#clock;
    this.#cancels = [this.#clock.after(frame ? FALLBACK_MS : NO_FRAMES_MS, () => this.#run())];
    if (frame) this.#cancels.push(frame(() => this.#run()));
  }

  /** What was requested is done now. */
  flush(): void {
    if (this.#requestedAt !== null) this.#run();
  }

  /** What was requested is not done. */
  stop(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels = [];
    this.#requestedAt = null;
  }

  #run(): void {
    const lateMs = this.#clock.isHidden() ? 0 : this.#clock.now() - (this.#requestedAt ?? 0);
    this.stop();
    this.#flush(lateMs);
  }
}
