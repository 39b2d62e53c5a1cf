/** The place of this tab, kept over reloads; gone with the tab. A duplicated tab gets a copy, see `tab_lock.ts`. */

import type { CursorStore } from "../store.js";
import { FallbackStore } from "./fallback.js";

export interface SessionStorageOptions {
  /** Of the keys. Default `relayrouter:`. */
  readonly prefix?: string;
  /** Default: `globalThis.sessionStorage`; any other with its methods does. */
  readonly storage?: Pick<Storage, "getItem" | "setItem">;
}

export function sessionStorageStore(options: SessionStorageOptions = {}): CursorStore {
  const prefix = options.prefix ?? "relayrouter:";
  // Looked up at each call: merely naming it throws where the browser blocks storage.
  const storage = () => options.storage ?? globalThis.sessionStorage;
  return new FallbackStore(
    {
      read: async (session) => {
        const text = storage().getItem(prefix + session);
        return text === null ? null : parsed(text);
      },
      write: async (session, place) => storage().setItem(prefix + session, JSON.stringify(place)),
    },
    false,
  );
}

/** A value that is no JSON is not ours. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
