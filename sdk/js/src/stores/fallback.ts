/**
 * A store that may refuse (quota, private mode, a page without storage) with memory behind it: what cannot be kept
 * lives as long as the page. The first failure is thrown, so that the session reports it once; later ones are not.
 */

import type { CursorStore, SavedInput, SavedPlace } from "../store.js";

/** Where texts are kept; each call may throw. `write` replaces the value whole or not at all. */
export interface Backend {
  read(session: string): Promise<unknown>;
  write(session: string, place: SavedPlace): Promise<void>;
}

export class StoreError extends Error {
  override name = "StoreError";
}

export class FallbackStore implements CursorStore {
  readonly isShared: boolean;
  readonly #backend: Backend;
  /** What the backend refused; newer than what it has. */
  readonly #memory = new Map<string, SavedPlace>();
  #isReported = false;

  constructor(backend: Backend, isShared: boolean) {
    this.#backend = backend;
    this.isShared = isShared;
  }

  async load(session: string): Promise<SavedPlace | null> {
    const newer = this.#memory.get(session);
    if (newer) return newer;
    try {
      return placeOf(await this.#backend.read(session));
    } catch (cause) {
      this.#report("read", cause);
      return null;
    }
  }

  async save(session: string, place: SavedPlace): Promise<void> {
    try {
      await this.#backend.write(session, place);
      this.#memory.delete(session);
    } catch (cause) {
      this.#memory.set(session, place);
      this.#report("written", cause);
    }
  }

  #report(what: string, cause: unknown): void {
    if (this.#isReported) return;
    this.#isReported = true;
    const why = cause instanceof Error ? cause.name : "unknown";
    throw new StoreError(`the place cannot be ${what} (${why}); it is kept until the page is closed`, { cause });
  }
}

/** What somebody else wrote under our name is no place; neither is half of one. */
export function placeOf(value: unknown): SavedPlace | null {
  if (!isRecord(value)) return null;
  const { client, user, cursor, inputs } = value;
  if (typeof client !== "string" || !client || !isTextOrNull(user) || !isTextOrNull(cursor)) return null;
  return Array.isArray(inputs) && inputs.every(isInput) ? { client, user, cursor, inputs } : null;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const isTextOrNull = (value: unknown): value is string | null => value === null || typeof value === "string";

const isInput = (value: unknown): value is SavedInput =>
  isRecord(value) && (value.seq === null || Number.isSafeInteger(value.seq)) && isRecord(value.payload);
