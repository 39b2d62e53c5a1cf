/**
 * Connects, and connects again: one attempt at a time, whatever asks for it. Waits with full jitter, keeps the slots that
 * servers give, falls down the ladder and climbs it, and replaces a connection before it is broken where it can.
 */

import { Backoff, spread } from "./backoff.js";
import { Connection, type ConnectionOwner } from "./connection.js";
import type { Credentials } from "./credentials.js";
import { broken, causeOf, type Ending, endingOf, isClosedByServer, isSuperseded, isTooBig, judge } from "./endings.js";
import { RelayError } from "./errors.js";
import type { StateEvent } from "./events.js";
import { ask, type Query, sessionUrl } from "./http.js";
import { Ladder } from "./ladder.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";
import { Signal } from "./signal.js";
import type { ChannelName, SessionState } from "./states.js";

/** After "online" or "visible": at once, but not all devices of a network in the same moment. */
const SOON_MS = 500;
/** What cannot be asked is replaced, unless it was heard just now. */
const ALIVE_MS = 1_000;
/** Between two looks whether the browser is right. */
const OFFLINE_MS = 30_000;
/** A long poll that is out for so long has its place at the gateway. */
const PARK_MS = 1_000;
/** The gateway takes no greater `retry`. */
const MAX_RETRY = 1_000;

export interface ConductorSink extends ConnectionOwner {
  client(): string;
  /** After the last message received. */
  cursor(): string | null;
  /** The application is so far behind that no more may come. */
  isFull(): boolean;
  state(event: StateEvent): void;
  /** No connection is live. */
  lost(): void;
  /** The connection was closed for the size of something that we sent. */
  tooBig(): void;
  /** It is over. */
  finished(error: RelayError | null): void;
  error(error: RelayError): void;
}

export class Conductor {
  current: Connection | null = null;
  private _predecessor: Connection | null = null;
  private _opening: Connection | null = null;
  /** May look alive to its gateway: replaced, which is no take-over by somebody else. */
  private _lastId: string | null = null;
  private readonly _backoff: Backoff;
  private readonly _ladder: Ladder;
  private readonly _signal = new Signal();
  private _turn = 0;
  private _notBefore = 0;
  private _replaceAt: number | null = null;
  private _slotAt: number | null = null;
  private _climbAt: number | null = null;
  private _isBusy = false;
  private _isAttempting = false;
  private _isOffline: boolean;
  private _isClosed = false;
  private _cause = "";
  private _url: string;
  private _shown = "";
  /** Of the connection that our attempt was to replace. */
  private _heldEnding: Ending | null = null;
  private _cancelOverlap = none;
  private _onParked = none;
  private _goOnPolling = none;

  constructor(
    private readonly _platform: Platform,
    private readonly _settings: Settings,
    private readonly _credentials: Credentials,
    private readonly _sink: ConductorSink,
  ) {
    const { backoffBase, backoffMax, ladderFailures, climbAfter } = _settings.timing;
    this._backoff = new Backoff(backoffBase, backoffMax, _platform.random);
    this._ladder = new Ladder(_settings.channel, ladderFailures, climbAfter, _platform.random);
    this._isOffline = !_platform.isOnline();
    this._url = _settings.urls[0] ?? "";
  }

  /** Until `close`, or an end that no attempt would change. */
  async run(): Promise<void> {
    while (!this._isClosed) {
      const due = this._due();
      const now = this._platform.now();
      if (due !== null && due <= now) {
        await this._attempt();
      } else {
        this._showState();
        await this._signal.wait(this._platform, due === null ? null : due - now);
      }
    }
  }

  close(): void {
    this._isClosed = true;
    this._cancelOverlap();
    for (const connection of [this.current, this._predecessor, this._opening]) connection?.close();
    this.current = this._predecessor = this._opening = null;
    this._signal.wake();
  }

  // ---- what happens outside ----------------------------------------------------------------------------------------

  online(): void {
    this._isOffline = false;
    this.probe();
  }

  offline(): void {
    this._isOffline = true;
    this._showState();
    this._signal.wake();
  }

  /** The connection may be dead without knowing: ask it, or replace it when it cannot be asked. */
  probe(): void {
    const { current } = this;
    if (current === null) {
      if (!this._isBusy)
        this._notBefore = Math.min(this._notBefore, this._platform.now() + SOON_MS * this._platform.random());
    } else if (current.isDuplex) {
      current.probe();
    } else if (current.silentMs > ALIVE_MS) {
      this._replaceAt = this._platform.now();
    }
    this._showState();
    this._signal.wake();
  }

  /** There is room again, or something else that `due` looks at has changed. */
  wake(): void {
    this._signal.wake();
  }

  // ---- what its connections say ------------------------------------------------------------------------------------

