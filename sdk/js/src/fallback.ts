/** What a page on a good network hardly needs: the lower rungs, history and healing. Loaded by `loadFallback`. */

export { Healer } from "./heal.js";
export { readHistory } from "./history.js";
export { openPoll } from "./poll.js";
export { openSse } from "./sse.js";
