/** The token of each attempt, and when refusals mean that no other attempt will help. Never shows a token. */

import { AuthError } from "./errors.js";
import type { TokenSource } from "./options.js";

/** In a row: the first one may be for a token that had just expired. */
const MAX_REFUSALS = 2;

export class Credentials {
  #source: TokenSource | string | null;
  #current: string | null = null;
  #refused: string | null = null;
  #refusals = 0;

  constructor(source: TokenSource | string | null | undefined) {
    this.#source = source ?? null;
  }

  get isRenewable(): boolean {
    return typeof this.#source === "function";
  }

  /** The newest one that was fetched. */
  get current(): string | null {
    return this.#current;
  }

  /** For the next attempt. Rejects when its source fails, which is trouble that passes. */
  async next(): Promise<string | null> {
    const token = typeof this.#source === "function" ? await this.#source() : this.#source;
    this.#current = token ? token.trim() : token; // files end with a line break
    return this.#current;
  }

  /** The server refused this token: null means try again with a new one. */
  refused(token: string | null, reason: string): AuthError | null {
    this.#refused = token;
    this.#refusals += 1;
    return this.isRenewable && this.#refusals < MAX_REFUSALS ? null : new AuthError(reason);
  }

  /** The server let this token in. The same one may have been refused for what it will be refused for again. */
  accepted(token: string | null): void {
    if (token !== this.#refused) this.#refusals = 0;
  }
}
