/** One connection from its attempt to its end: what it was told at its welcome, and whether it is alive. */

import { ask, endingOf } from "./ask.js";
import type { Channel, OpenChannel } from "./channel.js";
import type { Core } from "./core.js";
import type { Cursor } from "./cursor.js";
import { broken, type Ending, isBroken } from "./endings.js";
import type { Query } from "./http.js";
import { endingOfError, takeFrame } from "./incoming.js";
import { type JsonObject, numberOf, textOf } from "./messages.js";
import { none } from "./platform.js";
import { openPoll } from "./poll.js";
import { createPulse, type Pulse } from "./probe.js";
import type { Sized } from "./reception.js";
import { openSse } from "./sse.js";
import type { ChannelName } from "./states.js";
import { openWebSocket } from "./websocket.js";

const DEFAULT_HEARTBEAT_SECONDS = 20;

const OPENERS: Readonly<Record<ChannelName, OpenChannel>> = { websocket: openWebSocket, sse: openSse, poll: openPoll };

export function createConnection(core: Core, name: ChannelName, url: string, token: string | null) {
  const { platform, settings } = core;
  let _channel: Channel | null = null;
  let _settle: (ending: Ending | null) => void = none;
  const self = {
    name,
    url,
    isDuplex: name === "websocket",
    /** The gateway's id for it; null before the welcome. */
    id: null as string | null,
    /** `<epoch>.<fork>` that its frames are on. */
    lineId: "",
    start: null as Cursor | null,
    parts: [] as Sized[],
    isWelcome: false,
    /** Something beside the welcome was heard on it. */
    isProven: false,
    /** Somebody was there: its transport was opened, or the gateway could be asked why it was not. */
    isAnswered: false,
    isOver: false,
    welcomedAt: 0,
    /** From its welcome on. A long poll has none: each answer is a sign of life. */
    pulse: null as Pulse | null,

    /** A getter: not for anybody who prints this. */
    get token(): string | null {
      return token;
    },

    /** Null when it is welcome; else how it ended before. */
    async open(query: Query): Promise<Ending | null> {
      const cancel = platform.after(settings.timing.connectTimeout, () => self.ended(broken("no answer in time")));
      const opened = new Promise<Ending | null>((resolve) => {
        _settle = resolve;
      });
      try {
        _channel = OPENERS[name](core, self, query);
      } catch {
        self.ended(broken("could not be opened"));
      }
      const ending = await opened;
      cancel();
      if (!ending || !isBroken(ending) || self.isAnswered || core.isOver) return ending;
      // The same URL without an upgrade says why (a browser is not told), or that somebody answers at all.
      const reply = await ask(core, self, "ws", query);
      self.isAnswered = reply.isAnswered;
      const told = endingOf(reply);
      return isBroken(told) ? ending : told;
    },

    send(text: string): boolean {
      const isSent = !self.isOver && _channel?.send?.(text) === true;
      if (isSent) self.pulse?.sent();
      return isSent;
    },

    /** Let go of it: whatever its transport does later is not heard. */
    close(): void {
      if (!self.isOver) _finish(broken("closed"));
    },

    // ---- what its channel says -------------------------------------------------------------------------------------

    opened(): void {
      self.isAnswered = true;
    },

    heard(): void {
      self.pulse?.heard();
    },

    frame(envelope: unknown, bytes: number): void {
      if (self.isOver) return;
      self.heard();
      self.isProven ||= self.isWelcome;
      try {
        takeFrame(core, self, envelope, bytes);
      } catch (error) {
        self.ended(endingOfError(error));
      }
    },

    ended(ending: Ending): void {
      if (self.isOver) return;
      _finish(ending);
      if (self.isWelcome) core.conductor.ended(self, ending);
    },

    async room(): Promise<void> {
      if (!self.isWelcome) return;
      if (self.pulse) self.pulse.isHeld = true;
      await core.intake.room();
      if (name === "poll") {
        await core.speech.requests.unpaused();
        await core.conductor.mayPoll(self);
      }
      if (self.pulse) self.pulse.isHeld = false;
      self.heard();
    },

    // ---- what its frames say ---------------------------------------------------------------------------------------

    /** Also the repeated welcomes of a long poll. */
    welcomed(payload: JsonObject): void {
      self.id = textOf(payload.connection) || self.id;
      if (self.isWelcome) return;
      self.isWelcome = true;
      self.welcomedAt = platform.now();
      const heartbeatMs = settings.heartbeat ?? (numberOf(payload.heartbeat) ?? DEFAULT_HEARTBEAT_SECONDS) * 1000;
      if (name !== "poll") self.pulse = createPulse(core, self, heartbeatMs);
      _settle(null);
    },

    pong(): void {
      self.isProven = true;
      self.pulse?.pong();
    },

    /** Its transport may never say so. */
    dead(): void {
      _channel?.close(true);
      self.ended(broken("it fell silent"));
    },
  };
  return self;

  function _finish(ending: Ending): void {
    self.isOver = true;
    self.pulse?.stop();
    _channel?.close(false);
    _settle(ending);
  }
}

export type Connection = ReturnType<typeof createConnection>;
