/** The first rung: a WebSocket. Credentials go in a subprotocol item, since browsers can set no header. */

import type { OpenChannel } from "./channel.js";
import { BROKEN, broken } from "./endings.js";
import { sessionUrl } from "./http.js";
import { type BadFrame, control, readJson } from "./messages.js";
import { none, type SocketConstructor } from "./platform.js";

const SUBPROTOCOL = "relayrouter.v1";
/** What may stand in a subprotocol item; other tokens go in a first `auth` message. */
const ITEM = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const OPEN = 1;

/** The socket's end before `opened` tells nothing in a browser: ask the gateway why. */
export const openWebSocket: OpenChannel = ({ platform, settings }, sink, query) => {
  const { token } = sink;
  const fitsItem = !!token && ITEM.test(token);
  const protocols = fitsItem ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
  const url = sessionUrl(sink.url, settings, "ws", query).replace(/^http/, "ws");
  const socket = new (platform.WebSocket as SocketConstructor)(url, protocols); // throws where there is none
  let wasOpen = false;

  const send = (text: string) => {
    const isOpen = socket.readyState === OPEN;
    if (isOpen) socket.send(text);
    return isOpen;
  };
  const close = (isDead: boolean) => {
    socket.onopen = socket.onmessage = socket.onclose = null;
    try {
      if (isDead && socket.terminate) socket.terminate();
      else socket.close(1000);
    } catch {
      // It never opened: there is nothing to close.
    }
  };
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    wasOpen = true;
    if (token && !fitsItem) send(control({ kind: "auth", token }));
    sink.opened();
  };
  socket.onmessage = ({ data }) => {
    if (typeof data !== "string") return sink.heard(); // media: nothing that this reader asked for
    let envelope: unknown;
    try {
      envelope = readJson(data);
    } catch (error) {
      return sink.ended(broken((error as BadFrame).message));
    }
    // On a poor connection several messages are one frame.
    const envelopes = Array.isArray(envelope) ? envelope : [envelope];
    for (const one of envelopes) sink.frame(one, data.length / envelopes.length);
  };
  socket.onerror = none; // `close` follows; some implementations throw an error that nobody hears
  socket.onclose = ({ code, reason }) => {
    if (!wasOpen) return sink.ended(broken("the upgrade failed"));
    // 1005 and 1006 are what this side makes up when no close frame came.
    sink.ended(code === 1005 || code === 1006 ? BROKEN : { code, reason });
  };
  return { send, close };
};
