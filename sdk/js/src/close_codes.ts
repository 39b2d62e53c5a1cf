/** The table of WebSocket close codes as a client needs it; tested against the gateway's vectors. */

import type { RelayError } from "./errors.js";
import { ForbiddenError, NotFoundError, ProtocolError, RefusedError, SupersededError } from "./errors.js";

export const TOO_BIG = 1009;
export const INTERNAL = 1011;
export const UNAUTHENTICATED = 4401;
export const SUPERSEDED = 4409;

/** Those after which the server asks to come later. */
export const isBusyCode = (code: number): boolean => code === 1013 || code === 4429;

/**
 * What a close by this code means for good; null where another attempt is made. Codes that are not in the table (1005,
 * 1006, 1014 ...) are taken for trouble that passes.
 */
export function finalError(code: number, reason: string): RelayError | null {
  const message = reason || `closed with ${code}`;
  switch (code) {
    case 4403:
      return new ForbiddenError(message);
    case 4404:
      return new NotFoundError(message);
    case SUPERSEDED:
      return new SupersededError();
    case 1000: // `moved` ends only this socket: a newer one of ours has taken over
      return reason === "moved" ? null : new RefusedError("closed", message);
    case 1008:
      return new RefusedError("policy", message);
    case 1002:
    case 1003:
    case 1007:
      return new ProtocolError(message);
    default:
      return null;
  }
}
