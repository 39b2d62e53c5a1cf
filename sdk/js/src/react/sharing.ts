/**
 * One session per place of a page, however many components use it and however fast they come and go.
 *
 * A component that leaves and comes back within one turn of the event loop (StrictMode, a changed key, a fast remount)
 * finds its session still there: it is closed only when nobody has used it for a turn.
 */

import type { ConnectOptions, TokenSource } from "../options.js";
import type { Session } from "../session.js";
import { SessionView, type ViewLimits } from "./view.js";

/** What tells one session of a page from another. */
export function keyOf({ url, session, client, user, channel, from }: ConnectOptions): string {
  return JSON.stringify([url, session, client ?? null, user ?? null, channel ?? "auto", from ?? "live"]);
}

/** The options as the component has them now. */
export interface Current {
  readonly current: ConnectOptions;
}

interface Shared {
  readonly session: Session;
  readonly view: SessionView;
  readonly users: Set<Current>;
}

const sessions = new Map<string, Shared>();

/** How many sessions the hooks of this page keep open. */
export const openSessions = (): number => sessions.size;

export const sharedOf = (key: string): Shared | undefined => sessions.get(key);

export function acquire(
  key: string,
  user: Current,
  limits: ViewLimits,
  connect: (options: ConnectOptions) => Session,
): Shared {
  let shared = sessions.get(key);
  if (shared?.users.size === 0 && shared.session.state === "closed") {
    shared.view.stop();
    shared = undefined; // refused for good, and nobody shows it any more: who comes now may be let in
  }
  if (!shared) {
    const users = new Set<Current>();
    const { token } = user.current;
    const session = connect({
      ...user.current,
      // A later render may bring a newer token: the next attempt takes it.
      ...(token != null && { token: () => newestToken(users, token) }),
    });
    shared = { session, view: new SessionView(session, limits), users };
    sessions.set(key, shared);
  }
  shared.users.add(user);
  return shared;
}

export function release(key: string, user: Current): void {
  const shared = sessions.get(key);
  if (!shared?.users.delete(user)) return;
  setTimeout(() => {
    if (shared.users.size > 0 || sessions.get(key) !== shared) return;
    sessions.delete(key);
    shared.view.stop();
    void shared.session.close();
  });
}

function newestToken(users: ReadonlySet<Current>, first: string | TokenSource): Promise<string> | string {
  const newest = [...users].pop()?.current.token ?? first;
  return typeof newest === "string" ? newest : newest();
}
