/** What a session says: inputs and controls, settled over all its connections. Part of what is loaded later. */

import type { Connection } from "./connection.js";
import type { RelayError } from "./errors.js";
import type { InputEvent } from "./events.js";
import { InputQueue } from "./input_queue.js";
import { type JsonObject, numberOf, objectOf, textOf } from "./messages.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";
import { Requests } from "./requests.js";
import type { SavedInput } from "./store.js";
import { Uplink } from "./uplink.js";

export interface SpeechSink {
  client(): string;
  live(): Connection | null;
  keep(inputs: readonly SavedInput[]): Promise<void>;
  status(event: InputEvent): void;
}

export class Speech {
  readonly queue: InputQueue;
  readonly requests: Requests;
  private readonly _uplink: Uplink;

  constructor(platform: Platform, settings: Settings, sink: SpeechSink) {
    const { session, timing, queueItems, queueBytes } = settings;
    const uplink = new Uplink(platform, session, timing.connectTimeout, sink.client, sink.live);
    this._uplink = uplink;
    this.requests = new Requests(platform, (payload, answered) => uplink.control(payload, answered));
    this.queue = new InputQueue(platform, queueItems, queueBytes, {
      send: (seq, payload, answered) => uplink.input(seq, payload, answered),
      isDuplex: () => sink.live()?.isDuplex === true,
      keep: sink.keep,
      status: sink.status,
    });
  }

  /** A connection is live: whatever is not settled is said again. */
  welcome(payload: JsonObject): void {
    this.queue.welcome(numberOf(payload.input_seq), numberOf(objectOf(payload.limits).message_bytes));
    this.requests.welcome();
  }

  /** An `accepted` or `error` frame that says what it answers. */
  answered(payload: JsonObject, isAccepted: boolean): void {
    if (payload.what !== "input") this.requests.settle(textOf(payload.id), payload, isAccepted);
    else if (isAccepted) this.queue.accepted(payload);
    else this.queue.refused(payload);
  }

  close(error: RelayError): void {
    this.requests.close(error);
    this._uplink.close();
    this.queue.close(error);
  }
}
