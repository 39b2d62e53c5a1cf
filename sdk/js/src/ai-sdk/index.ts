/** The AI SDK's chat over a session. */

export { type RelayChatOptions, RelayChatTransport } from "./transport.js";
