/** Where a session is on its way to its gateway, and by what it is connected. */

/**
 * `connecting`: an attempt is being made. `live`: a gateway has welcomed us. `waiting`: between two attempts. `busy`: the
 * server asked to come later. `offline`: the browser says so. `closed`: final; `session.error` says why.
 */
export type SessionState = "connecting" | "live" | "waiting" | "busy" | "offline" | "closed";

/** The rungs of the ladder, from the best one down. */
export type ChannelName = "websocket" | "sse" | "poll";

export const CHANNELS: readonly ChannelName[] = ["websocket", "sse", "poll"];
