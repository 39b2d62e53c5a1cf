/**
 * Whether a connection is alive: by pings where it can carry them, else by the server's own signs of life. Never
 * declares death from a late timer alone (hidden tabs, sleep): after one it asks first.
 */

import type { Platform } from "./platform.js";

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

export interface PulseSink {
  /** False when it could not be sent. */
  ping(): boolean;
  dead(): void;
  rtt(ms: number): void;
}

export interface PulseTiming {
  readonly heartbeatMs: number;
  readonly keepAliveMs: number | null;
  readonly probeTimeoutMs: number;
  readonly runQuietMs: number;
}

/** Of one connection, from its welcome on. One timer. */
export class Pulse {
  /** It is us who do not read. */
  isHeld = false;
  private _isSampledOften = false;
  private _isStreaming = false;
  private _heardAt: number;
  private _sentAt: number;
  private _askedAt: number | null = null;
  private _lastAskedAt: number;
  private _asked = 0;
  private _cancelTimer: () => void = () => undefined;
  private _isStopped = false;

  constructor(
    private readonly _platform: Platform,
    private readonly _isDuplex: boolean,
    private readonly _timing: PulseTiming,
    private readonly _sink: PulseSink,
  ) {
    this._heardAt = this._sentAt = this._lastAskedAt = _platform.now();
    this._schedule();
  }

  get silentMs(): number {
    return this._platform.now() - this._heardAt;
  }

  heard(): void {
    this._heardAt = this._platform.now();
    this._asked = 0;
  }

  sent(): void {
    this._sentAt = this._platform.now();
  }

  pong(): void {
    if (this._askedAt === null) return;
    const askedAt = this._askedAt;
    this._askedAt = null;
    this._sink.rtt(this._platform.now() - askedAt);
    this._schedule();
  }

  sampleOften(isOften: boolean): void {
    if (isOften === this._isSampledOften) return;
    this._isSampledOften = isOften;
    this._schedule();
  }

  /** In the middle of a run silence is suspicious sooner. */
  streaming(isStreaming: boolean): void {
    if (isStreaming === this._isStreaming) return;
    this._isStreaming = isStreaming;
    this._schedule();
  }

  /** Ask now. */
  probe(): void {
    if (this._isDuplex && !this._isStopped) this._ask();
  }

  stop(): void {
    this._isStopped = true;
    this._cancelTimer();
  }

  private _ask(): void {
    this._askedAt = this._lastAskedAt = this._sentAt = this._platform.now();
    this._asked += 1;
    this._sink.ping();
    this._schedule();
  }

  private _schedule(): void {
    this._cancelTimer();
    if (this._isStopped) return;
    const due = this._due();
    const ms = Math.max(10, due - this._platform.now());
    const wallDue = this._platform.wallNow() + ms;
    this._cancelTimer = this._platform.after(ms, () => {
      const lateMs = Math.max(this._platform.now() - due, this._platform.wallNow() - wallDue);
      this._check(lateMs > LATE_MS);
      this._schedule();
    });
  }

  private _due(): number {
    const { probeTimeoutMs, heartbeatMs, keepAliveMs, runQuietMs } = this._timing;
    if (!this._isDuplex) return this._heardAt + this._silenceMs;
    if (this._askedAt !== null) return this._askedAt + probeTimeoutMs;
    let due = this._heardAt + (this._isStreaming ? Math.min(runQuietMs, heartbeatMs) : heartbeatMs);
    if (keepAliveMs !== null) due = Math.min(due, this._sentAt + keepAliveMs);
    if (this._heardAt > this._lastAskedAt) due = Math.min(due, this._lastAskedAt + this._sampleMs);
    return due;
  }

  private get _sampleMs(): number {
    return this._isSampledOften ? SAMPLE_BAD_MS : SAMPLE_MS;
  }

  private get _silenceMs(): number {
    return Math.max(COMMENT_MS, this._timing.heartbeatMs) + 2 * this._timing.probeTimeoutMs;
  }

  private _check(isLate: boolean): void {
    const now = this._platform.now();
    if (!this._isDuplex) {
      if (this.isHeld) this.heard();
      if (now - this._heardAt < this._silenceMs) return;
      if (isLate && this._asked++ < MAX_ASKED) this._heardAt = now - this._silenceMs + this._timing.probeTimeoutMs;
      else this._die();
      return;
    }
    if (this._askedAt === null) {
      if (now >= this._due()) this._ask();
      return;
    }
    if (now - this._askedAt < this._timing.probeTimeoutMs) return;
    if (this._heardAt > this._askedAt) {
      this._askedAt = null; // any byte is life, though only the pong is a round trip
    } else if (isLate && this._asked < MAX_ASKED) {
      this._ask();
    } else {
      this._die();
    }
  }

  private _die(): void {
    this.stop();
    this._sink.dead();
  }
}
