/** While two connections of ours overlap: the old one is let go in time, and no long poll takes over from the new one. */

import type { Connection } from "./connection.js";
import type { Surroundings } from "./core.js";
import { createGate, createTimer } from "./platform.js";

/** A long poll that is out for so long has its place at the gateway. */
const PARK_MS = 1_000;

export function createOverlap({ platform, settings }: Surroundings) {
  let _predecessor: Connection | null = null;
  const _timer = createTimer(platform);
  const _parked = createGate();
  const _released = createGate();
  let _isHeld = false;
  const self = {
    /** The server closes it when its successor is live; if not, we do. */
    letGo(old: Connection): void {
      self.close();
      _predecessor = old;
      _timer.start(settings.timing.overlap, old.close);
    },

    close(): void {
      _timer.stop();
      _predecessor?.close();
    },

    /** No long poll goes out until `release`: one that came later than what is about to be opened would take over from it. */
    async hold(current: Connection | null): Promise<void> {
      _isHeld = true;
      if (current?.name !== "poll") return;
      const cancel = platform.after(PARK_MS, _parked.open);
      await _parked.wait();
      cancel();
    },

    release(): void {
      _isHeld = false;
      _released.open();
    },

    /** Resolves when the next long poll may go out. */
    async mayPoll(): Promise<void> {
      if (!_isHeld) return;
      _parked.open();
      await _released.wait();
    },
  };
  return self;
}
