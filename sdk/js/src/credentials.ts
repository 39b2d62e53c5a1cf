/** The token of each attempt, and when refusals mean that no other attempt will help. Never shows a token. */

import { AuthError } from "./errors.js";
import type { TokenSource } from "./options.js";

/** In a row: the first one may be for a token that had just expired. */
const MAX_REFUSALS = 2;

export function createCredentials(source: TokenSource | string | null = null) {
  const _isRenewable = typeof source === "function";
  let _current: string | null = null;
  let _refused: string | null = null;
  let _refusals = 0;
  return {
    isRenewable: _isRenewable,

    /** The newest one that was fetched. A getter: nothing that is printed shows it. */
    get current(): string | null {
      return _current;
    },

    /** For the next attempt. Rejects when its source fails, which is trouble that passes. */
    async next(): Promise<string | null> {
      const token = _isRenewable ? await source() : source;
      _current = token ? token.trim() : token; // files end with a line break
      return _current;
    },

    /** The server refused this token: null means try again with a new one. */
    refused(token: string | null, reason: string): AuthError | null {
      _refused = token;
      _refusals += 1;
      return _isRenewable && _refusals < MAX_REFUSALS ? null : new AuthError(reason);
    },

    /** The server let this token in. The same one may have been refused for what it will be refused for again. */
    accepted(token: string | null): void {
      if (token !== _refused) _refusals = 0;
    },
  };
}

export type Credentials = ReturnType<typeof createCredentials>;
