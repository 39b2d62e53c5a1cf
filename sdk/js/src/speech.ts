/** What a session says: inputs and controls, settled over all its connections. */

import { ask } from "./ask.js";
import type { Connection } from "./connection.js";
import type { Core } from "./core.js";
import type { RelayError } from "./errors.js";
import { createInputQueue } from "./input_queue.js";
import { control, type JsonObject, numberOf, objectOf, textOf } from "./messages.js";
import { asJson } from "./own_words.js";
import { none } from "./platform.js";
import { createRequests } from "./requests.js";

const RETRYABLE = [401, 408, 425, 429]; // after 401 a new token is on its way

export function createSpeech(core: Core) {
  /** One after the other: inputs must come in the order of their numbers. */
  let _posts: Promise<void> = Promise.resolve();
  const _stop = new AbortController();
  const queue = createInputQueue(core, (input) => _send("input", input));
  const requests = createRequests(core, (request) => _send("control", request));
  const self = {
    queue,
    requests,

    input: (payload: JsonObject): Promise<JsonObject> => _say(payload, queue.add),

    control: (kind: string, fields: JsonObject): Promise<JsonObject> =>
      _say(fields, (copy) => requests.ask(kind, copy)),

    /** A connection is live: whatever is not settled is said again. */
    welcome(payload: JsonObject): void {
      queue.welcome(numberOf(payload.input_seq), numberOf(objectOf(payload.limits).message_bytes));
      requests.welcome();
    },

    /** An `accepted` or `error` that says what it answers. */
    answered(payload: JsonObject, isAccepted: boolean): void {
      if (payload.what === "input") queue.settle(payload, isAccepted);
      else requests.settle(textOf(payload.id), payload, isAccepted);
    },

    /** What waits, and what comes later, is rejected with it. */
    close(error: RelayError): void {
      _stop.abort();
      requests.close(error);
      queue.close(error);
    },
  };
  return self;

  function _say(given: JsonObject, say: (copy: JsonObject) => Promise<JsonObject>): Promise<JsonObject> {
    const said = (async () => say(asJson(given)))();
    said.catch(none); // nobody has to wait for it
    return said;
  }

  /** By the live connection where it can carry it, else by HTTP. False when it was not sent. */
  function _send(what: "input" | "control", said: JsonObject): boolean {
    const { kind, id, seq } = said;
    const live = core.conductor.current;
    if (!live) return false;
    if (live.isDuplex) return live.send(what === "input" ? JSON.stringify({ type: "text", ...said }) : control(said));
    const answer = { what: kind ?? what, id, seq };
    // Between two polls there is no connection to pause: we do not poll meanwhile.
    if (live.name === "poll" && (kind === "pause" || kind === "resume")) self.answered(answer, true);
    else _posts = _posts.then(() => _post(live, what, said, answer));
    return true;
  }

  async function _post(live: Connection, what: string, said: JsonObject, answer: JsonObject): Promise<void> {
    const { signal } = _stop;
    if (signal.aborted) return;
    const body = { client: core.clientId, ...said };
    const { refusal, status, body: told, afterMs } = await ask(core, live, what, {}, { body, signal });
    if (signal.aborted) return;
    const isRetryable = refusal ? RETRYABLE.includes(status) || status >= 500 : !status;
    if (isRetryable) self.answered({ ...answer, retryable: true, after_ms: afterMs ?? undefined }, false);
    else self.answered({ ...told, ...objectOf(refusal?.details), ...refusal, ...answer }, !refusal);
  }
}

export type Speech = ReturnType<typeof createSpeech>;
