/** One session as an application has it: a loop or listeners to read, methods to speak, and what is known of it. */

import { Acks } from "./acks.js";
import { Conductor } from "./conductor.js";
import { Credentials } from "./credentials.js";
import { formatCursor, parseCursor } from "./cursor.js";
import { Delivery } from "./delivery.js";
import { RelayError } from "./errors.js";
import type { Ask, QualityEvent, RunInfo, SessionEvents, StateEvent } from "./events.js";
import { CONTENT_EVENTS, Emitter } from "./events.js";
import { endingOfError, Incoming } from "./incoming.js";
import { Keeper } from "./keeper.js";
import { control, type JsonObject, type JsonValue, type Message } from "./messages.js";
import { type ConnectOptions, readOptions, type Settings } from "./options.js";
import { PageWatch } from "./page.js";
import { defaultPlatform, type Platform } from "./platform.js";
import { QualityWatch } from "./quality_watch.js";
import { Reception } from "./reception.js";
import { type Recover, recoverBy } from "./recover.js";
import { Speaking } from "./speaking.js";
import type { ChannelName, SessionState } from "./states.js";
import { MemoryStore } from "./store.js";
import { takePlace } from "./tab_place.js";
import { RunTexts } from "./texts.js";

/**
 * Read it by one `for await` loop, or by listeners; with neither, messages wait (and the server holds back). Every text
 * message comes once and in order, over all reconnects; what cannot be delivered is a `gap`.
 */
export class Session implements AsyncIterable<Message> {
  /** Why it is closed for good; null while it is not, and after `close`. */
  error: RelayError | null = null;
  private _clientId = "";
  private _state: StateEvent = { state: "connecting", channel: null, cause: "", retryIn: null, url: "" };
  private _isClosed = false;
  private _releaseLock: () => void = () => undefined;
  private readonly _platform: Platform;
  private readonly _settings: Settings;
  private readonly _emitter = new Emitter();
  private readonly _texts = new RunTexts();
  private readonly _quality: QualityWatch;
  private readonly _credentials: Credentials;
  private readonly _keeper: Keeper;
  private readonly _conductor: Conductor;
  private readonly _incoming: Incoming;
  private readonly _delivery: Delivery;
  private readonly _speaking: Speaking;
  private readonly _acks: Acks;
  private readonly _page: PageWatch;
  private readonly _started: Promise<void>;
  private readonly _reception: Reception;
  private readonly _recover: Recover;

  /** Use `connect`. Throws RelayError `bad_options`. */
  constructor(options: ConnectOptions) {
    const settings = readOptions(options);
    const base = options.platform ?? defaultPlatform();
    const { WebSocket = base.WebSocket, fetch = base.fetch } = options;
    const platform: Platform = Object.assign(Object.create(base), { WebSocket, fetch });
    const { timing } = settings;
    this._settings = settings;
    this._platform = platform;
    this._credentials = new Credentials(options.token);
    const fail = (message: string) => this._emitter.emit("error", new RelayError("store", message, true));
    const store = options.store ?? new MemoryStore();
    this._keeper = new Keeper(platform, store, settings.session, settings.user, fail);
    this._conductor = new Conductor(platform, settings, this._credentials, {
      client: () => this._clientId,
      cursor: () => this._reception.cursor,
      isFull: () => this._delivery.isFull,
      frame: (connection, envelope, bytes) => this._incoming.frame(connection, envelope, bytes),
      rtt: (ms) => this._quality.roundTrip(ms),
      room: async (connection) => {
        await this._delivery.room();
        if (connection.name !== "poll") return;
        await this._speaking.speech?.requests.unpaused();
        await this._conductor.mayPoll(connection);
      },
      endingOf: endingOfError,
      state: (event) => this._onState(event),
      lost: () => this._speaking.lost(),
      tooBig: () => void this._speaking.speech?.queue.tooBig(),
      finished: (error) => this._finish(error),
      error: (error) => this._emitter.emit("error", error),
    });
    this._speaking = new Speaking(platform, settings, () => this._started, {
      client: () => this._clientId,
      live: () => this._conductor.current,
      keep: (inputs) => this._keeper.keepInputs(inputs),
      status: (event) => this._emitter.emit("input", event),
    });
    this._acks = new Acks(platform, timing.ackBytes, timing.ackAfter, (cursor) => {
      const live = this._conductor.current;
      if (live?.isDuplex && live.line === cursor.line) live.send(control({ kind: "ack", seq: cursor.seq }));
    });
    this._delivery = new Delivery(platform, this._emitter, this._texts, {
      isWhole: () => settings.segments === "whole" || (settings.segments === "auto" && this._quality.isDegraded),
      applied: (cursor, bytes) => {
        this._acks.note(cursor, bytes);
        this._keeper.moved(formatCursor(cursor));
      },
      behind: (ms) => this._quality.behind(ms, true),
      roomAgain: () => this._conductor.wake(),
      fill: (run, known) => void this._recover((recovery) => recovery.fill(run, known)),
      verify: (run, told) => void this._recover((recovery) => recovery.verify(run, told)),
    });
    this._quality = new QualityWatch(platform, this._emitter, () => this._conductor.current);
    this._recover = recoverBy(platform, this._emitter, this._texts, () => {
      const live = this._conductor.current;
      if (this._isClosed) return null;
      return {
        base: live?.url ?? this._state.url,
        session: settings.session,
        client: this._clientId,
        token: live?.token ?? this._credentials.current,
        timeoutMs: timing.connectTimeout,
      };
    });
    this._reception = new Reception(platform, timing.reorder, {
      put: (frame, position, bytes) => this._delivery.put(frame, position, bytes),
      fetch: (since) => this._recover((recovery) => recovery.missing(since, this._reception)),
      reconnect: (cause) => this._conductor.reconnect(cause),
    });
    const { _emitter, _credentials, _conductor, _reception, _delivery, _speaking } = this;
    this._incoming = new Incoming(_emitter, _credentials, _conductor, _reception, _delivery, _speaking);
    this._page = new PageWatch(platform, {
      probe: () => this.probe(),
      online: () => this._conductor.online(),
      offline: () => this._conductor.offline(),
      leaving: () => void this._keeper.flush(),
    });
    this._started = this._start(options);
  }