  /** The session has read its first welcome: from here on it is the connection. */
  welcomed(connection: Connection): void {
    const old = this.current;
    this.current = connection;
    this._opening = null;
    this._heldEnding = null;
    this._replaceAt = this._slotAt = null;
    this._isBusy = false;
    this._credentials.accepted(connection.token);
    if (connection.name !== this._ladder.channel) this._ladder.moveTo(connection.name);
    if (old?.name !== connection.name) this._planClimb(this._ladder.climbDelayMs());
    if (old !== null) this._letGo(old);
    this._cause = "";
    this._showState();
  }

  /**
   * The server named a time for the next connection: `reconnect_later`, or an error before its close. `isReplaced`: come
   * then while the old connection still delivers.
   */
  slot(afterMs: number, isReplaced: boolean): void {
    this._slotAt = this._platform.now() + spread(afterMs, this._platform.random);
    if (isReplaced) {
      this._replaceAt = this._slotAt;
      this._turn += 1; // this one is about to go
    }
    this._signal.wake();
  }

  reconnect(cause: string): void {
    const { current } = this;
    if (current === null) return;
    current.close();
    this._ended(current, broken(cause));
  }

  /** Resolves when the next long poll may go out: not while another connection is being opened, nor after it is live. */
  async mayPoll(connection: Connection): Promise<void> {
    if (this._isAttempting) {
      this._onParked();
      await new Promise<void>((resolve) => {
        this._goOnPolling = resolve;
      });
    }
    if (connection !== this.current) await new Promise(none);
  }

  private _ended(connection: Connection, ending: Ending): void {
    if (connection === this._predecessor) this._predecessor = null;
    if (connection !== this.current || this._isClosed) return;
    this._noteHealth(connection);
    this._turn += 1;
    this.current = null;
    this._climbAt = this._replaceAt = null;
    this._lastId = isClosedByServer(ending) ? null : connection.id;
    this._sink.lost();
    if (this._isAttempting) this._heldEnding = ending;
    else this._handle(ending, connection);
    this._signal.wake();
  }

  // ---- one attempt -------------------------------------------------------------------------------------------------

  private async _attempt(): Promise<void> {
    this._isAttempting = true;
    const target = this.current !== null && this._replaceAt === null ? this._ladder.target : null;
    if (this.current !== null) this._noteHealth(this.current);
    this._url = this._settings.urls[this._turn % this._settings.urls.length] ?? this._url;
    this._showState();
    const { _platform: platform, _settings: settings, _url: base } = this;
    const token = await this._token();
    await this._untilParked();
    let connection: Connection | null = null;
    let ending: Ending | null = broken("no token");
    if (token !== undefined && !this._isClosed) {
      const name = target ?? this._ladder.channel;
      const onEnd = this._ended.bind(this);
      connection = this._opening = new Connection(platform, settings, this._sink, onEnd, name, base, token);
      ending = await connection.open({ base, settings, query: this._query(name), token });
      if (ending !== null && !this._isClosed) ending = await this._explained(connection, ending);
    }
    this._isAttempting = false;
    this._opening = null;
    this._goOnPolling();
    if (this._isClosed) connection?.close();
    else if (ending !== null) this._failed(connection, ending, target !== null);
  }

  /** A poll that came later than what we are about to open would take over from it. */
  private async _untilParked(): Promise<void> {
    if (this.current?.name !== "poll") return;
    let cancel = (): void => undefined;
    await new Promise<void>((resolve) => {
      this._onParked = resolve;
      cancel = this._platform.after(PARK_MS, resolve);
    });
    cancel();
  }

  /** Undefined: its source failed, or did not answer in time. */
  private async _token(): Promise<string | null | undefined> {
    let cancel = (): void => undefined;
    const late = new Promise<undefined>((resolve) => {
      cancel = this._platform.after(this._settings.timing.connectTimeout, () => resolve(undefined));
    });
    const token = await Promise.race([this._credentials.next(), late]).catch(() => undefined);
    cancel();
    if (token === undefined && !this._isClosed) {
      this._sink.error(new RelayError("no_token", "the token could not be fetched", true));
    }
    return token;
  }

  private _query(name: ChannelName): Query {
    const { _settings: settings } = this;
    const query: Record<string, string> = { client: this._sink.client() };
    const cursor = this._sink.cursor();
    if (cursor !== null) query.cursor = cursor;
    else query.from = settings.from;
    if (name === "websocket") query.ack = "1";
    const replaces = this.current?.id ?? this._lastId;
    if (replaces !== null) query.replaces = replaces;
    if (settings.heartbeat !== null) query.heartbeat = String(settings.heartbeat / 1000);
    if (this._backoff.attempt > 0) query.retry = String(Math.min(this._backoff.attempt, MAX_RETRY));
    if (settings.rhythm) query.rhythm = "1";
    return query;
  }

