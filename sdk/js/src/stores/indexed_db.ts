/**
 * Places of all tabs of an origin, kept also when the browser is closed. Also for workers.
 *
 * One record per session, written in one transaction. A connection that the browser lost is opened anew, once per call.
 */

import type { CursorStore, SavedPlace } from "../store.js";
import { type Backend, FallbackStore } from "./fallback.js";

export interface IndexedDbOptions {
  /** Of the database. Default `relayrouter`. */
  readonly name?: string;
  /** Places that were not written for so long are dropped. Default 7 days: the gateway's log is long gone. */
  readonly maxAgeMs?: number;
  /** Browsers are known to never answer. Default 2,000. */
  readonly timeoutMs?: number;
  readonly indexedDB?: IDBFactory;
}

const PLACES = "places";
const BY_AGE = "savedAt";
const WEEK_MS = 7 * 24 * 3_600_000;

export function indexedDbStore(options: IndexedDbOptions = {}): CursorStore {
  return new FallbackStore(new Database(options), true);
}

class Database implements Backend {
  readonly #name: string;
  readonly #maxAgeMs: number;
  readonly #timeoutMs: number;
  readonly #factory: () => IDBFactory;
  #connection: Promise<IDBDatabase> | null = null;

  constructor(options: IndexedDbOptions) {
    this.#name = options.name ?? "relayrouter";
    this.#maxAgeMs = options.maxAgeMs ?? WEEK_MS;
    this.#timeoutMs = options.timeoutMs ?? 2_000;
    this.#factory = () => options.indexedDB ?? globalThis.indexedDB;
  }

  async read(session: string): Promise<unknown> {
    let record: unknown;
    await this.#transact("readonly", (places) => {
      const request = places.get(session);
      request.onsuccess = () => {
        record = request.result;
      };
    });
    return (record as { place?: unknown } | undefined)?.place ?? null;
  }

  async write(session: string, place: SavedPlace): Promise<void> {
    await this.#transact("readwrite", (places) => {
      places.put({ place, [BY_AGE]: Date.now() }, session);
    });
  }

  async #transact(mode: IDBTransactionMode, use: (places: IDBObjectStore) => void): Promise<void> {
    const isNew = this.#connection === null;
    try {
      await this.#once(mode, use);
    } catch (error) {
      this.#connection = null;
      if (isNew || isQuota(error)) throw error;
      await this.#once(mode, use);
    }
  }

  async #once(mode: IDBTransactionMode, use: (places: IDBObjectStore) => void): Promise<void> {
    this.#connection ??= this.#open();
    const connection = await this.#connection;
    const transaction = connection.transaction(PLACES, mode);
    use(transaction.objectStore(PLACES));
    transaction.commit?.(); // a page that is left at this moment could not say any more that nothing follows
    await this.#settled("it did not write", (resolve, reject) => {
      transaction.oncomplete = () => resolve(undefined);
      transaction.onabort = () => reject(transaction.error ?? new DOMException("aborted", "AbortError"));
    });
  }

  async #open(): Promise<IDBDatabase> {
    const connection = await this.#settled<IDBDatabase>("it did not open", (resolve, reject) => {
      const request = this.#factory().open(this.#name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(PLACES).createIndex(BY_AGE, BY_AGE);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const forget = () => {
      this.#connection = null;
    };
    connection.onclose = forget;
    connection.onversionchange = () => {
      connection.close();
      forget();
    };
    this.#dropOld(connection);
    return connection;
  }

  #dropOld(connection: IDBDatabase): void {
    const transaction = connection.transaction(PLACES, "readwrite");
    const old = IDBKeyRange.upperBound(Date.now() - this.#maxAgeMs);
    const request = transaction.objectStore(PLACES).index(BY_AGE).openCursor(old);
    request.onsuccess = () => {
      request.result?.delete();
      request.result?.continue();
    };
    // Old places cost a little room; the next opening tries again.
    request.onerror = (event) => event.preventDefault();
  }

  async #settled<T>(
    late: string,
    begin: (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  ): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      return await new Promise<T>((resolve, reject) => {
        timer = setTimeout(() => reject(new DOMException(late, "TimeoutError")), this.#timeoutMs);
        begin(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

const isQuota = (error: unknown): boolean => error instanceof Error && error.name === "QuotaExceededError";
