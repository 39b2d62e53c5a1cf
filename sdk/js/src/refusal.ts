/** The gateway's refusals of what we said, as errors. */

import {
  AuthError,
  ConflictError,
  ForbiddenError,
  NotFoundError,
  RefusedError,
  type RelayError,
  TooLargeError,
} from "./errors.js";

/** The class for a refusal by its code, as the gateway's error table has it. */
export function refusalOf(code: string, message: string): RelayError {
  switch (code) {
    case "unauthenticated":
      return new AuthError(message);
    case "forbidden":
      return new ForbiddenError(message);
    case "not_found":
    case "gone":
      return new NotFoundError(message, code);
    case "too_large":
      return new TooLargeError(message);
    case "conflict":
      return new ConflictError(message);
    default:
      return new RefusedError(code, message);
  }
}
