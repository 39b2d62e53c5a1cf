/** Text cut into segments, in the page or anywhere, by the gateway's rules. */

export type { SegmentMode, SegmentOptions } from "./options.js";
export { type BlockFields, type LineFields, type Segment, SegmentStateError } from "./rule.js";
export { Segmenter } from "./segmenter.js";
export { type SegmentStreamOptions, segmentStream, type TextChunk, type TextSource } from "./stream.js";
