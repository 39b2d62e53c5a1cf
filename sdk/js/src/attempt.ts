/** The questions before an attempt to connect: which token, which query. */

import type { Credentials } from "./credentials.js";
import type { Query } from "./http.js";
import type { Settings } from "./options.js";
import type { Platform } from "./platform.js";
import type { ChannelName } from "./states.js";

/** The gateway takes no greater `retry`. */
const MAX_RETRY = 1_000;

/** Undefined: its source failed, or did not answer in time. */
export async function tokenInTime(
  platform: Platform,
  credentials: Credentials,
  timeoutMs: number,
): Promise<string | null | undefined> {
  let cancel = (): void => undefined;
  const late = new Promise<undefined>((resolve) => {
    cancel = platform.after(timeoutMs, () => resolve(undefined));
  });
  const token = await Promise.race([credentials.next(), late]).catch(() => undefined);
  cancel();
  return token;
}

export interface Asked {
  readonly name: ChannelName;
  readonly client: string;
  readonly cursor: string | null;
  /** A connection of ours to take over from. */
  readonly replaces: string | null;
  /** Attempts in a row. */
  readonly retry: number;
}

export function queryOf(
  { from, heartbeat, rhythm }: Settings,
  { name, client, cursor, replaces, retry }: Asked,
): Query {
  return {
    client,
    ...(cursor === null ? { from } : { cursor }),
    ...(name === "websocket" && { ack: "1" }),
    ...(replaces !== null && { replaces }),
    ...(heartbeat !== null && { heartbeat: String(heartbeat / 1000) }),
    ...(retry > 0 && { retry: String(Math.min(retry, MAX_RETRY)) }),
    ...(rhythm && { rhythm: "1" }),
  };
}
