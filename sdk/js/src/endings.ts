/** How a connection ended or was refused, and what a client does then. Pure; follows the table of close codes. */

import { NORMAL, reconnectAfter, SUPERSEDED, TOO_BIG, UNAUTHENTICATED } from "./close_codes.js";
import {
  AuthError,
  ForbiddenError,
  NotFoundError,
  ProtocolError,
  RefusedError,
  type RelayError,
  SupersededError,
} from "./errors.js";

/**
 * `closed`: by a close code, or by a refusal with the code that belongs to it. `busy`: come later. `broken`: the transport
 * failed, or what answered is not a gateway. `error`: something that no reconnect would change.
 */
export type Ending =
  | { readonly kind: "closed"; readonly code: number; readonly reason: string }
  | { readonly kind: "busy"; readonly reason: string; readonly afterMs: number | null }
  | { readonly kind: "broken"; readonly reason: string }
  | { readonly kind: "error"; readonly error: RelayError };

/** What answered does not speak our protocol, or nothing answered. */
export const NO_GATEWAY = "no gateway answered";

export const broken = (reason: string): Ending => ({ kind: "broken", reason });

/** What comes next. `tooBig`: an input of ours was. */
export type Verdict =
  | { readonly kind: "final"; readonly error: RelayError | null }
  | { readonly kind: "again"; readonly isBusy: boolean; readonly afterMs: number | null }
  | { readonly kind: "new_token" };

export function judge(ending: Ending): Verdict {
  switch (ending.kind) {
    case "error":
      return { kind: "final", error: ending.error };
    case "busy":
      return { kind: "again", isBusy: true, afterMs: ending.afterMs };
    case "broken":
      return { kind: "again", isBusy: false, afterMs: null };
    case "closed": {
      const rule = reconnectAfter(ending.code, ending.reason);
      if (rule === "no") return { kind: "final", error: finalError(ending.code, ending.reason) };
      if (rule === "new_token") return { kind: "new_token" };
      return { kind: "again", isBusy: ending.code === 4429 || ending.code === 1013, afterMs: null };
    }
  }
}

export const isTooBig = (ending: Ending): boolean => ending.kind === "closed" && ending.code === TOO_BIG;

/** While we are opening another one, this may have been our own doing. */
export const isSuperseded = (ending: Ending): boolean => ending.kind === "closed" && ending.code === SUPERSEDED;

/** Closed by its gateway: there is nothing left to replace. */
export const isClosedByServer = (ending: Ending): boolean => ending.kind === "closed";

export function causeOf(ending: Ending): string {
  if (ending.kind === "error") return ending.error.message;
  return ending.kind === "closed" ? `${ending.reason || "closed"} (${ending.code})` : ending.reason;
}

function finalError(code: number, reason: string): RelayError {
  const message = reason || `closed with ${code}`;
  switch (code) {
    case UNAUTHENTICATED:
      return new AuthError(message);
    case 4403:
      return new ForbiddenError(message);
    case 4404:
      return new NotFoundError(message);
    case SUPERSEDED:
      return new SupersededError();
    case NORMAL:
      return new RefusedError("closed", message);
    case 1008:
      return new RefusedError("policy", message);
    default:
      return new ProtocolError(message);
  }
}
