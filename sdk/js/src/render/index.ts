/** Shows text as it comes, at the pace of the page. */

export { FrameBatch, type FrameClock, pageClock } from "./frames.js";
export { type LagSink, Lateness } from "./lateness.js";
export { type RenderOptions, renderText, type TextCutter, type TextSession } from "./render_text.js";
export { TextNodes } from "./text_nodes.js";
