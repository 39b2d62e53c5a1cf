/** Where a client's place is kept between two lives of a page: one value, so that its parts never disagree. */

import type { JsonObject } from "./messages.js";

/** An input that the gateway has not accepted yet. With a `seq` it may have been sent: it is sent again under the same. */
export interface SavedInput {
  readonly seq: number | null;
  readonly payload: JsonObject;
}

/** Plain data: what JSON can hold. */
export interface SavedPlace {
  readonly client: string;
  readonly user: string | null;
  /** After the last message applied; null before the first. */
  readonly cursor: string | null;
  readonly inputs: readonly SavedInput[];
}

/**
 * Keeps one place per session. `save` replaces it whole or not at all, and is durable when it resolves. Calls do not
 * overlap. A store that fails costs the place, never the session: errors are reported by the `error` event.
 */
export interface CursorStore {
  /** Other tabs see the same value: a second tab of the session must not write to it. */
  readonly isShared: boolean;
  load(session: string): Promise<SavedPlace | null>;
  save(session: string, place: SavedPlace): Promise<void>;
}

/** The default: lives as long as the page. */
export class MemoryStore implements CursorStore {
  readonly isShared = false;
  private readonly _places = new Map<string, SavedPlace>();

  async load(session: string): Promise<SavedPlace | null> {
    return this._places.get(session) ?? null;
  }

  async save(session: string, place: SavedPlace): Promise<void> {
    this._places.set(session, place);
  }
}
