/** React's view of a session. */

import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { ClosedError } from "../errors.js";
import type { JsonObject, JsonValue } from "../messages.js";
import type { ConnectOptions } from "../options.js";
import { connect, type Session } from "../session.js";
import { acquire, keyOf, release, sharedOf } from "./sharing.js";
import { NO_SESSION, type SessionSnapshot } from "./view.js";

export interface UseSessionOptions extends ConnectOptions {
  /** False: not connected (nobody is logged in, say). Default true. */
  readonly isEnabled?: boolean;
  /** Default 500. */
  readonly maxMessages?: number;
  /** Runs whose text is kept. Default 200. */
  readonly maxRuns?: number;
}

/** Each rejects with a RelayError; with ClosedError while there is no session. They never change. */
export interface SessionActions {
  /** Resolves when it is durable. */
  send(payload: JsonObject): Promise<JsonObject>;
  interrupt(run: string): Promise<JsonObject>;
  pause(): Promise<JsonObject>;
  resume(): Promise<JsonObject>;
  cancel(run: string, reason?: string): Promise<JsonObject>;
  answer(ask: string, value: JsonValue): Promise<JsonObject>;
}

export interface UseSession extends SessionSnapshot, SessionActions {}

/**
 * Connects while the component is mounted. Components with the same `url`, `session`, `client` and `user` share one
 * session. Another one of these is another session; a new `token` is taken at the next attempt; the rest counts when the
 * session begins. Changes are shown once a frame.
 */
export function useSession(options: UseSessionOptions): UseSession {
  const { isEnabled = true, maxMessages = 500, maxRuns = 200 } = options;
  const key = isEnabled ? keyOf(options) : null;
  const newest = useRef<ConnectOptions>(options);
  useEffect(() => {
    newest.current = options;
  });
  const limits = useRef({ maxMessages, maxRuns });

  const subscribe = useCallback(
    (onChange: () => void) => {
      if (key === null) return () => undefined;
      const { view } = acquire(key, newest, limits.current, connect);
      const stop = view.subscribe(onChange);
      return () => {
        stop();
        release(key, newest);
      };
    },
    [key],
  );
  const snapshotOf = useCallback(
    () => (key === null ? NO_SESSION : (sharedOf(key)?.view.snapshot ?? NO_SESSION)),
    [key],
  );
  const snapshot = useSyncExternalStore(subscribe, snapshotOf, () => NO_SESSION);
  const actions = useMemo(() => actionsOf(() => snapshotOf().session), [snapshotOf]);
  return useMemo(() => ({ ...snapshot, ...actions }), [snapshot, actions]);
}

function actionsOf(current: () => Session | null): SessionActions {
  const use = (act: (session: Session) => Promise<JsonObject>): Promise<JsonObject> => {
    const session = current();
    return session ? act(session) : Promise.reject(new ClosedError("there is no session"));
  };
  return {
    send: (payload) => use((session) => session.send(payload)),
    interrupt: (run) => use((session) => session.interrupt(run)),
    pause: () => use((session) => session.pause()),
    resume: () => use((session) => session.resume()),
    cancel: (run, reason) => use((session) => session.cancel(run, reason)),
    answer: (ask, value) => use((session) => session.answer(ask, value)),
  };
}
