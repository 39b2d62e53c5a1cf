/**
 * Connects, and connects again: one attempt at a time, whatever asks for it. Waits with full jitter, keeps the slots that
 * servers give, falls down the ladder and climbs it, and replaces a connection before it is broken where it can.
 */

import { createBackoff } from "./backoff.js";
import { finalError, isBusyCode, SUPERSEDED, TOO_BIG, UNAUTHENTICATED } from "./close_codes.js";
import { type Connection, createConnection } from "./connection.js";
import type { Core } from "./core.js";
import { broken, type Ending, isBroken } from "./endings.js";
import type { RelayError } from "./errors.js";
import type { Query } from "./http.js";
import { createLadder } from "./ladder.js";
import { createOverlap } from "./overlap.js";
import { createGate, inTime, none } from "./platform.js";
import type { ChannelName, SessionState } from "./states.js";

/** What cannot be asked is replaced, unless it was heard just now. */
const ALIVE_MS = 1_000;
/** The gateway takes no greater `retry`. */
const MAX_RETRY = 1_000;

/** After "online" or "visible": at once, but not all devices of a network in the same moment. */
const SOON_MS = 500;
/** Between two looks whether a browser that says so is right. */
const OFFLINE_MS = 30_000;

export function createConductor(core: Core) {
  const { platform, settings, credentials } = core;
  const { urls, timing } = settings;
  const { now } = platform;
  const _backoff = createBackoff(core);
  const _ladder = createLadder(core);
  const _overlap = createOverlap(core);
  let _opening: Connection | null = null;
  /** May look alive to its gateway: replaced, which is no take-over by somebody else. */
  let _lastId: string | null = null;
  let _turn = 0;
  /** By what we were live last. */
  let _liveName: ChannelName | null = null;
  /** Without a connection, no attempt is made before. */
  let _notBefore = 0;
  /** The live connection is to go then: an attempt beside it is no mere climb. */
  let _replaceAt = Infinity;
  /** A moment that a server named. */
  let _slotAt = 0;
  let _climbAt = Infinity;
  const _waking = createGate();
  let _isWoken = false;
  let _isBusy = false;
  let _isAttempting = false;
  let _isOffline = !platform.isOnline();
  let _isClosed = false;
  let _cause = "";
  let _url = urls[0] ?? "";
  let _shown = "";
  /** Of the connection that our attempt was to replace. */
  let _heldEnding: Ending | null = null;
  const self = {
    current: null as Connection | null,

    /** Until `close`, or an end that no attempt would change. */
    async run(): Promise<void> {
      while (!_isClosed) {
        const due = _due();
        if (due <= now()) await _attempt();
        else await _until(due);
      }
    },

    close(): void {
      _isClosed = true;
      _overlap.close();
      self.current?.close();
      _opening?.close();
      self.current = null;
      self.wake();
    },

    // ---- what happens outside --------------------------------------------------------------------------------------

    network(isOnline: boolean): void {
      _isOffline = !isOnline;
      if (isOnline) self.askNow();
      else self.wake();
    },

    /** The connection may be dead without knowing: ask it, or replace it when it cannot be asked. */
    askNow(): void {
      const { current } = self;
      if (!current) {
        if (!_isBusy) _notBefore = Math.min(_notBefore, now() + SOON_MS * platform.random());
      } else if (current.isDuplex) {
        current.pulse?.askNow();
      } else if (current.pulse && current.pulse.silentMs > ALIVE_MS) {
        _replaceAt = now();
      }
      self.wake();
    },

    /** There is room again, or something else that the next attempt depends on has changed. */
    wake(): void {
      _showState();
      _goOn();
    },

    // ---- what its connections say ----------------------------------------------------------------------------------

    /** The session has read its first welcome: from here on it is the connection. */
    welcomed(connection: Connection): void {
      const old = self.current;
      const { name, token } = connection;
      self.current = connection;
      _opening = _heldEnding = null;
      _replaceAt = Infinity;
      _slotAt = 0;
      _isBusy = false;
      credentials.accepted(token);
      if (name !== _ladder.channel) _ladder.moveTo(name);
      // A connection that keeps breaking must not put off the climb for ever.
      if (_liveName !== name) _climbAt = now() + _ladder.climbDelayMs();
      _liveName = name;
      if (old) _overlap.letGo(old);
      _cause = "";
      _showState();
    },

    /**
     * The server named a time for the next connection: `reconnect_later`, or an error before its close. `isReplaced`: come
     * then while the old connection still delivers. A predecessor has nothing to say about it.
     */
    slot(connection: Connection, afterMs: number, isReplaced: boolean): void {
      if (connection !== self.current) return;
      _slotAt = now() + _backoff.spread(afterMs);
      if (isReplaced) {
        _replaceAt = _slotAt;
        _turn += 1; // this one is about to go
      }
      _goOn();
    },

    reconnect(cause: string): void {
      const { current } = self;
      current?.close();
      if (current) self.ended(current, broken(cause));
    },

    /** Resolves when the next long poll may go out; never for one whose successor is live. */
    async mayPoll(connection: Connection): Promise<void> {
      await _overlap.mayPoll();
      if (connection !== self.current) await new Promise(none);
    },

    /** After its welcome. */
    ended(connection: Connection, ending: Ending): void {
      if (connection !== self.current || _isClosed) return;
      _noteHealth();
      _turn += 1;
      self.current = null;
      _replaceAt = Infinity;
      _lastId = ending.code ? null : connection.id; // closed by its gateway: nothing is left to replace
      core.speech.queue.lost();
      if (_isAttempting) _heldEnding = ending;
      else _handle(ending, connection);
      _goOn();
    },
  };
  return self;

  // ---- one attempt -------------------------------------------------------------------------------------------------

  async function _attempt(): Promise<void> {
    _isAttempting = true;
    const isClimb = !!self.current && _replaceAt > now();
    _noteHealth();
    _url = urls[_turn % urls.length] ?? "";
    _showState();
    // Undefined: its source failed, or did not answer in time.
    const token = await inTime(platform, timing.connectTimeout, credentials.next).catch(none);
    if (token === undefined && !_isClosed) core.fail("no_token", "the token could not be fetched");
    await _overlap.hold(self.current);
    let connection: Connection | null = null;
    let ending: Ending | null = broken("no token");
    if (token !== undefined && !_isClosed) {
      const name = (isClimb && _ladder.target) || _ladder.channel;
      connection = _opening = createConnection(core, name, _url, token);
      ending = await connection.open(_query(name));
    }
    _isAttempting = false;
    _opening = null;
    _overlap.release();
    if (_isClosed) return;
    if (ending) _failed(connection, ending, isClimb);
    else if (_heldEnding) _failed(connection, _heldEnding, false); // welcome, and over at once
  }

  function _query(name: ChannelName): Query {
    const { heartbeat, from, rhythm } = settings;
    const { cursor } = core.reception;
    const ofSocket = name === "websocket" && 1;
    return {
      client: core.clientId,
      cursor,
      from: cursor ? null : from,
      ack: ofSocket,
      batch: ofSocket,
      replaces: self.current?.id ?? _lastId,
      heartbeat: heartbeat && heartbeat / 1000,
      retry: Math.min(_backoff.failures, MAX_RETRY) || null,
      rhythm: rhythm && 1,
    };
  }

  function _failed(connection: Connection | null, ending: Ending, isClimb: boolean): void {
    _turn += 1;
    const held = _heldEnding;
    _heldEnding = null;
    if (isClimb && self.current && !ending.error) _climbAt = now() + _ladder.missed();
    // While we were opening another one, a take-over may have been our own doing.
    else if (held && held.code !== SUPERSEDED && errorOf(held)) _handle(held, null);
    else _handle(ending, connection);
  }

  // ---- after an end ------------------------------------------------------------------------------------------------

  function _handle(ending: Ending, connection: Connection | null): void {
    const { code, reason, afterMs } = ending;
    _cause = code ? `${reason || "closed"} (${code})` : reason;
    if (code === TOO_BIG) core.speech.queue.tooBig();
    if (isBroken(ending) && connection?.isAnswered && !connection.isProven) _ladder.failed();
    const error = code === UNAUTHENTICATED ? credentials.refused(connection?.token ?? null, _cause) : errorOf(ending);
    if (error) {
      self.close();
      return core.finish(error);
    }
    const slotMs = Math.max(0, _slotAt - now());
    _slotAt = 0;
    _isBusy = afterMs !== undefined || isBusyCode(code) || slotMs > 0;
    _notBefore = now() + (slotMs > (afterMs ?? 0) ? slotMs : _backoff.nextDelayMs(afterMs ?? 0));
  }

  /** Only a connection that lived and was heard starts the waits anew: one that is accepted and closed does not. */
  function _noteHealth(): void {
    const { current } = self;
    if (!current?.isProven) return;
    _ladder.proved();
    if (now() - current.welcomedAt >= timing.stableAfter) _backoff.failures = 0;
  }

  // ---- when, and what is shown -------------------------------------------------------------------------------------

  /** When the next attempt is due; Infinity: nothing to do until somebody wakes us. */
  function _due(): number {
    if (self.current) return Math.min(Math.max(_replaceAt, _notBefore), _climbAt);
    // The application is so far behind that no more may come.
    return core.intake.isFull ? Infinity : _notBefore + (_isOffline ? OFFLINE_MS : 0);
  }

  /** Until that moment, or until it is woken. */
  async function _until(due: number): Promise<void> {
    _showState();
    if (!_isWoken) {
      const cancel = due < Infinity ? platform.after(due - now(), _waking.open) : none;
      await _waking.wait();
      cancel();
    }
    _isWoken = false;
  }

  /** While nobody waits, it ends the next wait at once. */
  function _goOn(): void {
    _isWoken = true;
    _waking.open();
  }

  function _state(): SessionState {
    if (_isOffline) return "offline";
    if (self.current) return "live";
    if (_isAttempting) return "connecting";
    return _isBusy ? "busy" : "waiting";
  }

  function _showState(): void {
    if (_isClosed) return;
    const state = _state();
    const channel = self.current?.name ?? (state === "connecting" ? _ladder.channel : null);
    const due = state === "live" || state === "connecting" ? Infinity : _due();
    const retryIn = due < Infinity ? Math.max(0, due - now()) : null;
    const shown = `${state} ${channel} ${due}`;
    if (shown === _shown) return;
    _shown = shown;
    core.show({ state, channel, cause: _cause, retryIn, url: _url });
  }
}

export type Conductor = ReturnType<typeof createConductor>;

/** What it means for good; null where another attempt is made. */
const errorOf = ({ code, reason, error }: Ending): RelayError | null => error ?? finalError(code, reason);
