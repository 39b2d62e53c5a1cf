/** Tells the gateway what was applied, every so many bytes or ms: it sends no more than a window beyond. */

import type { Core } from "./core.js";
import type { Cursor } from "./cursor.js";
import { control } from "./messages.js";
import { createTimer } from "./platform.js";

export function createAcks(core: Core) {
  const { platform, settings } = core;
  let _applied: Cursor | null = null;
  let _bytes = 0;
  const _timer = createTimer(platform);
  const self = {
    note(cursor: Cursor, bytes: number): void {
      const { ackBytes, ackAfter } = settings.timing;
      _applied = cursor;
      _bytes += bytes;
      if (_bytes >= ackBytes) self.writeOut();
      else _timer.start(ackAfter, self.writeOut);
    },

    /** To the connection that is live, if it is on the same line. */
    writeOut(): void {
      const applied = _applied;
      const live = core.conductor.current;
      self.stop();
      if (applied && live?.isDuplex && live.lineId === applied.lineId)
        live.send(control({ kind: "ack", seq: applied.seq }));
      _applied = null;
      _bytes = 0;
    },

    stop: _timer.stop,
  };
  return self;
}

export type Acks = ReturnType<typeof createAcks>;