  /** A browser is not told why an upgrade failed: the same URL without it says so. */
  private async _explained(connection: Connection, ending: Ending): Promise<Ending> {
    if (ending.kind !== "broken" || connection.name !== "websocket" || !connection.failedToOpen) return ending;
    const { session, timing } = this._settings;
    const url = sessionUrl(connection.url, session, "ws", this._query("websocket"));
    const { token } = connection;
    const told = endingOf(await ask(this._platform, { url, token, timeoutMs: timing.connectTimeout }));
    return told.kind === "broken" ? ending : told;
  }

  private _failed(connection: Connection | null, ending: Ending, isClimb: boolean): void {
    this._turn += 1;
    const held = this._heldEnding;
    this._heldEnding = null;
    if (isClimb && this.current !== null && ending.kind !== "error") this._planClimb(this._ladder.missed());
    else if (held !== null && judge(held).kind === "final" && !isSuperseded(held)) this._handle(held, null);
    else this._handle(ending, connection);
  }

  // ---- after an end ------------------------------------------------------------------------------------------------

  private _handle(ending: Ending, connection: Connection | null): void {
    this._cause = causeOf(ending);
    const verdict = judge(ending);
    if (isTooBig(ending)) this._sink.tooBig();
    if (ending.kind === "broken" && connection?.isProven === false) this._ladder.failed();
    if (verdict.kind === "final") return this._finish(verdict.error);
    if (verdict.kind === "new_token") {
      const error = this._credentials.refused(connection?.token ?? null, this._cause);
      if (error !== null) return this._finish(error);
    }
    const isBusy = verdict.kind === "again" && verdict.isBusy;
    this._isBusy = isBusy || this._hasSlot();
    this._schedule(verdict.kind === "again" ? verdict.afterMs : null);
  }

  private _planClimb(afterMs: number | null): void {
    this._climbAt = afterMs === null ? null : this._platform.now() + afterMs;
  }

  private _hasSlot(): boolean {
    return this._slotAt !== null && this._slotAt > this._platform.now();
  }

  private _schedule(afterMs: number | null): void {
    const now = this._platform.now();
    const slotMs = this._hasSlot() ? (this._slotAt ?? now) - now : null;
    this._slotAt = null;
    const delay = slotMs !== null && slotMs >= (afterMs ?? 0) ? slotMs : this._backoff.nextDelayMs(afterMs);
    this._notBefore = now + delay;
  }

  private _finish(error: RelayError | null): void {
    this.close();
    this._sink.finished(error);
  }

  /** Only a connection that lived and was heard starts the waits anew: one that is accepted and closed does not. */
  private _noteHealth(connection: Connection): void {
    if (!connection.isProven) return;
    this._ladder.proved();
    if (this._platform.now() - connection.welcomedAt >= this._settings.timing.stableAfter) this._backoff.reset();
  }

  /** Two of ours receive; the server closes the old one when the new one is live. */
  private _letGo(old: Connection): void {
    this._predecessor?.close();
    this._predecessor = old;
    this._cancelOverlap();
    this._cancelOverlap = this._platform.after(this._settings.timing.overlap, () => {
      this._predecessor?.close();
      this._predecessor = null;
    });
  }

  // ---- when, and what is shown -------------------------------------------------------------------------------------

  /** When the next attempt is due; null: nothing to do until somebody wakes us. */
  private _due(): number | null {
    if (this.current !== null) {
      const replaceAt = this._replaceAt === null ? Infinity : Math.max(this._replaceAt, this._notBefore);
      const due = Math.min(replaceAt, this._climbAt ?? Infinity);
      return due === Infinity ? null : due;
    }
    if (this._sink.isFull()) return null;
    // The browser's word is not always true: look now and then.
    return this._isOffline ? this._notBefore + OFFLINE_MS : this._notBefore;
  }

  private _state(): SessionState {
    if (this._isOffline) return "offline";
    if (this.current !== null) return "live";
    if (this._isAttempting) return "connecting";
    return this._isBusy ? "busy" : "waiting";
  }

  private _showState(): void {
    if (this._isClosed) return;
    const state = this._state();
    const channel = this.current?.name ?? (state === "connecting" ? this._ladder.channel : null);
    const due = state === "live" ? null : this._due();
    const retryIn = due === null || state === "connecting" ? null : Math.max(0, due - this._platform.now());
    const shown = `${state} ${channel} ${due === null || state === "connecting" ? "" : due}`;
    if (shown === this._shown) return;
    this._shown = shown;
    this._sink.state({ state, channel, cause: this._cause, retryIn, url: this._url });
  }
}

function none(): void {}
