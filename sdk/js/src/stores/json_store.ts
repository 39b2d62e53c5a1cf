/** A place kept by two functions of the application's own: a file, a native app's storage, a server. */

import type { CursorStore } from "../store.js";
import { FallbackStore } from "./fallback.js";
import { parsed } from "./session_storage.js";

export interface JsonStoreOptions {
  /** What `write` was given last for this session; null or undefined: nothing. */
  read(session: string): string | null | undefined | Promise<string | null | undefined>;
  /** Replaces the text whole or not at all, and is done when it is durable. */
  write(session: string, text: string): void | Promise<void>;
  /** Other tabs or processes see the same texts. Default false. */
  readonly isShared?: boolean;
}

export function jsonStore(options: JsonStoreOptions): CursorStore {
  return new FallbackStore(
    {
      read: async (session) => parsed((await options.read(session)) ?? "null"),
      write: async (session, place) => options.write(session, JSON.stringify(place)),
    },
    options.isShared ?? false,
  );
}
