/** The errors that applications see. None of them ever holds a token. */

/** Base of all. `code`: the server's word for it, or ours. `retryable`: trying the same again may help. */
export class RelayError extends Error {
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, retryable = false) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.name = "RelayError";
  }
}

/** Credentials are missing, expired or revoked, and no new ones helped (4401, HTTP 401). */
export class AuthError extends RelayError {
  constructor(message: string, code = "unauthenticated") {
    super(code, message);
    this.name = "AuthError";
  }
}

/** These credentials may not do that (4403, HTTP 403). */
export class ForbiddenError extends RelayError {
  constructor(message: string, code = "forbidden") {
    super(code, message);
    this.name = "ForbiddenError";
  }
}

/** There is no such thing, it is not yours, or it was deleted (4404, HTTP 404 and 410). */
export class NotFoundError extends RelayError {
  constructor(message: string, code = "not_found") {
    super(code, message);
    this.name = "NotFoundError";
  }
}

/** A newer connection with our client id has taken over (4409). */
export class SupersededError extends RelayError {
  constructor() {
    super("superseded", "a newer connection of this client took over");
    this.name = "SupersededError";
  }
}

/** A message is above the server's limit. It was not sent, or never will be again. */
export class TooLargeError extends RelayError {
  constructor(message: string) {
    super("too_large", message);
    this.name = "TooLargeError";
  }
}

/** As much waits to be sent as may wait; nothing of this message was kept. */
export class QueueFullError extends RelayError {
  constructor(message: string) {
    super("queue_full", message, true);
    this.name = "QueueFullError";
  }
}

/** The number of this input was accepted with another body. */
export class ConflictError extends RelayError {
  constructor(message: string) {
    super("conflict", message);
    this.name = "ConflictError";
  }
}

/** Any other refusal that another attempt would not change. */
export class RefusedError extends RelayError {
  constructor(code: string, message: string) {
    super(code, message);
    this.name = "RefusedError";
  }
}

/** The session was closed before this was settled. */
export class ClosedError extends RelayError {
  constructor(message = "the session is closed") {
    super("closed", message);
    this.name = "ClosedError";
  }
}

/** What came is not of this protocol: an integer above 2^53, a close for a protocol violation. */
export class ProtocolError extends RelayError {
  constructor(message: string) {
    super("protocol", message);
    this.name = "ProtocolError";
  }
}
