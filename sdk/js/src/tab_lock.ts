/** One page per client id: a duplicated tab has the same stored place, and must not take over from the first one. */

import type { Platform } from "./platform.js";

export interface Claimed {
  readonly client: string;
  /** Another page has the id that was asked for. */
  readonly isDuplicate: boolean;
  release(): void;
}

const ID_BYTES = 12;

export const freshClient = (platform: Platform): string => `js-${platform.randomHex(ID_BYTES)}`;

export async function claimClient(platform: Platform, session: string, client: string): Promise<Claimed> {
  const release = await platform.lock(`relayrouter:${session}:${client}`);
  if (release !== null) return { client, isDuplicate: false, release };
  const own = freshClient(platform);
  const releaseOwn = await platform.lock(`relayrouter:${session}:${own}`);
  return { client: own, isDuplicate: true, release: releaseOwn ?? (() => undefined) };
}
