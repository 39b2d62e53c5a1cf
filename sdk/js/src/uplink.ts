/** How inputs and controls reach the gateway: by the live connection where it can carry them, else by HTTP. */

import type { Connection } from "./connection.js";
import { ask, type Reply, sessionUrl } from "./http.js";
import type { JsonObject } from "./messages.js";
import type { Platform } from "./platform.js";

export interface UplinkSink {
  /** `null`: no answer, or one that asks to come again later. */
  inputAnswered(seq: number, answer: JsonObject | null, isAccepted: boolean, afterMs: number | null): void;
  controlAnswered(id: string, answer: JsonObject | null, isAccepted: boolean, afterMs: number | null): void;
}

type Answered = (answer: JsonObject | null, isAccepted: boolean, afterMs: number | null) => void;

export class Uplink {
  private _posts: Promise<void> = Promise.resolve();
  private readonly _stop = new AbortController();

  constructor(
    private readonly _platform: Platform,
    private readonly _session: string,
    private readonly _timeoutMs: number,
    private readonly _client: () => string,
    private readonly _live: () => Connection | null,
    private readonly _sink: UplinkSink,
  ) {}

  /** False when nothing is live. */
  input(seq: number, payload: JsonObject): boolean {
    const live = this._live();
    if (live === null) return false;
    if (live.isDuplex) return live.send(JSON.stringify({ type: "text", seq, payload }));
    this._post(live, "input", { client: this._client(), seq, payload }, (...answer) =>
      this._sink.inputAnswered(seq, ...answer),
    );
    return true;
  }

  /** Nothing happens when nothing is live: it is said again on the next connection. */
  control(id: string, payload: JsonObject): void {
    const live = this._live();
    if (live === null) return;
    if (live.isDuplex) {
      live.send(JSON.stringify({ type: "control", payload }));
      return;
    }
    if (live.name === "poll" && (payload.kind === "pause" || payload.kind === "resume")) {
      // Between two polls there is no connection to pause: we do not poll meanwhile.
      if (id) this._sink.controlAnswered(id, { what: payload.kind }, true, null);
      return;
    }
    this._post(live, "control", { client: this._client(), ...payload }, (...answer) =>
      this._sink.controlAnswered(id, ...answer),
    );
  }

  close(): void {
    this._stop.abort();
  }

  /** One after the other: inputs must come in the order of their numbers. */
  private _post(live: Connection, what: string, body: JsonObject, answered: Answered): void {
    this._posts = this._posts.then(async () => {
      if (this._stop.signal.aborted) return;
      const url = sessionUrl(live.url, this._session, what);
      const { signal } = this._stop;
      const reply = await ask(this._platform, { url, token: live.token, timeoutMs: this._timeoutMs, body, signal });
      if (!signal.aborted) tell(reply, answered);
    });
  }
}

const RETRYABLE = [408, 425, 429];

function tell(reply: Reply, answered: Answered): void {
  const { refusal, status, body, afterMs } = reply;
  if (refusal === null) return answered(status === 0 ? null : body, status !== 0, null);
  const isRetryable = RETRYABLE.includes(status) || status >= 500 || status === 401; // a new token is on its way then
  if (isRetryable) return answered(null, false, afterMs);
  answered({ ...refusal.details, code: refusal.code, message: refusal.message }, false, null);
}
