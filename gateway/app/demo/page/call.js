// The call beside the text: frames of the SDK's media entry, drawn; what came and what the connection had no room for.
import { withMedia } from "./media.js";

const BARS = 24; // heights at the beginning of a picture; gateway/app/demo/media.py
const SHOWN_EVERY_MS = 250;

export class Call {
  constructor(root) {
    this.canvas = root.querySelector("canvas");
    this.figures = root.querySelector(".call-figures");
    this.root = root;
    this.counts = { audio: 0, video: 0, dropped: 0 };
    this.sentBefore = null;
    this.sent = null;
    this.isAudioOnly = false;
    this.picture = null;
    this.tone = null;
    this.isDrawing = false;
    setInterval(() => this.showFigures(), SHOWN_EVERY_MS);
  }

  // Options for `connect`: asks for media, and shows what comes.
  join(options) {
    const media = withMedia(options, ["audio", "video"]);
    media.on("media", ({ type, payload }) => {
      this.counts[type] += 1;
      if (type === "video") {
        this.picture = payload.subarray(0, BARS);
        this.isAudioOnly = false;
      } else this.tone = payload;
      this.draw();
    });
    media.on("media_dropped", ({ audio, video, isAudioOnly }) => {
      this.counts.dropped += audio + video;
      this.isAudioOnly = isAudioOnly;
    });
    return media.options;
  }

  // What the agent says that it sent, since the demo began.
  heard({ is_on: isOn, audio, video }) {
    if (isOn && this.root.hidden) {
      this.sentBefore = { audio, video };
      this.counts = { audio: 0, video: 0, dropped: 0 };
    }
    this.root.hidden = !isOn;
    this.sent = { audio, video };
    const button = document.getElementById("call");
    button.ariaPressed = String(isOn);
    button.dataset.action = `media/${isOn ? "off" : "on"}`;
  }

  showFigures() {
    if (this.root.hidden || this.sentBefore === null) return;
    const { audio, video, dropped } = this.counts;
    const sent = { audio: this.sent.audio - this.sentBefore.audio, video: this.sent.video - this.sentBefore.video };
    Object.assign(this.root.dataset, { audio, video, dropped });
    this.figures.textContent = `sound ${audio} of ${sent.audio}, pictures ${video} of ${sent.video}, left out ${dropped}${this.isAudioOnly ? "; sound only: the connection is poor" : ""}`;
    this.canvas.setAttribute("aria-label", `The agent's call: ${this.figures.textContent}`);
  }

  draw() {
    if (this.isDrawing || this.root.hidden) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      const pen = this.canvas.getContext("2d");
      const { width, height } = this.canvas;
      const style = getComputedStyle(this.canvas);
      pen.clearRect(0, 0, width, height);
      pen.fillStyle = style.getPropertyValue("--accent");
      pen.globalAlpha = this.isAudioOnly ? 0.15 : 0.55;
      const step = width / BARS;
      this.picture?.forEach((value, bar) => {
        const tall = Math.max(2, (value / 255) * height);
        pen.fillRect(bar * step + 1, height - tall, step - 2, tall);
      });
      pen.globalAlpha = 1;
      pen.strokeStyle = style.color;
      pen.lineWidth = 2;
      pen.beginPath();
      this.tone?.forEach((sample, at) => pen.lineTo((at / this.tone.length) * width, (sample / 255) * height));
      pen.stroke();
    });
  }
}
