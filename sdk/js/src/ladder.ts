/**
 * Which way to the gateway is tried: WebSocket, then SSE, then long poll; down by transport failures only. Pure.
 */

import type { Surroundings } from "./core.js";
import { CHANNELS, type ChannelName } from "./states.js";

const SPREAD = 0.25;

export function createLadder({ platform, settings }: Surroundings) {
  const { channel, timing } = settings;
  const _isFree = channel === "auto";
  let _rung = _isFree ? 0 : CHANNELS.indexOf(channel);
  let _failures = 0;
  let _target = 0;
  const self = {
    get channel(): ChannelName {
      return CHANNELS[_rung] ?? "websocket";
    },

    /** What a climb tries: the best one, then those below it; null at the top, or where the application has chosen. */
    get target(): ChannelName | null {
      return (_isFree && _rung > 0 && CHANNELS[_target]) || null;
    },

    /** A climb failed: when to try the next rung, or all again. */
    missed(): number {
      _target = (_target + 1) % Math.max(1, _rung);
      return _target > 0 ? 0 : self.climbDelayMs();
    },

    /** The transport failed although somebody is there: where nobody answers at all, nothing is known about the rungs. */
    failed(): void {
      _failures += 1;
      if (!_isFree || _failures < timing.ladderFailures) return;
      _failures = 0;
      _rung = (_rung + 1) % CHANNELS.length; // nothing works here: begin anew
    },

    /** The connection was heard: failures are no longer in a row. */
    proved(): void {
      _failures = 0;
    },

    /** By make before break: this one is live now. */
    moveTo(name: ChannelName): void {
      _target = 0;
      _rung = CHANNELS.indexOf(name);
      _failures = 0;
    },

    /** When to climb, counted from now; Infinity when there is nowhere to. */
    climbDelayMs(): number {
      return self.target ? timing.climbAfter * (1 - SPREAD + 2 * SPREAD * platform.random()) : Infinity;
    },
  };
  return self;
}
