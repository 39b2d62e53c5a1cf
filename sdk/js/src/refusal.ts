/** The gateway's refusals of what we said, as errors. */

import type { RelayError } from "./errors.js";
import { AuthError, ConflictError, ForbiddenError, NotFoundError, RefusedError, TooLargeError } from "./errors.js";
import { type JsonObject, textOf } from "./messages.js";

/** After a refusal that passes, when it does not say how long it takes. */
export const RETRY_MS = 500;

/** The same may be said again. `fenced`: a newer connection of ours writes. */
export const passes = ({ retryable, code }: JsonObject): boolean => retryable === true || code === "fenced";

const CLASSES: Readonly<Record<string, new (message: string, code?: string) => RelayError>> = {
  unauthenticated: AuthError,
  forbidden: ForbiddenError,
  not_found: NotFoundError,
  gone: NotFoundError,
  too_large: TooLargeError,
  conflict: ConflictError,
};

/** Of the class that belongs to its code, as the gateway's error table has it. */
export function refusalOf(payload: JsonObject): RelayError {
  const code = textOf(payload.code);
  const message = textOf(payload.message) || code || "refused";
  return CLASSES[code] ? new CLASSES[code](message, code) : new RefusedError(code, message);
}
