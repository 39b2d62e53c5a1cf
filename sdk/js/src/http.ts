/** URLs of a session. */

export type Query = Readonly<Record<string, string>>;

export function sessionUrl(base: string, session: string, what: string, query: Query = {}): string {
  const text = new URLSearchParams(query).toString();
  return `${base}/v1/sessions/${encodeURIComponent(session)}/${what}${text && `?${text}`}`;
}

export const socketUrl = (base: string, session: string, query: Query): string =>
  sessionUrl(base, session, "ws", query).replace(/^http/, "ws");
