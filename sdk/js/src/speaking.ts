/** Loads what speaks when it is needed, and keeps the order of what is said before it is there. */

import { ClosedError, QueueFullError, type RelayError } from "./errors.js";
import { loadLater } from "./load_later.js";
import type { JsonObject } from "./messages.js";
import type { Settings } from "./options.js";
import { asJson } from "./own_words.js";
import type { Platform } from "./platform.js";
import type { Speech, SpeechSink } from "./speech.js";
import type { SavedInput } from "./store.js";

/** Said before it is loaded. */
const MAX_WAITING = 64;

type Saying = (speech: Speech, copy: JsonObject) => Promise<JsonObject>;

export class Speaking {
  /** Null until it is loaded. */
  speech: Speech | null = null;
  /** Of an earlier life of this page, not accepted yet. */
  saved: readonly SavedInput[] = [];
  /** Of the connection that is live. */
  private _welcome: JsonObject | null = null;
  private _loading: Promise<Speech> | null = null;
  /** What comes now must not overtake them. */
  private _waiting = 0;
  private _closed: RelayError | null = null;

  /** `started`: the client has its id, and `saved` is there. */
  constructor(
    private readonly _platform: Platform,
    private readonly _settings: Settings,
    private readonly _started: () => Promise<void>,
    private readonly _sink: SpeechSink,
  ) {}

  get queued(): number {
    return this.speech?.queue.length ?? this.saved.length;
  }

  /** All in the order of the calls, and as it is now. */
  input(payload: JsonObject): Promise<JsonObject> {
    return this._say(payload, ({ queue }, copy) => queue.add(copy));
  }

  control(kind: string, fields: JsonObject): Promise<JsonObject> {
    return this._say(fields, ({ requests }, copy) => requests.ask(kind, copy));
  }

  welcome(payload: JsonObject): void {
    this._welcome = payload;
    if (this.speech !== null) this.speech.welcome(payload);
    else this._load().catch(none);
  }

  lost(): void {
    this._welcome = null;
    this.speech?.queue.lost();
  }

  /** What waits, and what comes later, is rejected with it. */
  close(error: RelayError | null): void {
    this._closed = error ?? new ClosedError();
    this.speech?.close(this._closed);
  }

  private _say(given: JsonObject, what: Saying): Promise<JsonObject> {
    const said = this._sayWhenLoaded(given, what);
    said.catch(none); // nobody has to wait for it
    return said;
  }

  private async _sayWhenLoaded(given: JsonObject, what: Saying): Promise<JsonObject> {
    const copy = asJson(given);
    if (this.speech !== null && this._waiting === 0) return what(this.speech, copy);
    if (this._waiting >= MAX_WAITING) throw new QueueFullError("too many wait");
    this._waiting += 1;
    let speech: Speech;
    try {
      speech = await this._load();
    } finally {
      this._waiting -= 1; // in the tick in which it is said
    }
    return what(speech, copy);
  }

  private _load(): Promise<Speech> {
    this._loading ??= this._tryToLoad();
    return this._loading;
  }

  /** Until it is there, or the session is closed. */
  private async _tryToLoad(): Promise<Speech> {
    await this._started();
    while (this._closed === null) {
      const later = await loadLater().catch(() => null);
      if (this._closed) break;
      if (later !== null) {
        const speech = new later.Speech(this._platform, this._settings, this._sink);
        speech.queue.restore(this.saved);
        this.speech = speech;
        if (this._welcome !== null) speech.welcome(this._welcome);
        return speech;
      }
      await new Promise<void>((resolve) => this._platform.after(this._settings.timing.backoffBase, resolve));
    }
    throw this._closed;
  }
}

const none = (): void => undefined;
