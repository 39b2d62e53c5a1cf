/** Keeps a session's place in its store: one save at a time, the newest value wins, failures cost only the place. */

import type { Platform } from "./platform.js";
import { type CursorStore, MemoryStore, type SavedInput, type SavedPlace } from "./store.js";

/** A moving cursor is written so often; what must not be lost is written at once. */
const SAVE_AFTER_MS = 250;
/** A store that has not answered by then has failed: nobody waits for it for ever. */
const STORE_MS = 5_000;

export class Keeper {
  private _client = "";
  private _cursor: string | null = null;
  private _inputs: readonly SavedInput[] = [];
  private _saving: Promise<void> | null = null;
  private _isDirty = false;
  private _cancelTimer: (() => void) | null = null;

  constructor(
    private readonly _platform: Platform,
    private _store: CursorStore,
    private readonly _session: string,
    private readonly _user: string | null,
    private readonly _onError: (message: string) => void,
  ) {}

  /** What was kept for this user; null when there is nothing, or it was another user's. */
  async load(): Promise<SavedPlace | null> {
    try {
      const saved = await this._inTime(() => this._store.load(this._session));
      return saved && (this._user === null || saved.user === this._user) ? saved : null;
    } catch {
      this._onError("the store could not be read");
      return null;
    }
  }

  get isShared(): boolean {
    return this._store.isShared;
  }

  /** From here on in memory only. */
  forsake(memory: CursorStore): void {
    this._store = memory;
  }

  begin(client: string, cursor: string | null, inputs: readonly SavedInput[]): void {
    this._client = client;
    this._cursor = cursor;
    this._inputs = inputs;
  }

  moved(cursor: string): void {
    this._cursor = cursor;
    this._isDirty = true;
    this._cancelTimer ??= this._platform.after(SAVE_AFTER_MS, () => void this.flush());
  }

  /** Resolves when they are kept (or cannot be): before they are sent. */
  async keepInputs(inputs: readonly SavedInput[]): Promise<void> {
    this._inputs = inputs;
    this._isDirty = true;
    await this.flush();
  }

  /** Resolves when everything up to now is kept. */
  async flush(): Promise<void> {
    this._cancelTimer?.();
    this._cancelTimer = null;
    while (this._saving !== null) await this._saving;
    if (!this._isDirty) return;
    this._saving = this._save();
    await this._saving;
  }

  private async _save(): Promise<void> {
    this._isDirty = false;
    const { _client: client, _user: user, _cursor: cursor, _inputs: inputs } = this;
    try {
      await this._inTime(() => this._store.save(this._session, { client, user, cursor, inputs }));
    } catch {
      this._onError("the store could not be written");
    } finally {
      this._saving = null;
    }
  }

  /** Rejects when the store throws, in whatever way, or is late. Never settles in the call itself. */
  private async _inTime<T>(act: () => Promise<T>): Promise<T> {
    let cancel = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      cancel = this._platform.after(STORE_MS, () => {
        this._store = new MemoryStore(); // two calls must not overlap, and this one may still do what it was asked
        reject(new Error("late"));
      });
    });
    try {
      return await Promise.race([Promise.resolve().then(act), late]);
    } finally {
      cancel();
    }
  }
}
