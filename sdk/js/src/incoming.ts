/** What a gateway's frames mean to a session: each is handed to the part that it is for. */

import type { Conductor } from "./conductor.js";
import type { Connection } from "./connection.js";
import type { Credentials } from "./credentials.js";
import type { Delivery } from "./delivery.js";
import { broken, type Ending } from "./endings.js";
import { ProtocolError } from "./errors.js";
import type { Emitter } from "./events.js";
import { BadFrame, control, type Frame, type JsonObject, numberOf, objectOf, readFrame } from "./messages.js";
import type { Reception } from "./reception.js";
import type { Speaking } from "./speaking.js";

export class Incoming {
  /** The position of the log's last message, as the newest welcome told it; null before the first. */
  head: number | null = null;

  constructor(
    private readonly _emitter: Emitter,
    private readonly _credentials: Credentials,
    private readonly _conductor: Conductor,
    private readonly _reception: Reception,
    private readonly _delivery: Delivery,
    private readonly _speaking: Speaking,
  ) {}

  /** Throws BadFrame, ProtocolError: what ends the connection. */
  frame(connection: Connection, envelope: unknown, bytes: number): void {
    const frame = readFrame(envelope);
    const { kind, payload, isControl } = frame;
    if (!connection.isWelcome && kind !== "welcome" && !(isControl && kind === "error"))
      throw new BadFrame("no welcome");
    if (!isControl) {
      connection.streaming(frame.run !== null && kind !== "run_end");
      return this._reception.take(connection, frame, bytes);
    }
    switch (kind) {
      case "welcome":
        return this._welcome(connection, frame);
      case "gap":
      case "forked":
      case "snapshot":
        return this._reception.take(connection, frame, bytes);
      case "pong":
        return connection.pong();
      case "accepted":
      case "error":
        return this._answer(connection, payload, kind === "accepted");
      case "ask_open":
        return this._delivery.opened(objectOf(payload.ask));
      case "reconnect_later":
        return this._slot(connection, numberOf(payload.after_ms) ?? 0, true);
      case "expiring":
        return void this._renew(connection);
      case "rhythm":
        return this._emitter.emit("rhythm", payload);
      case "state":
        return this._emitter.emit("hook", payload);
    }
  }

  private _welcome(connection: Connection, frame: Frame): void {
    const { payload } = frame;
    this._reception.welcome(connection, frame);
    const isFirst = !connection.isWelcome;
    connection.welcomed(payload);
    if (!isFirst) return;
    this._conductor.welcomed(connection);
    this.head = numberOf(payload.head) ?? this.head;
    this._speaking.welcome(payload);
  }

  private _answer(connection: Connection, payload: JsonObject, isAccepted: boolean): void {
    if (payload.what !== undefined) return this._speaking.speech?.answered(payload, isAccepted);
    const afterMs = numberOf(payload.after_ms);
    if (afterMs !== null) this._slot(connection, afterMs, false);
  }

  /** A predecessor has nothing to say about our next connection. */
  private _slot(connection: Connection, afterMs: number, isReplaced: boolean): void {
    if (connection === this._conductor.current) this._conductor.slot(afterMs, isReplaced);
  }

  /** Before the token ends: in band where that is possible, else by a new connection. */
  private async _renew(connection: Connection): Promise<void> {
    if (!this._credentials.isRenewable) return;
    if (!connection.isDuplex) return this._slot(connection, 0, true);
    const token = await this._credentials.next().catch(() => null); // the close that follows asks again
    if (token !== null) connection.send(control({ kind: "auth", token }));
  }
}

/** What an error that a frame caused means for its connection. */
export function endingOfError(error: unknown): Ending {
  if (error instanceof ProtocolError) return { kind: "error", error };
  if (error instanceof BadFrame) return broken(error.message);
  queueMicrotask(() => {
    throw error;
  });
  return broken("internal error");
}
