/** Where a browser keeps a session's place: give one as `store` to `connect`. */

export { type CursorStore, MemoryStore, type SavedInput, type SavedPlace } from "../store.js";
export { StoreError } from "./fallback.js";
export { type IndexedDbOptions, indexedDbStore } from "./indexed_db.js";
export { type JsonStoreOptions, jsonStore } from "./json_store.js";
export { type SessionStorageOptions, sessionStorageStore } from "./session_storage.js";
