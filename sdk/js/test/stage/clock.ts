/** Virtual time: timers fire when a test says so, in order, and promises settle in between. */

interface Timer {
  readonly at: number;
  readonly fn: () => void;
}

export class Clock {
  nowMs = 0;
  /** What the wall clock is ahead: grows while the machine sleeps. */
  wallAheadMs = 1_700_000_000_000;
  private timers: Timer[] = [];
  /** Timers of a hidden tab fire at whole minutes only. */
  isThrottled = false;

  get pending(): number {
    return this.timers.length;
  }

  after(ms: number, fn: () => void): () => void {
    const due = this.nowMs + Math.max(0, ms);
    const timer = { at: this.isThrottled ? Math.ceil(due / 60_000) * 60_000 : due, fn };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  }

  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms;
    await settle();
    for (;;) {
      const next = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.nowMs = Math.max(this.nowMs, next.at);
      this.timers = this.timers.filter((other) => other !== next);
      next.fn();
      await settle();
    }
    this.nowMs = end;
  }

  /** The machine sleeps: no timer fires meanwhile, all that were due fire late. */
  async sleep(ms: number): Promise<void> {
    this.nowMs += ms;
    await settle();
  }
}

/** Every promise that can settle without time passing has done so. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 60; i++) await Promise.resolve();
}
