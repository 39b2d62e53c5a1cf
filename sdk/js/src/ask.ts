/** Requests to a gateway: redirects are never followed, every request has a deadline, and what is no answer of ours is none. */

import { INTERNAL, UNAUTHENTICATED } from "./close_codes.js";
import type { Surroundings } from "./core.js";
import { type Ending, NO_GATEWAY } from "./endings.js";
import { type Query, sessionUrl } from "./http.js";
import { type JsonObject, numberOf, objectOf, textOf } from "./messages.js";
import { none } from "./platform.js";
import { refusalOf } from "./refusal.js";

/** `refusal`: the gateway's own error, as its JSON says. `status` 0: no answer, or none of ours. */
export interface Reply {
  /** Somebody answered, if only a proxy. */
  readonly isAnswered: boolean;
  readonly status: number;
  readonly body: JsonObject;
  readonly refusal: JsonObject | null;
  readonly afterMs: number | null;
}

/** What a gateway is asked by: a connection, or what the last one had. */
export interface Asker {
  readonly url: string;
  readonly token: string | null;
}

export interface Asked {
  readonly body?: JsonObject;
  readonly signal?: AbortSignal;
  /** The gateway may take so long, and `connectTimeout` on top of it. */
  readonly waitMs?: number;
}

/** Never throws: no answer is an answer with status 0. */
export async function ask(
  { platform, settings }: Surroundings,
  { url, token }: Asker,
  what: string,
  query: Query,
  { body, signal, waitMs = 0 }: Asked = {},
): Promise<Reply> {
  const deadline = new AbortController();
  const abort = () => deadline.abort();
  const cancel = platform.after(waitMs + settings.timing.connectTimeout, abort);
  signal?.addEventListener("abort", abort);
  try {
    if (!platform.fetch || signal?.aborted) return NO_REPLY;
    const init = requestInit(token, deadline.signal);
    if (body) {
      init.method = "POST";
      init.body = JSON.stringify(body);
      init.headers = { ...init.headers, "Content-Type": JSON_TYPE };
    }
    return await readReply(await platform.fetch(sessionUrl(url, settings, what, query), init));
  } catch {
    return NO_REPLY;
  } finally {
    cancel();
    signal?.removeEventListener("abort", abort);
  }
}

const JSON_TYPE = "application/json";
const NO_REPLY: Reply = { isAnswered: false, status: 0, body: {}, refusal: null, afterMs: null };

export function requestInit(token: string | null, signal: AbortSignal, accept = JSON_TYPE): RequestInit {
  const headers = { Accept: accept, ...(token && { Authorization: `Bearer ${token}` }) };
  return { headers, signal, redirect: "manual", cache: "no-store", credentials: "omit" };
}

/** A body that is not ours (a captive portal's page, a proxy's 502) makes the status 0. */
export async function readReply(response: Response): Promise<Reply> {
  const body = objectOf(await response.json().catch(none));
  const refusal = response.ok ? null : objectOf(body.error);
  const isOurs = refusal ? textOf(refusal.code) : Object.keys(body).length;
  // A proxy that is asked too much may say so for the gateway. A date is of no use without the other host's clock.
  const afterMs = Number(response.headers.get("Retry-After") ?? NaN) * 1000;
  const isBusy = BUSY.includes(response.status) && afterMs >= 0 && afterMs < Infinity;
  const reply = { ...NO_REPLY, isAnswered: true, afterMs: isBusy ? afterMs : null };
  return isOurs ? { ...reply, status: response.status, body, refusal } : reply;
}

/** With these the gateway asks to come later. */
const BUSY = [429, 503];
const TROUBLE = [408, 425];

/** Of the gateway's JSON decision, or of an answer that is none. */
export function endingOf({ status, refusal, afterMs }: Reply): Ending {
  if (!refusal) return afterMs === null ? NO_GATEWAY : { code: 0, reason: "busy", afterMs };
  const error = refusalOf(refusal);
  const reason = error.message;
  if (BUSY.includes(status)) return { code: 0, reason, afterMs };
  if (status === 401) return { code: UNAUTHENTICATED, reason };
  return status >= 500 || TROUBLE.includes(status) ? { code: INTERNAL, reason } : { code: 0, reason, error };
}

/** Of a close that was told in a body. */
export function closeOf(told: unknown): Ending {
  const { code, reason } = objectOf(told);
  return { code: numberOf(code) ?? INTERNAL, reason: textOf(reason) };
}
