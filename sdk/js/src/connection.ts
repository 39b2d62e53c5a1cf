/** One connection from its attempt to its end: what it was told at its welcome, and whether it is alive. */

import type { Channel, ChannelRequest, ChannelSink, OpenChannel } from "./channel.js";
import type { Cursor } from "./cursor.js";
import type { Ending } from "./endings.js";
import { broken } from "./endings.js";
import { loadLater } from "./load_later.js";
import { type JsonObject, numberOf, textOf } from "./messages.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";
import { Pulse } from "./probe.js";
import type { Sized, Source } from "./reception.js";
import type { ChannelName } from "./states.js";
import { openWebSocket } from "./websocket.js";

async function openerOf(name: ChannelName): Promise<OpenChannel> {
  const { openSse, openPoll } = await loadLater();
  return name === "sse" ? openSse : openPoll;
}

const PING = JSON.stringify({ type: "control", payload: { kind: "ping" } });
const DEFAULT_HEARTBEAT_MS = 20_000;

export interface ConnectionOwner {
  /** A frame, in order; after the end none comes. Throws what ends the connection. */
  frame(connection: Connection, envelope: unknown, bytes: number): void;
  rtt(ms: number): void;
  room(connection: Connection): Promise<void>;
  /** What an error thrown by `frame` means. */
  endingOf(error: unknown): Ending;
}

export class Connection implements ChannelSink, Source {
  /** The gateway's id for it; null before the welcome. */
  id: string | null = null;
  /** `<epoch>.<fork>` that its frames are on. */
  line = "";
  start: Cursor | null = null;
  parts: Sized[] = [];
  isWelcome = false;
  /** Something beside the welcome was heard on it. */
  isProven = false;
  /** Somebody was there: its transport was opened, or the gateway could be asked why it was not. */
  isAnswered = false;
  isOver = false;
  welcomedAt = 0;
  /** Not for anybody who prints this. */
  readonly #token: string | null;
  private _channel: Channel | null = null;
  private _pulse: Pulse | null = null;
  private _settle: (ending: Ending | null) => void = () => undefined;

  constructor(
    private readonly _platform: Platform,
    private readonly _settings: Settings,
    private readonly _owner: ConnectionOwner,
    /** It ended after its welcome. */
    private readonly _onEnd: (connection: Connection, ending: Ending) => void,
    readonly name: ChannelName,
    readonly url: string,
    token: string | null,
  ) {
    this.#token = token;
  }

  get token(): string | null {
    return this.#token;
  }

  /** Null when it is welcome; else how it ended before. */
  open(request: ChannelRequest): Promise<Ending | null> {
    return new Promise((resolve) => {
      const cancel = this._platform.after(request.settings.timing.connectTimeout, () =>
        this._end(broken("no answer in time")),
      );
      this._settle = (ending) => {
        cancel();
        resolve(ending);
      };
      if (this.name === "websocket") this._openBy(openWebSocket, request);
      else void openerOf(this.name).then((open) => this._openBy(open, request), this._openFailed);
    });
  }

  private _openBy(open: OpenChannel, request: ChannelRequest): void {
    if (this.isOver) return;
    try {
      this._channel = open(this._platform, request, this);
    } catch {
      this._openFailed();
    }
  }

  private readonly _openFailed = () => this._end(broken("could not be opened"));

  get isDuplex(): boolean {
    return this.name === "websocket";
  }

  get silentMs(): number {
    return this._pulse?.silentMs ?? 0;
  }

  send(text: string): boolean {
    const isSent = !this.isOver && this._channel?.send(text) === true;
    if (isSent) this._pulse?.sent();
    return isSent;
  }

  probe(): void {
    this._pulse?.probe();
  }

  sampleOften(isOften: boolean): void {
    this._pulse?.sampleOften(isOften);
  }

  streaming(isStreaming: boolean): void {
    this._pulse?.streaming(isStreaming);
  }

  /** Let go of it: whatever its transport does later is not heard. */
  close(): void {
    if (!this.isOver) this._finish(broken("closed"));
  }

  // ---- what its channel says ---------------------------------------------------------------------------------------

  opened(): void {
    this.isAnswered = true;
  }

  heard(): void {
    this._pulse?.heard();
  }

  frame(envelope: unknown, bytes: number): void {
    if (this.isOver) return;
    this._pulse?.heard();
    if (this.isWelcome) this.isProven = true;
    try {
      this._owner.frame(this, envelope, bytes);
    } catch (error) {
      this._end(this._owner.endingOf(error));
    }
  }

  ended(ending: Ending): void {
    this._end(ending);
  }

  async room(): Promise<void> {
    if (!this.isWelcome) return;
    if (this._pulse) this._pulse.isHeld = true;
    await this._owner.room(this);
    if (this._pulse) this._pulse.isHeld = false;
    this.heard();
  }

  // ---- what its frames say -----------------------------------------------------------------------------------------

  /** Also the repeated welcomes of a long poll. */
  welcomed(payload: JsonObject): void {
    this.id = textOf(payload.connection) || this.id;
    if (this.isWelcome) return;
    this.isWelcome = true;
    this.welcomedAt = this._platform.now();
    const told = numberOf(payload.heartbeat);
    const timing = {
      heartbeatMs: this._settings.heartbeat ?? (told === null ? DEFAULT_HEARTBEAT_MS : told * 1000),
      keepAliveMs: this._settings.keepAlive,
      probeTimeoutMs: this._settings.timing.probeTimeout,
      runQuietMs: this._settings.timing.runQuiet,
    };
    if (this.name !== "poll") {
      this._pulse = new Pulse(this._platform, this.isDuplex, timing, {
        ping: () => this.send(PING),
        dead: () => {
          this._channel?.close(true);
          this._end(broken("it fell silent"));
        },
        rtt: (ms) => this._owner.rtt(ms),
      });
    }
    this._settle(null);
  }

  pong(): void {
    this.isProven = true;
    this._pulse?.pong();
  }

  private _end(ending: Ending): void {
    if (this.isOver) return;
    this._finish(ending);
    if (this.isWelcome) this._onEnd(this, ending);
  }

  private _finish(ending: Ending): void {
    this.isOver = true;
    this._pulse?.stop();
    this._channel?.close(false);
    this._settle(ending);
  }
}
