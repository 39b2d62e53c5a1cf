/** The table of WebSocket close codes, the same as the gateway's; tested against its vectors. */

/** What a client does after a close. */
export type Reconnect = "no" | "yes" | "backoff" | "slot" | "new_token" | "drop_message";

export const CLOSE_CODES: ReadonlyMap<number, Reconnect> = new Map<number, Reconnect>([
  [1000, "no"],
  [1001, "yes"],
  [1002, "no"],
  [1003, "no"],
  [1007, "no"],
  [1008, "no"],
  [1009, "drop_message"],
  [1011, "backoff"],
  [1012, "slot"],
  [1013, "backoff"],
  [4401, "new_token"],
  [4403, "no"],
  [4404, "no"],
  [4408, "backoff"],
  [4409, "no"],
  [4429, "backoff"],
]);

export const NORMAL = 1000;
export const TOO_BIG = 1009;
export const UNAUTHENTICATED = 4401;
export const SUPERSEDED = 4409;

/** Reason of a 1000 that ends only this socket: a newer one of ours has taken over. */
const MOVED = "moved";

/** Codes that are not in the table (1005, 1006, 1014 ...) are taken for trouble that passes. */
export function reconnectAfter(code: number, reason: string): Reconnect {
  if (code === NORMAL && reason === MOVED) return "yes";
  return CLOSE_CODES.get(code) ?? "backoff";
}
