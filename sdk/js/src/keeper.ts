/** Keeps a session's place in its store: one save at a time, the newest value wins, failures cost only the place. */

import type { Core } from "./core.js";
import { createTimer, inTime } from "./platform.js";
import { type CursorStore, MemoryStore, type SavedInput, type SavedPlace } from "./store.js";

/** A moving cursor is written so often; what must not be lost is written at once. */
const SAVE_AFTER_MS = 250;
/** A store that has not answered by then has failed: nobody waits for it for ever. */
const STORE_MS = 5_000;

export function createKeeper(core: Core, store: CursorStore) {
  const { platform, settings } = core;
  const { session, user } = settings;
  const _timer = createTimer(platform);
  let _place: SavedPlace = { client: "", user, cursor: null, inputs: [] };
  let _saving: Promise<void> | null = null;
  let _isDirty = false;
  const self = {
    /** What was kept for this user; null when there is nothing, or it was another user's. */
    async load(): Promise<SavedPlace | null> {
      const saved = await _try("read", () => store.load(session));
      return saved && (user === null || saved.user === user) ? saved : null;
    },

    get isShared(): boolean {
      return store.isShared;
    },

    /** From here on in memory only. */
    forsake(): void {
      store = new MemoryStore();
    },

    /** What is kept from here on. */
    begin(client: string, cursor: string | null, inputs: readonly SavedInput[]): void {
      _place = { client, user, cursor, inputs };
    },

    moved(cursor: string): void {
      _place = { ..._place, cursor };
      _isDirty = true;
      _timer.start(SAVE_AFTER_MS, self.writeOut);
    },

    /** Resolves when they are kept (or cannot be): before they are sent. */
    keepInputs(inputs: readonly SavedInput[]): Promise<void> {
      _place = { ..._place, inputs };
      _isDirty = true;
      return self.writeOut();
    },

    /** Resolves when everything up to now is kept. */
    async writeOut(): Promise<void> {
      _timer.stop();
      while (_saving) await _saving;
      if (!_isDirty) return;
      _isDirty = false;
      _saving = _try("written", () => store.save(session, _place)).then(() => {
        _saving = null;
      });
      await _saving;
    },
  };
  return self;

  /** Undefined when the store throws, in whatever way, or is late. */
  async function _try<T>(what: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await inTime(platform, STORE_MS, act, self.forsake); // late: calls must not overlap
    } catch {
      core.fail("store", `the store could not be ${what}`);
      return undefined;
    }
  }
}

export type Keeper = ReturnType<typeof createKeeper>;
