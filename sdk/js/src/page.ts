/** What the page and its machine go through: seen again, online, woken up. Each is a reason to probe. */

import type { Core } from "./core.js";

const INTERVAL_MS = 5_000;
/** In intervals: what a sleep or a throttled tab makes of a timer. */
const JUMP = 2;

/** Returns how to stop. */
export function watchPage({ platform, conductor, keeper }: Core): () => void {
  let cancelTimer: () => void;
  const stopListening = platform.onPage((event) => {
    if (event === "visible" || event === "restored") conductor.askNow();
    else if (event === "online" || event === "offline") conductor.network(event === "online");
    else void keeper.writeOut();
  });
  /** A timer that is late by more than two intervals: the machine slept, or the page was frozen. */
  const watchClock = () => {
    const [began, wallBegan] = [platform.now(), platform.wallNow()];
    cancelTimer = platform.after(INTERVAL_MS, () => {
      const elapsedMs = Math.max(platform.now() - began, platform.wallNow() - wallBegan);
      watchClock();
      if (elapsedMs - INTERVAL_MS > JUMP * INTERVAL_MS) conductor.askNow();
    });
  };
  watchClock();
  return () => {
    stopListening();
    cancelTimer();
  };
}
