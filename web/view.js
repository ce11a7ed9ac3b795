// What both pages share: finding and making elements, words, times and money as the buyer reads them.
import { language, say, switchLanguage } from "./words.js";

export const $ = (id) => document.getElementById(id);

/** Makes an element: make("p", "note", "text"). */
export function make(tag, className = "", text = "") {
  const el = document.createElement(tag);
  if (className) el.className = className;
  if (text) el.textContent = text;
  return el;
}

/** Sets a text only where it differs, so that a screen reader is not told the same twice. */
export function put(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;

/** What the edge tells the page: the notifier's address, and whether anybody may log in. */
export function settings() {
  const ws = location.protocol === "https:" ? "wss:" : "ws:";
  return { socket: meta("fg-socket") || `${ws}//${location.hostname}:8081/ws`, demo: meta("fg-demo") === "true" };
}

/** Writes the fixed words of the page, and again when the language is changed; then the page's own. */
export function speak(render) {
  const write = () => {
    document.documentElement.lang = language();
    for (const el of document.querySelectorAll("[data-say]")) put(el, say(el.dataset.say));
    for (const el of document.querySelectorAll("[data-say-label]")) {
      el.placeholder = say(el.dataset.sayLabel);
      el.setAttribute("aria-label", el.placeholder);
    }
    put($("lang"), say("other_language"));
    render();
  };
  $("lang").addEventListener("click", () => {
    switchLanguage();
    write();
  });
  write();
}

const day = { year: "numeric", month: "short", day: "numeric" };
const clock = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

/** A window in the buyer's own time zone, the day said once where it is the same. */
export function windowText(from, to) {
  const a = new Date(from), b = new Date(to);
  const first = new Intl.DateTimeFormat(language(), { ...day, weekday: "short", ...clock });
  const sameDay = a.toDateString() === b.toDateString();
  const last = new Intl.DateTimeFormat(language(), { ...(sameDay ? {} : day), ...clock });
  const zone = new Intl.DateTimeFormat(language(), { timeZoneName: "short" }).formatToParts(b).find((p) => p.type === "timeZoneName");
  return `${first.format(a)} – ${last.format(b)} (${zone.value})`;
}

export const timeText = (at) => new Intl.DateTimeFormat(language(), { ...day, ...clock, second: "2-digit" }).format(new Date(at));
export const money = (amount) => say("price", { n: amount });

const two = (n) => String(n).padStart(2, "0");

/** Milliseconds as days, hours, minutes and seconds; the last second counts until it is over. */
export function parts(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return { d: two(Math.floor(s / 86400)), h: two(Math.floor(s / 3600) % 24), m: two(Math.floor(s / 60) % 60), s: two(s % 60) };
}

/** A short countdown: 14:59, or 26:14:59 from an hour on. */
export function short(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const hours = Math.floor(s / 3600);
  return (hours ? two(hours) + ":" : "") + two(Math.floor(s / 60) % 60) + ":" + two(s % 60);
}

/** before, open, ended or paused, by the server's clock. */
export function phaseOf(activity, now) {
  if (activity.status === "ended" || now >= activity.endsAt) return "ended";
  if (now < activity.startsAt) return "before";
  return activity.status === "paused" ? "paused" : "open";
}

/** A picture for an item that has none: calm shapes, the same for the same id. */
export function placeholder(id) {
  let seed = 7;
  for (const c of id) seed = (seed * 31 + c.charCodeAt(0)) % 9973;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 96 96");
  svg.setAttribute("class", "picture");
  svg.setAttribute("aria-hidden", "true");
  for (let i = 0; i < 3; i++) {
    seed = (seed * 171 + 11213) % 53125;
    const shape = document.createElementNS(svg.namespaceURI, "circle");
    shape.setAttribute("cx", 16 + (seed % 64));
    shape.setAttribute("cy", 16 + ((seed >> 4) % 64));
    shape.setAttribute("r", 40 - i * 11);
    svg.append(shape);
  }
  return svg;
}
