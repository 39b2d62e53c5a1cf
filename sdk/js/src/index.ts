/** RelayRouter's JavaScript client: one loop to read, typed methods to speak, and a place that is never lost. */

export * from "./errors.js";
export type {
  Ask,
  AskResolvedEvent,
  DigestEvent,
  GapEvent,
  InputEvent,
  QualityEvent,
  RunEvent,
  RunInfo,
  SessionEvents,
  StateEvent,
  TextEvent,
} from "./events.js";
export type { JsonObject, JsonValue, Message } from "./messages.js";
export type { ConnectOptions, Timing, TokenSource } from "./options.js";
export {
  defaultPlatform,
  type FetchLike,
  type PageEvent,
  type Platform,
  type SocketConstructor,
  type SocketLike,
} from "./platform.js";
export { connect, Session } from "./session.js";
export type { ChannelName, SessionState } from "./states.js";
export { type CursorStore, MemoryStore, type SavedInput, type SavedPlace } from "./store.js";
