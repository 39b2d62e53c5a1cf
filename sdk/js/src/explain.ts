/** Why an attempt failed. */

import { ask, endingOf } from "./ask.js";
import type { Connection } from "./connection.js";
import type { Ending } from "./endings.js";
import { type Query, sessionUrl } from "./http.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";

/**
 * An attempt whose transport was never there: the same URL without an upgrade says why (a browser is not told), or that
 * somebody answers at all, which is noted on the connection.
 */
export async function explained(
  platform: Platform,
  { session, timing }: Settings,
  connection: Connection,
  query: Query,
  ending: Ending,
): Promise<Ending> {
  const { url: base, token } = connection;
  const url = sessionUrl(base, session, "ws", query);
  const reply = await ask(platform, { url, token, timeoutMs: timing.connectTimeout });
  connection.isAnswered = reply.isAnswered;
  const told = endingOf(reply);
  return told.kind === "broken" ? ending : told;
}
