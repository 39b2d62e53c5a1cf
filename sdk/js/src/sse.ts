/** The second rung: server-sent events, read by fetch so that headers, statuses and back pressure are there. */

import { closeOf, endingOf, readReply, requestInit } from "./ask.js";
import { type ChannelSink, type OpenChannel, reading } from "./channel.js";
import type { Surroundings } from "./core.js";
import { BROKEN, broken, type Ending, NO_GATEWAY } from "./endings.js";
import { type Query, sessionUrl } from "./http.js";
import { BadFrame, readJson } from "./messages.js";
import { none } from "./platform.js";

const EVENT_STREAM = "text/event-stream";
/** More of one event than any frame has. */
const MAX_EVENT_CHARS = 8 * 1024 * 1024;

/**
 * Server-sent events out of text that comes in any pieces. Lines end with LF, CR or CRLF and with nothing else; a
 * leading byte-order mark is skipped; comments are no events.
 */
export function createEventParser(onEvent: (name: string, data: string) => void) {
  let _rest = "";
  /** What is skipped when the next piece begins with it. */
  let _skipped = "\ufeff";
  let _name = "";
  let _data: string[] = [];
  let _size = 0;
  return {
    push(text: string): void {
      if (!text) return;
      if (text[0] === _skipped) text = text.slice(1);
      _skipped = text.endsWith("\r") ? "\n" : "";
      const lines = (_rest + text).split(/\r\n|\r|\n/);
      _rest = lines.pop() ?? "";
      lines.forEach(_take);
      if (_rest.length + _size > MAX_EVENT_CHARS) throw new BadFrame("an event without end");
    },
  };

  function _take(line: string): void {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "event") _name = value;
    if (field === "data") {
      _data.push(value);
      _size += value.length;
    }
    if (line) return;
    const [name, text] = [_name, _data.join("\n")];
    [_name, _data, _size] = ["", [], 0];
    if (text) onEvent(name || "message", text);
  }
}

export const openSse: OpenChannel = (around, sink, query) =>
  reading(sink, (signal) =>
    read(around, sink, query, signal).catch((error) => (error instanceof BadFrame ? broken(error.message) : BROKEN)),
  );

async function read(
  { platform, settings }: Surroundings,
  sink: ChannelSink,
  query: Query,
  signal: AbortSignal,
): Promise<Ending | null> {
  const url = sessionUrl(sink.url, settings, "events", { ...query, sdk: 1 });
  const response = await platform.fetch?.(url, requestInit(sink.token, signal, EVENT_STREAM));
  if (response && !response.ok) return endingOf(await readReply(response));
  const reader = response?.body?.getReader();
  if (!response?.headers.get("Content-Type")?.startsWith(EVENT_STREAM) || !reader) {
    reader?.cancel().catch(none);
    return NO_GATEWAY;
  }
  sink.opened();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let ending: Ending | null = null;
  const parser = createEventParser((name, data) => {
    if (signal.aborted || ending) return;
    const value = readJson(data);
    if (name === "close") ending = closeOf(value);
    else sink.frame(value, data.length);
  });
  while (!ending) {
    await sink.room();
    const { done, value } = await reader.read();
    if (signal.aborted) return null;
    if (done) return BROKEN;
    sink.heard();
    parser.push(decoder.decode(value, { stream: true }));
  }
  reader.cancel().catch(none);
  return ending;
}
