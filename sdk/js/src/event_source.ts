/** Server-sent events by EventSource, only where fetch cannot stream: it sees no statuses, and is given a ticket for its token. */

import { ask } from "./ask.js";
import type { Channel, ChannelRequest, ChannelSink } from "./channel.js";
import { broken } from "./endings.js";
import { sessionUrl } from "./http.js";
import { BadFrame, numberOf, objectOf, readJson, textOf } from "./messages.js";
import type { EventSourceConstructor, EventSourceLike, Platform } from "./platform.js";

/** It hands out only events whose names are asked for; texts come without one. */
const NAMES = [
  "message",
  "welcome",
  "gap",
  "forked",
  "snapshot",
  "ask_open",
  "reconnect_later",
  "expiring",
  "rhythm",
  "state",
  "relay_error",
];

export function openEventSource(
  platform: Platform,
  EventSource: EventSourceConstructor,
  request: ChannelRequest,
  sink: ChannelSink,
): Channel {
  let source: EventSourceLike | null = null;
  let isOver = false;
  const close = () => {
    isOver = true;
    source?.close();
  };
  const end = (...ending: Parameters<ChannelSink["ended"]>) => {
    if (isOver) return;
    close(); // it would connect again by itself
    sink.ended(...ending);
  };
  const take = (data: string) => {
    if (isOver) return;
    sink.heard();
    try {
      sink.frame(readJson(data), data.length);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      end(broken(error.message));
    }
  };
  const open = (ticket: string | null) => {
    if (isOver) return;
    const query = { ...request.query, sdk: "1", ...(ticket !== null && { ticket }) };
    source = new EventSource(sessionUrl(request.base, request.settings.session, "events", query));
    source.onerror = () => end(broken("the connection broke"));
    source.addEventListener("open", () => sink.opened());
    source.addEventListener("close", ({ data }) => {
      const { code, reason } = objectOf(readJson(data));
      end({ kind: "closed", code: numberOf(code) ?? 1011, reason: textOf(reason) });
    });
    for (const name of NAMES) source.addEventListener(name, ({ data }) => take(data));
  };
  if (request.token === null) open(null);
  else void ticketFor(platform, request).then((ticket) => (ticket ? open(ticket) : end(broken("no ticket"))));
  return { name: "sse", isDuplex: false, send: () => false, close };
}

/** Empty when there is none to be had: why is told by the decision that is asked for next. */
async function ticketFor(platform: Platform, { base, settings, token }: ChannelRequest): Promise<string> {
  const { session, timing } = settings;
  const url = `${base}/v1/tickets`;
  const { body } = await ask(platform, { url, token, timeoutMs: timing.connectTimeout, body: { session } });
  return textOf(body.ticket);
}
