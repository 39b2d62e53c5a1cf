/** URLs of a session. */

/** What is null, undefined or false is left out. */
export type Query = Readonly<Record<string, string | number | null | undefined | false>>;

export function sessionUrl(base: string, { session }: { session: string }, what: string, query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== false);
  const text = new URLSearchParams(given as [string, string][]).toString();
  return `${base}/v1/sessions/${encodeURIComponent(session)}/${what}${text && `?${text}`}`;
}
