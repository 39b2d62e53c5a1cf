/**
 * How good the connection is for its reader, and whether whole segments should be shown instead of tokens. Tells
 * listeners when that changes, and has a poor connection measured more often.
 */

import type { Core } from "./core.js";
import type { QualityEvent } from "./events.js";

const SMOOTHING = 0.3;
/** Above: token by token is a stutter. */
const BAD_RTT_MS = 800;
const FAIR_RTT_MS = 300;
/** So long must it have been good before tokens are shown again. */
const RECOVERY_MS = 10_000;
const BEHIND_MS = 2_000;
const LEAST_CHANGE = 0.1;

export function createQuality(core: Pick<Core, "platform" | "conductor" | "emitter">) {
  const { platform, emitter } = core;
  let _rtt: number | null = null;
  let _feedMs = 0;
  let _pageMs = 0;
  let _goodSince: number | null = null;
  let _told: QualityEvent | null = null;
  const self = {
    isDegraded: false,

    sample(rttMs: number): void {
      _rtt = _rtt === null ? rttMs : _rtt + SMOOTHING * (rttMs - _rtt);
      _judge();
    },

    /** How old the oldest message is that the application has not taken (`isFeed`); or else that its page has not shown. */
    behind(ms: number, isFeed = false): void {
      if (isFeed) _feedMs = ms;
      else _pageMs = ms;
      _judge();
    },

    now(): QualityEvent {
      const rttMs = _rtt ?? 0;
      const [slowness, lateness] = [rttMs / BAD_RTT_MS, Math.max(_feedMs, _pageMs) / BEHIND_MS];
      const isBad = slowness > 1 || lateness > 1;
      const level = isBad ? "poor" : rttMs > FAIR_RTT_MS ? "fair" : "good";
      return { score: Math.round(100 / (1 + slowness ** 2 + lateness ** 2)) / 100, level, rtt: _rtt };
    },
  };

  function _judge(): void {
    const { conductor } = core;
    const now = self.now();
    const told = _told;
    const isBad = now.level === "poor";
    _goodSince = isBad ? null : (_goodSince ?? platform.now());
    self.isDegraded = isBad || (self.isDegraded && platform.now() - (_goodSince ?? 0) < RECOVERY_MS);
    conductor.current?.pulse?.sampleOften(self.isDegraded);
    if (told?.level === now.level && Math.abs(told.score - now.score) < LEAST_CHANGE) return;
    _told = now;
    emitter.emit("quality", now);
  }
  return self;
}

export type Quality = ReturnType<typeof createQuality>;
