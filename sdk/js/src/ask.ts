/** Requests to a gateway: redirects are never followed, every request has a deadline, and what is no answer of ours is none. */

import { UNAUTHENTICATED } from "./close_codes.js";
import { broken, type Ending, NO_GATEWAY } from "./endings.js";
import { RefusedError } from "./errors.js";
import { type JsonObject, objectOf, textOf } from "./messages.js";
import type { Platform } from "./platform.js";

/** `refusal`: the gateway's own error, as its JSON says. `status` 0: no answer, or none of ours. */
export interface Reply {
  /** Somebody answered, if only a proxy. */
  readonly isAnswered: boolean;
  readonly status: number;
  readonly body: JsonObject;
  readonly refusal: { readonly code: string; readonly message: string; readonly details: JsonObject } | null;
  readonly afterMs: number | null;
}

export interface Request {
  readonly url: string;
  readonly token: string | null;
  readonly timeoutMs: number;
  readonly body?: JsonObject;
  readonly signal?: AbortSignal;
}

/** Never throws: no answer is an answer with status 0. */
export async function ask(platform: Platform, request: Request): Promise<Reply> {
  const deadline = new AbortController();
  const cancel = platform.after(request.timeoutMs, () => deadline.abort());
  const abort = () => deadline.abort();
  request.signal?.addEventListener("abort", abort);
  try {
    if (platform.fetch === null || request.signal?.aborted) return NO_REPLY;
    const init = requestInit(request.token, deadline.signal);
    if (request.body !== undefined) {
      init.method = "POST";
      init.body = JSON.stringify(request.body);
      (init.headers as Record<string, string>)["Content-Type"] = "application/json";
    }
    return await readReply(await platform.fetch(request.url, init));
  } catch {
    return NO_REPLY;
  } finally {
    cancel();
    request.signal?.removeEventListener("abort", abort);
  }
}

const NO_REPLY: Reply = { isAnswered: false, status: 0, body: {}, refusal: null, afterMs: null };

export function requestInit(token: string | null, signal: AbortSignal, accept = "application/json"): RequestInit {
  const headers: Record<string, string> = { Accept: accept };
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  return { headers, signal, redirect: "manual", cache: "no-store", credentials: "omit" };
}

/** A body that is not ours (a captive portal's page, a proxy's 502) makes the status 0. */
export async function readReply(response: Response): Promise<Reply> {
  const body = objectOf(await response.json().catch(() => null));
  const error = objectOf(body.error);
  const code = textOf(error.code);
  const isOurs = response.ok ? Object.keys(body).length > 0 : code !== "";
  // A proxy that is asked too much may say so for the gateway.
  const afterMs = response.status === 429 || response.status === 503 ? retryAfterMs(response) : null;
  if (!isOurs) return { ...NO_REPLY, isAnswered: true, afterMs };
  return {
    isAnswered: true,
    status: response.status,
    body,
    refusal: response.ok ? null : { code, message: textOf(error.message), details: objectOf(error.details) },
    afterMs,
  };
}

/** Of its number form; a date is of no use without the other host's clock. */
function retryAfterMs(response: Response): number | null {
  const value = response.headers.get("Retry-After");
  return value !== null && /^\d+(\.\d+)?$/.test(value) ? Number(value) * 1000 : null;
}

/** Of the gateway's JSON decision, or of an answer that is none. */
export function endingOf(reply: Reply): Ending {
  const { status, refusal, afterMs } = reply;
  if (refusal === null) {
    return afterMs === null ? broken(NO_GATEWAY) : { kind: "busy", reason: "busy", afterMs };
  }
  const reason = refusal.message || refusal.code;
  switch (status) {
    case 401:
      return { kind: "closed", code: UNAUTHENTICATED, reason };
    case 403:
      return { kind: "closed", code: 4403, reason };
    case 404:
    case 410:
      return { kind: "closed", code: 4404, reason };
    case 429:
    case 503:
      return { kind: "busy", reason, afterMs };
    default:
      if (status >= 500 || status === 408 || status === 425) return { kind: "closed", code: 1011, reason };
      return { kind: "error", error: new RefusedError(refusal.code, reason) };
  }
}
