/** Where a page begins: the place that its store has, unless another page is at it. */

import { type Cursor, parseCursor } from "./cursor.js";
import type { Keeper } from "./keeper.js";
import type { Platform } from "./platform.js";
import { MemoryStore, type SavedInput } from "./store.js";

export interface Taken {
  readonly client: string;
  readonly cursor: Cursor | null;
  /** Of this client; not accepted yet. */
  readonly inputs: readonly SavedInput[];
  release(): void;
}

/** What the application asks for goes before what was kept. */
export async function takePlace(
  platform: Platform,
  keeper: Keeper,
  session: string,
  asked: { readonly client?: string | null; readonly cursor?: string | null },
): Promise<Taken> {
  const saved = await keeper.load();
  const wanted = asked.client ?? saved?.client ?? freshClient(platform);
  const { client, isDuplicate, release } = await claimClient(platform, session, wanted);
  if (isDuplicate && keeper.isShared) keeper.forsake(new MemoryStore());
  const cursor = asked.cursor ?? saved?.cursor ?? null;
  const inputs = saved?.client === client ? saved.inputs : [];
  keeper.begin(client, cursor, inputs);
  return { client, cursor: savedCursor(cursor), inputs, release };
}

/** What an older version kept, or somebody else wrote, is no position. */
function savedCursor(text: string | null): Cursor | null {
  try {
    return parseCursor(text);
  } catch {
    return null;
  }
}

interface Claimed {
  readonly client: string;
  /** Another page has the id that was asked for. */
  readonly isDuplicate: boolean;
  release(): void;
}

const ID_BYTES = 12;

const freshClient = (platform: Platform): string => `js-${platform.randomHex(ID_BYTES)}`;

/** One page per client id: a duplicated tab has the same place, and must not take over from the first one. */
async function claimClient(platform: Platform, session: string, client: string): Promise<Claimed> {
  const release = await platform.lock(`relayrouter:${session}:${client}`);
  if (release !== null) return { client, isDuplicate: false, release };
  const own = freshClient(platform);
  const releaseOwn = await platform.lock(`relayrouter:${session}:${own}`);
  return { client: own, isDuplicate: true, release: releaseOwn ?? (() => undefined) };
}
