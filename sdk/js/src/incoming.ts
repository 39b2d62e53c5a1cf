/** What a gateway's frames mean to a session: each is handed to the part that it is for. */

import type { Connection } from "./connection.js";
import type { Core } from "./core.js";
import { broken, type Ending } from "./endings.js";
import { ProtocolError } from "./errors.js";
import { BadFrame, control, numberOf, objectOf, readFrame } from "./messages.js";

/** Throws BadFrame, ProtocolError: what ends the connection. */
export function takeFrame(core: Core, connection: Connection, envelope: unknown, bytes: number): void {
  const { conductor, delivery, emitter, reception, speech } = core;
  const frame = readFrame(envelope);
  const { kind, payload, isControl } = frame;
  const afterMs = numberOf(payload.after_ms);
  if (!connection.isWelcome && kind !== "welcome" && !(isControl && kind === "error")) throw new BadFrame("no welcome");
  if (!isControl) {
    connection.pulse?.streaming(frame.run !== null && kind !== "run_end");
    return reception.take(connection, { frame, bytes });
  }
  switch (kind) {
    case "welcome": {
      const isFirst = !connection.isWelcome;
      reception.welcome(connection, frame);
      connection.welcomed(payload);
      if (!isFirst) return;
      conductor.welcomed(connection);
      core.head = numberOf(payload.head) ?? core.head;
      return speech.welcome(payload);
    }
    case "gap":
    case "forked":
    case "snapshot":
      return reception.take(connection, { frame, bytes });
    case "pong":
      return connection.pong();
    case "accepted":
    case "error":
      if (payload.what !== undefined) speech.answered(payload, kind === "accepted");
      else if (afterMs !== null) conductor.slot(connection, afterMs, false);
      return;
    case "ask_open":
      return delivery.opened(objectOf(payload.ask));
    case "reconnect_later":
      return conductor.slot(connection, afterMs ?? 0, true);
    case "expiring":
      return void renew(core, connection);
    case "rhythm":
      return emitter.emit("rhythm", payload);
    case "state":
      return emitter.emit("hook", payload);
  }
}

/** Before the token ends: in band where that is possible, else by a new connection. */
async function renew({ credentials, conductor }: Core, connection: Connection): Promise<void> {
  if (!credentials.isRenewable) return;
  if (!connection.isDuplex) return conductor.slot(connection, 0, true);
  const token = await credentials.next().catch(() => null); // the close that follows asks again
  if (token) connection.send(control({ kind: "auth", token }));
}

/** What an error that a frame caused means for its connection. */
export function endingOfError(error: unknown): Ending {
  if (error instanceof ProtocolError) return { ...broken(error.message), error };
  if (error instanceof BadFrame) return broken(error.message);
  queueMicrotask(() => {
    throw error;
  });
  return broken("internal error");
}
