/**
 * Whether a connection is alive: by pings where it can carry them, else by the server's own signs of life. Never
 * declares death from a late timer alone (hidden tabs, sleep): after one it asks first.
 */

import type { Core } from "./core.js";
import { control } from "./messages.js";
import { none } from "./platform.js";

/** A timer that is so late says more about us than about the server. */
const LATE_MS = 1_000;
/** Questions without an answer after which even late timers are believed. */
const MAX_ASKED = 3;
/** While something comes: how often the round trip is measured. */
const SAMPLE_MS = 10_000;
/** The same while the network is bad: its end is to be noticed. */
const SAMPLE_BAD_MS = 2_500;
/** SSE: the server sends a comment at least so often. */
const COMMENT_MS = 15_000;

/** Whose life it is. */
export interface Pulsed {
  /** It can be asked. */
  readonly isDuplex: boolean;
  send(text: string): boolean;
  dead(): void;
}

const PING = control({ kind: "ping" });

/** Of one connection, from its welcome on. One timer. */
export function createPulse({ platform, settings, quality }: Core, connection: Pulsed, heartbeatMs: number) {
  const { now, wallNow } = platform;
  const { keepAlive, timing } = settings;
  const { probeTimeout, runQuiet } = timing;
  /** So long may a server be silent that cannot be asked. */
  const _silenceMs = Math.max(COMMENT_MS, heartbeatMs) + 2 * probeTimeout;
  let _isSampledOften = false;
  let _isStreaming = false;
  let _heardAt = now();
  let _sentAt = _heardAt;
  let _lastAskedAt = _heardAt;
  let _askedAt: number | null = null;
  let _asked = 0;
  let _cancelTimer = none;
  let _isStopped = false;
  const self = {
    /** It is us who do not read. */
    isHeld: false,

    get silentMs(): number {
      return now() - _heardAt;
    },

    heard(): void {
      _heardAt = now();
      _asked = 0;
    },

    sent(): void {
      _sentAt = now();
    },

    pong(): void {
      if (_askedAt === null) return;
      quality.sample(now() - _askedAt);
      _askedAt = null;
      _schedule();
    },

    sampleOften(isOften: boolean): void {
      if (isOften === _isSampledOften) return;
      _isSampledOften = isOften;
      _schedule();
    },

    /** In the middle of a run silence is suspicious sooner. */
    streaming(isStreaming: boolean): void {
      if (isStreaming === _isStreaming) return;
      _isStreaming = isStreaming;
      _schedule();
    },

    /** Ask now. */
    askNow(): void {
      if (_isStopped) return;
      _askedAt = _lastAskedAt = _sentAt = now();
      _asked += 1;
      connection.send(PING);
      _schedule();
    },

    stop(): void {
      _isStopped = true;
      _cancelTimer();
    },
  };
  _schedule();
  return self;

  function _schedule(): void {
    _cancelTimer();
    if (_isStopped) return;
    const due = _due();
    const ms = Math.max(10, due - now());
    const wallDue = wallNow() + ms;
    _cancelTimer = platform.after(ms, () => {
      _check(Math.max(now() - due, wallNow() - wallDue) > LATE_MS);
      _schedule();
    });
  }

  function _due(): number {
    if (!connection.isDuplex) return _heardAt + _silenceMs;
    if (_askedAt !== null) return _askedAt + probeTimeout;
    return Math.min(
      _heardAt + (_isStreaming ? Math.min(runQuiet, heartbeatMs) : heartbeatMs),
      keepAlive === null ? Infinity : _sentAt + keepAlive,
      _heardAt > _lastAskedAt ? _lastAskedAt + (_isSampledOften ? SAMPLE_BAD_MS : SAMPLE_MS) : Infinity,
    );
  }

  function _check(isLate: boolean): void {
    if (!connection.isDuplex && self.isHeld) self.heard();
    if (now() < _due()) return;
    if (!connection.isDuplex) {
      if (isLate && _asked++ < MAX_ASKED) _heardAt = now() - _silenceMs + probeTimeout;
      else _die();
    } else if (_askedAt === null || (isLate && _asked < MAX_ASKED && _heardAt <= _askedAt)) {
      self.askNow();
    } else if (_heardAt > _askedAt) {
      _askedAt = null; // any byte is life, though only the pong is a round trip
    } else {
      _die();
    }
  }

  function _die(): void {
    self.stop();
    connection.dead();
  }
}

export type Pulse = ReturnType<typeof createPulse>;