  // ---- what is known -----------------------------------------------------------------------------------------------

  get state(): SessionState {
    return this._state.state;
  }

  get channel(): ChannelName | null {
    return this._state.channel;
  }

  /** After the last message that the application took; null before the first. */
  get cursor(): string | null {
    return this._delivery.cursor ?? this._reception.cursor;
  }

  /** Our client id; empty until the store has been read. */
  get client(): string {
    return this._clientId;
  }

  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  get head(): number | null {
    return this._incoming.head;
  }

  get quality(): QualityEvent {
    return this._quality.current();
  }

  /** Inputs that wait to be accepted. */
  get queued(): number {
    return this._speaking.queued;
  }

  /** Those that are open, and the last ones that ended. */
  get runs(): readonly RunInfo[] {
    return this._delivery.runs;
  }

  /** Open ones. */
  get asks(): readonly Ask[] {
    return this._delivery.asks;
  }

  /** The run's text as far as the application took its messages. */
  text(run: string): string {
    return this._texts.runs.get(run)?.text.value() ?? "";
  }

  thinking(run: string): string {
    return this._texts.runs.get(run)?.thinking.value() ?? "";
  }

  // ---- to read -----------------------------------------------------------------------------------------------------

  /** Returns how to stop listening. */
  on<K extends keyof SessionEvents>(name: K, listener: (event: SessionEvents[K]) => void): () => void {
    const off = this._emitter.on(name, listener);
    if (CONTENT_EVENTS.includes(name)) queueMicrotask(() => this._delivery.drain());
    return off;
  }

  /** One loop at a time; a later one goes on where it was left. Throws `session.error` when it ends by one. */
  [Symbol.asyncIterator](): AsyncIterator<Message, undefined> {
    return this._delivery.loop();
  }

  // ---- to speak ----------------------------------------------------------------------------------------------------

  /** To the agent. Resolves when it is durable, exactly once whatever happens to connections. Rejects with RelayError. */
  send(payload: JsonObject): Promise<JsonObject> {
    return this._speaking.input(payload);
  }

  /** End the run: when this resolves, no more of its text comes. `seen`: what was on screen; default: what was taken. */
  interrupt(run: string, seen?: { readonly seq: number; readonly at: number }): Promise<JsonObject> {
    const position = this._delivery.cursor;
    const own = position && { seq: parseCursor(position).seq, at: this._texts.runs.get(run)?.text.length ?? 0 };
    const told = seen ?? own;
    const accepted = this._speaking.control("interrupt", told ? { run, seen: { ...told } } : { run });
    accepted.then(
      () => this._delivery.silence(run),
      () => undefined,
    );
    return accepted;
  }

  /** No text until `resume`; also on later connections. Nothing is lost. */
  pause(): Promise<JsonObject> {
    return this._speaking.control("pause", {});
  }

  resume(): Promise<JsonObject> {
    return this._speaking.control("resume", {});
  }

  /** End the run for everybody. */
  cancel(run: string, reason?: string): Promise<JsonObject> {
    return this._speaking.control("cancel", reason === undefined ? { run } : { run, reason });
  }

  /** `winner` says whether this was the first valid answer. */
  answer(ask: string, value: JsonValue): Promise<JsonObject> {
    return this._speaking.control("answer", { ask, value });
  }

  /** The connection may be dead without knowing: ask it now. Page events do this by themselves. */
  probe(): void {
    this._conductor.probe();
  }

  /** A renderer says how far it is behind, in ms; 0 when it has caught up. */
  reportBehind(ms: number): void {
    this._quality.behind(ms, false);
  }

  /** Leaves nothing behind. Resolves when the place is kept. */
  async close(): Promise<void> {
    this._acks.flush();
    this._finish(null);
    await this._started;
    await this._keeper.flush();
  }

  // ---- its life ----------------------------------------------------------------------------------------------------

  private async _start(options: ConnectOptions): Promise<void> {
    const place = await takePlace(this._platform, this._keeper, this._settings.session, options);
    if (this._isClosed) return place.release();
    this._releaseLock = place.release;
    this._clientId = place.client;
    this._reception.place.cursor = place.cursor;
    this._delivery.isFilling = place.cursor !== null;
    this._speaking.saved = place.inputs;
    // What ends its loop is an error of this code: nobody else could tell the application.
    this._conductor.run().catch((error: unknown) => {
      this._finish(new RelayError("internal", error instanceof Error ? error.message : "internal error"));
    });
  }

  private _finish(error: RelayError | null): void {
    if (this._isClosed) return;
    this._isClosed = true;
    this.error = error;
    this._conductor.close();
    this._page.stop();
    this._acks.stop();
    this._reception.stop();
    this._speaking.close(error);
    this._releaseLock();
    const { url } = this._state;
    this._onState({ state: "closed", channel: null, cause: error?.message ?? "closed", retryIn: null, url });
    this._delivery.end(error);
    void this._keeper.flush();
  }

  private _onState(event: StateEvent): void {
    this._state = event;
    this._emitter.emit("state", event);
  }
}

/** A session that connects at once and keeps connected until `close`, or until a refusal that nothing would change. */
export function connect(options: ConnectOptions): Session {
  return new Session(options);
}
