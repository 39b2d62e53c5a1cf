/** One session as an application has it: a loop or listeners to read, methods to speak, and what is known of it. */

import { type Core, createCore } from "./core.js";
import { parseCursor } from "./cursor.js";
import type { RelayError } from "./errors.js";
import { type Ask, CONTENT_EVENTS, type QualityEvent, type RunInfo, type SessionEvents } from "./events.js";
import type { JsonObject, JsonValue, Message } from "./messages.js";
import type { ConnectOptions } from "./options.js";
import { none } from "./platform.js";
import type { ChannelName, SessionState } from "./states.js";

/**
 * Read it by one `for await` loop, or by listeners; with neither, messages wait (and the server holds back). Every text
 * message comes once and in order, over all reconnects; what cannot be delivered is a `gap`.
 */
export class Session implements AsyncIterable<Message> {
  private readonly _core: Core;

  /** Use `connect`. Throws RelayError `bad_options`. */
  constructor(options: ConnectOptions) {
    this._core = createCore(options);
  }

  // ---- what is known -----------------------------------------------------------------------------------------------

  get state(): SessionState {
    return this._core.shown.state;
  }

  get channel(): ChannelName | null {
    return this._core.shown.channel;
  }

  /** Why it is closed for good; null while it is not, and after `close`. */
  get error(): RelayError | null {
    return this._core.error;
  }

  /** After the last message that the application took; null before the first. */
  get cursor(): string | null {
    return this._core.delivery.cursor ?? this._core.reception.cursor;
  }

  /** Our client id; empty until the store has been read. */
  get client(): string {
    return this._core.clientId;
  }

  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  get head(): number | null {
    return this._core.head;
  }

  get quality(): QualityEvent {
    return this._core.quality.now();
  }

  /** Inputs that wait to be accepted. */
  get queued(): number {
    return this._core.speech.queue.length;
  }

  /** Those that are open, and the last ones that ended. */
  get runs(): readonly RunInfo[] {
    return this._core.delivery.runs;
  }

  /** Open ones. */
  get asks(): readonly Ask[] {
    return this._core.delivery.asks;
  }

  /** The run's text as far as the application took its messages. */
  text(run: string): string {
    return this._core.texts.runs.get(run)?.text.value() ?? "";
  }

  thinking(run: string): string {
    return this._core.texts.runs.get(run)?.thinking.value() ?? "";
  }

  // ---- to read -----------------------------------------------------------------------------------------------------

  /** Returns how to stop listening. */
  on<K extends keyof SessionEvents>(name: K, listener: (event: SessionEvents[K]) => void): () => void {
    const off = this._core.emitter.on(name, listener);
    if (CONTENT_EVENTS.includes(name)) queueMicrotask(() => this._core.delivery.drain());
    return off;
  }

  /** One loop at a time; a later one goes on where it was left. Throws `session.error` when it ends by one. */
  [Symbol.asyncIterator](): AsyncIterator<Message, undefined> {
    return this._core.delivery.loop();
  }

  // ---- to speak ----------------------------------------------------------------------------------------------------

  /** To the agent. Resolves when it is durable, exactly once whatever happens to connections. Rejects with RelayError. */
  send(payload: JsonObject): Promise<JsonObject> {
    return this._core.speech.input(payload);
  }

  /** End the run: when this resolves, no more of its text comes. `seen`: what was on screen; default: what was taken. */
  interrupt(run: string, seen?: { readonly seq: number; readonly at: number }): Promise<JsonObject> {
    const { delivery, texts, speech } = this._core;
    const own = delivery.cursor && { ...parseCursor(delivery.cursor), at: texts.runs.get(run)?.text.length ?? 0 };
    const told = seen ?? own;
    const accepted = speech.control("interrupt", told ? { run, seen: { seq: told.seq, at: told.at } } : { run });
    accepted.then(() => delivery.silence(run), none);
    return accepted;
  }

  /** No text until `resume`; also on later connections. Nothing is lost. */
  pause(): Promise<JsonObject> {
    return this._core.speech.control("pause", {});
  }

  resume(): Promise<JsonObject> {
    return this._core.speech.control("resume", {});
  }

  /** End the run for everybody. */
  cancel(run: string, reason?: string): Promise<JsonObject> {
    return this._core.speech.control("cancel", { run, reason });
  }

  /** `winner` says whether this was the first valid answer. */
  answer(ask: string, value: JsonValue): Promise<JsonObject> {
    return this._core.speech.control("answer", { ask, value });
  }

  /** The connection may be dead without knowing: ask it now. Page events do this by themselves. */
  probe(): void {
    this._core.conductor.askNow();
  }

  /** A renderer says how far it is behind, in ms; 0 when it has caught up. */
  reportBehind(ms: number): void {
    this._core.quality.behind(ms);
  }

  /** Leaves nothing behind. Resolves when the place is kept. */
  async close(): Promise<void> {
    this._core.acks.writeOut();
    this._core.finish(null);
    await this._core.started;
    await this._core.keeper.writeOut();
  }
}

/** A session that connects at once and keeps connected until `close`, or until a refusal that nothing would change. */
export function connect(options: ConnectOptions): Session {
  return new Session(options);
}
