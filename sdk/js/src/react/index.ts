"use client"; // for frameworks that render on servers too

/** A session in React. */

export type { ConnectOptions } from "../options.js";
export { openSessions } from "./sharing.js";
export { type SessionActions, type UseSession, type UseSessionOptions, useSession } from "./use_session.js";
export type { SessionSnapshot } from "./view.js";
