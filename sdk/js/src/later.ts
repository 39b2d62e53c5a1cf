/** What reading the first message does not need: speaking, the lower rungs, recovery. See load_later.ts. */

export { explained } from "./explain.js";
export { openPoll } from "./poll.js";
export { Recovery } from "./recovery.js";
export { Speech } from "./speech.js";
export { openSse } from "./sse.js";
