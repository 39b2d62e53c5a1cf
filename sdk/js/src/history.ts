/** Pages of the log by HTTP: to fill a hole, or to fetch a run's text again. Disturbs no connection. */

import { ask } from "./ask.js";
import { sessionUrl } from "./http.js";
import type { Platform } from "./platform.js";

export interface HistoryRequest {
  readonly base: string;
  readonly session: string;
  readonly client: string;
  readonly token: string | null;
  /** A cursor; null: the start of the retained log. */
  readonly since: string | null;
  readonly timeoutMs: number;
}

const LIMIT = "1000";
/** Of one reading; the gateway's log has no more messages by default. */
const MAX_PAGES = 20;

/** Hands on each page's envelopes; `onPage` returns false to stop. False: it could not be read to its end. */
export async function readHistory(
  platform: Platform,
  request: HistoryRequest,
  onPage: (frames: readonly unknown[]) => boolean,
): Promise<boolean> {
  let { since } = request;
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = { client: request.client, limit: LIMIT, ...(since !== null && { since }) };
    const url = sessionUrl(request.base, request.session, "messages", query);
    const { refusal, body } = await ask(platform, { url, token: request.token, timeoutMs: request.timeoutMs });
    if (refusal !== null || !Array.isArray(body.frames)) return false;
    if (!onPage(body.frames)) return true;
    if (body.more !== true || typeof body.cursor !== "string" || body.cursor === since) return true;
    since = body.cursor;
  }
  return false;
}
