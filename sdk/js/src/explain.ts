/** Why an attempt failed. */

import { ask, endingOf } from "./ask.js";
import type { Connection } from "./connection.js";
import type { Ending } from "./endings.js";
import { type Query, sessionUrl } from "./http.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";

/** A browser is not told why an upgrade failed: the same URL without it says so. */
export async function explained(
  platform: Platform,
  { session, timing }: Settings,
  { url: base, token }: Connection,
  query: Query,
  ending: Ending,
): Promise<Ending> {
  const url = sessionUrl(base, session, "ws", query);
  const told = endingOf(await ask(platform, { url, token, timeoutMs: timing.connectTimeout }));
  return told.kind === "broken" ? ending : told;
}
