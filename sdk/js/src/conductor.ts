/**
 * Connects, and connects again: one attempt at a time, whatever asks for it. Waits with full jitter, keeps the slots that
 * servers give, falls down the ladder and climbs it, and replaces a connection before it is broken where it can.
 */

import { queryOf, tokenInTime } from "./attempt.js";
import { Connection, type ConnectionOwner } from "./connection.js";
import type { Credentials } from "./credentials.js";
import { broken, causeOf, type Ending, isClosedByServer, isSuperseded, isTooBig, judge } from "./endings.js";
import { RelayError } from "./errors.js";
import type { StateEvent } from "./events.js";
import type { Query } from "./http.js";
import { Ladder } from "./ladder.js";
import { loadLater } from "./load_later.js";
import type { Settings } from "./options.js";
import { Overlap } from "./overlap.js";
import type { Platform } from "./platform.js";
import { Schedule } from "./schedule.js";
import { Signal } from "./signal.js";
import type { ChannelName, SessionState } from "./states.js";

/** What cannot be asked is replaced, unless it was heard just now. */
const ALIVE_MS = 1_000;

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
  private _opening: Connection | null = null;
  /** May look alive to its gateway: replaced, which is no take-over by somebody else. */
  private _lastId: string | null = null;
  private readonly _schedule: Schedule;
  private readonly _ladder: Ladder;
  private readonly _overlap: Overlap;
  private readonly _signal = new Signal();
  private _turn = 0;
  /** By what we were live last. */
  private _liveName: ChannelName | null = null;
  private _isBusy = false;
  private _isAttempting = false;
  private _isOffline: boolean;
  private _isClosed = false;
  private _cause = "";
  private _url: string;
  private _shown = "";
  /** Of the connection that our attempt was to replace. */
  private _heldEnding: Ending | null = null;

  constructor(
    private readonly _platform: Platform,
    private readonly _settings: Settings,
    private readonly _credentials: Credentials,
    private readonly _sink: ConductorSink,
  ) {
    const { backoffBase, backoffMax, ladderFailures, climbAfter } = _settings.timing;
    this._schedule = new Schedule(_platform, backoffBase, backoffMax);
    this._ladder = new Ladder(_settings.channel, ladderFailures, climbAfter, _platform.random);
    this._overlap = new Overlap(_platform, _settings.timing.overlap);
    this._isOffline = !_platform.isOnline();
    this._url = _settings.urls[0] ?? "";
  }

  /** Until `close`, or an end that no attempt would change. */
  async run(): Promise<void> {
    while (!this._isClosed) {
      const due = this._due();
      const now = this._platform.now();
      if (due <= now) {
        await this._attempt();
      } else {
        this._showState();
        await this._signal.wait(this._platform, due - now);
      }
    }
  }

  close(): void {
    this._isClosed = true;
    this._overlap.close();
    for (const connection of [this.current, this._opening]) connection?.close();
    this.current = this._opening = null;
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
      if (!this._isBusy) this._schedule.soon();
    } else if (current.isDuplex) {
      current.probe();
    } else if (current.silentMs > ALIVE_MS) {
      this._schedule.replaceNow();
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
    this._schedule.welcomed();
    this._isBusy = false;
    this._credentials.accepted(connection.token);
    if (connection.name !== this._ladder.channel) this._ladder.moveTo(connection.name);
    // A connection that keeps breaking must not put off the climb for ever.
    if (this._liveName !== connection.name) this._schedule.climb(this._ladder.climbDelayMs());
    this._liveName = connection.name;
    if (old !== null) this._overlap.letGo(old);
    this._cause = "";
    this._showState();
  }

  /**
   * The server named a time for the next connection: `reconnect_later`, or an error before its close. `isReplaced`: come
   * then while the old connection still delivers.
   */
  slot(afterMs: number, isReplaced: boolean): void {
    this._schedule.slot(afterMs, isReplaced);
    if (isReplaced) this._turn += 1; // this one is about to go
    this._signal.wake();
  }

  reconnect(cause: string): void {
    const { current } = this;
    if (current === null) return;
    current.close();
    this._ended(current, broken(cause));
  }

  /** Resolves when the next long poll may go out; never for one whose successor is live. */
  async mayPoll(connection: Connection): Promise<void> {
    await this._overlap.mayPoll();
    if (connection !== this.current) await new Promise(() => undefined);
  }

  private _ended(connection: Connection, ending: Ending): void {
    if (connection !== this.current || this._isClosed) return;
    this._noteHealth(connection);
    this._turn += 1;
    this.current = null;
    this._schedule.lost();
    this._lastId = isClosedByServer(ending) ? null : connection.id;
    this._sink.lost();
    if (this._isAttempting) this._heldEnding = ending;
    else this._handle(ending, connection);
    this._signal.wake();
  }

  // ---- one attempt -------------------------------------------------------------------------------------------------

  private async _attempt(): Promise<void> {
    this._isAttempting = true;
    const isClimb = this.current !== null && !this._schedule.isReplacing;
    if (this.current !== null) this._noteHealth(this.current);
    this._url = this._settings.urls[this._turn % this._settings.urls.length] ?? this._url;
    this._showState();
    const { _platform: platform, _settings: settings, _url: base } = this;
    const token = await tokenInTime(platform, this._credentials, settings.timing.connectTimeout);
    if (token === undefined && !this._isClosed) {
      this._sink.error(new RelayError("no_token", "the token could not be fetched", true));
    }
    await this._overlap.hold(this.current);
    let connection: Connection | null = null;
    let ending: Ending | null = broken("no token");
    if (token !== undefined && !this._isClosed) {
      const name = (isClimb && this._ladder.target) || this._ladder.channel;
      const onEnd = this._ended.bind(this);
      connection = this._opening = new Connection(platform, settings, this._sink, onEnd, name, base, token);
      const query = this._query(name);
      ending = await connection.open({ base, settings, query, token });
      if (ending?.kind === "broken" && !connection.isAnswered && !this._isClosed) {
        const later = await loadLater().catch(() => null);
        if (later !== null) ending = await later.explained(platform, settings, connection, query, ending);
      }
    }
    this._isAttempting = false;
    this._opening = null;
    this._overlap.release();
    if (this._isClosed) return;
    if (ending !== null) this._failed(connection, ending, isClimb);
    else if (this._heldEnding !== null) this._failed(connection, this._heldEnding, false); // welcome, and over at once
  }

  private _query(name: ChannelName): Query {
    return queryOf(this._settings, {
      name,
      client: this._sink.client(),
      cursor: this._sink.cursor(),
      replaces: this.current?.id ?? this._lastId,
      retry: this._schedule.failures,
    });
  }

  private _failed(connection: Connection | null, ending: Ending, isClimb: boolean): void {
    this._turn += 1;
    const held = this._heldEnding;
    this._heldEnding = null;
    if (isClimb && this.current !== null && ending.kind !== "error") this._schedule.climb(this._ladder.missed());
    else if (held !== null && judge(held).kind === "final" && !isSuperseded(held)) this._handle(held, null);
    else this._handle(ending, connection);
  }

  // ---- after an end ------------------------------------------------------------------------------------------------

  private _handle(ending: Ending, connection: Connection | null): void {
    this._cause = causeOf(ending);
    const verdict = judge(ending);
    if (isTooBig(ending)) this._sink.tooBig();
    if (ending.kind === "broken" && connection?.isAnswered && !connection.isProven) this._ladder.failed();
    if (verdict.kind === "final") return this._finish(verdict.error);
    if (verdict.kind === "new_token") {
      const error = this._credentials.refused(connection?.token ?? null, this._cause);
      if (error !== null) return this._finish(error);
    }
    const isBusy = verdict.kind === "again" && verdict.isBusy;
    this._isBusy = isBusy || this._schedule.hasSlot;
    this._schedule.wait((verdict.kind === "again" && verdict.afterMs) || 0);
  }

  private _finish(error: RelayError | null): void {
    this.close();
    this._sink.finished(error);
  }

  /** Only a connection that lived and was heard starts the waits anew: one that is accepted and closed does not. */
  private _noteHealth(connection: Connection): void {
    if (!connection.isProven) return;
    this._ladder.proved();
    if (this._platform.now() - connection.welcomedAt >= this._settings.timing.stableAfter) this._schedule.stable();
  }

  // ---- when, and what is shown -------------------------------------------------------------------------------------

  /** When the next attempt is due; Infinity: nothing to do until somebody wakes us. */
  private _due(): number {
    if (this.current !== null) return this._schedule.dueBeside();
    if (this._sink.isFull()) return Infinity;
    return this._schedule.dueAlone(this._isOffline);
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
    const due = state === "live" || state === "connecting" ? Infinity : this._due();
    const retryIn = due === Infinity ? null : Math.max(0, due - this._platform.now());
    const shown = `${state} ${channel} ${due}`;
    if (shown === this._shown) return;
    this._shown = shown;
    this._sink.state({ state, channel, cause: this._cause, retryIn, url: this._url });
  }
}
