/** How long to wait before an attempt: exponential backoff with full jitter, or the moment that a server named. */

import type { Surroundings } from "./core.js";

/** Beyond it the cap has long been reached; keeps the power finite. */
const MAX_EXPONENT = 30;
/** Of a server's moment, on top of it: many clients were given the same. */
const SPREAD = 0.25;

export function createBackoff({ platform, settings }: Surroundings) {
  const { random } = platform;
  const { backoffBase, backoffMax } = settings.timing;
  const self = {
    /** Since a connection was stable. */
    failures: 0,

    /** Counts one failure. Never below `atLeastMs`, and then at most a quarter above. */
    nextDelayMs(atLeastMs = 0): number {
      const ceiling = Math.min(backoffMax, backoffBase * 2 ** Math.min(self.failures++, MAX_EXPONENT));
      return atLeastMs > 0 ? self.spread(atLeastMs) : random() * ceiling;
    },

    /** A moment that a server named for many clients: never earlier, at most a quarter later. */
    spread(ms: number): number {
      return ms * (1 + SPREAD * random());
    },
  };
  return self;
}
