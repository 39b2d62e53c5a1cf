/** How inputs and controls reach the gateway: by the live connection where it can carry them, else by HTTP. */

import { ask, type Reply } from "./ask.js";
import type { Connection } from "./connection.js";
import { sessionUrl } from "./http.js";
import { control, type JsonObject } from "./messages.js";
import type { Platform } from "./platform.js";

/** Called where the answer comes by HTTP. `null`: none came, or one that asks to come again later. */
export type Answered = (answer: JsonObject | null, isAccepted: boolean, afterMs: number | null) => void;

export class Uplink {
  private _posts: Promise<void> = Promise.resolve();
  private readonly _stop = new AbortController();

  constructor(
    private readonly _platform: Platform,
    private readonly _session: string,
    private readonly _timeoutMs: number,
    private readonly _client: () => string,
    private readonly _live: () => Connection | null,
  ) {}

  /** False when nothing is live. */
  input(seq: number, payload: JsonObject, answered: Answered): boolean {
    const live = this._live();
    if (live === null) return false;
    if (live.isDuplex) return live.send(JSON.stringify({ type: "text", seq, payload }));
    this._post(live, "input", { client: this._client(), seq, payload }, answered);
    return true;
  }

  /** Nothing happens when nothing is live: it is said again on the next connection. */
  control(payload: JsonObject, answered: Answered): void {
    const live = this._live();
    if (live === null) return;
    const { kind } = payload;
    // Between two polls there is no connection to pause: we do not poll meanwhile.
    if (live.name === "poll" && (kind === "pause" || kind === "resume")) answered({ what: kind }, true, null);
    else if (live.isDuplex) live.send(control(payload));
    else this._post(live, "control", { client: this._client(), ...payload }, answered);
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
