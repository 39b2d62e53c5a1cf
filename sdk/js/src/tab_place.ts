/** Where a page begins: the place that its store has, unless another page is at it. */

import type { Core } from "./core.js";
import { type Cursor, parseCursor } from "./cursor.js";
import { none, type Platform } from "./platform.js";

/** What the application asks for goes before what was kept. Returns how to give the client id back. */
export async function takePlace(
  core: Core,
  asked: { readonly client?: string | null; readonly cursor?: string | null },
): Promise<() => void> {
  const { platform, keeper, settings, reception, delivery, speech } = core;
  const saved = await keeper.load();
  const take = (client: string) => platform.lock(`relayrouter:${settings.session}:${client}`);
  let client = asked.client ?? saved?.client ?? freshClient(platform);
  let release = await take(client);
  if (!release) {
    // Another page has this id: a duplicated tab has the same place, and must not take over from the first one.
    client = freshClient(platform);
    release = await take(client);
    if (keeper.isShared) keeper.forsake();
  }
  const cursor = asked.cursor ?? saved?.cursor ?? null;
  const inputs = saved?.client === client ? saved.inputs : [];
  keeper.begin(client, cursor, inputs);
  core.clientId = client;
  reception.place = savedCursor(cursor);
  delivery.isFilling = !!reception.place;
  speech.queue.restore(inputs);
  return release ?? none;
}

/** What an older version kept, or somebody else wrote, is no position. */
function savedCursor(text: string | null): Cursor | null {
  try {
    return parseCursor(text);
  } catch {
    return null;
  }
}

const ID_BYTES = 12;

const freshClient = (platform: Platform): string => `js-${platform.randomHex(ID_BYTES)}`;
