/** How a connection ended or was refused. Pure. */

import type { RelayError } from "./errors.js";

export interface Ending {
  /** Of its close, or that of the close that belongs to a refusal. 0: the transport failed, or no gateway answered. */
  readonly code: number;
  readonly reason: string;
  /** The server asks to come later: after so many ms, or null when it does not say. */
  readonly afterMs?: number | null;
  /** Something that no other attempt would change. */
  readonly error?: RelayError;
}

export const broken = (reason: string): Ending => ({ code: 0, reason });

/** What answered does not speak our protocol, or nothing answered. */
export const NO_GATEWAY = broken("no gateway answered");
export const BROKEN = broken("the connection broke");

export const isBroken = ({ code, afterMs, error }: Ending): boolean => !code && afterMs === undefined && !error;
