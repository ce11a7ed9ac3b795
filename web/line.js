// The line to the notifier: one socket, come back to with full jitter, silent while there is nothing to hear.

export const wait = (ms) => new Promise((done) => setTimeout(done, ms));
export const jitter = (ms) => Math.random() * ms; // full jitter: a crowd that lost its line together does not return together
export const backoff = (attempt, first, most) => jitter(Math.min(most, first * 2 ** Math.min(attempt, 20))) + 200;
export const settled = (outcome) => outcome !== "accepted" && outcome !== "waitlisted";

const RECONNECT_MOST = 30000; // ms
const TIMER_MOST = 2 ** 31 - 1; // ms, setTimeout's own limit

/** Tells by events: line (up or down), stock, outcome. Who extends it has a token and now(), the server's clock. */
export class Line extends EventTarget {
  constructor(address, activity) {
    super();
    this.address = address;
    this.activity = activity; // "" where nothing is to be heard
    this.connected = false;
    this.hopeless = false; // the notifier refused us for good
    this.attempt = 0;
    this.watched = new Set(); // request tokens without a final outcome
    this.heard = new Set(); // the request tokens of the last outcomes that were pushed
    this.quietUntil = 0; // before this instant a lost socket is left alone: nobody asks between load and start
    addEventListener("online", () => this.now() >= this.quietUntil && this.connect());
  }

  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  connect() {
    clearTimeout(this.later);
    if (!this.activity || !this.mayLogIn || this.hopeless || this.socket) return;
    const s = (this.socket = new WebSocket(this.address, "floodgate.v1"));
    s.onopen = () => this.token && s.send(JSON.stringify({ type: "auth", token: this.token }));
    s.onmessage = (e) => this.socket === s && this.hear(JSON.parse(e.data));
    s.onclose = (e) => this.socket === s && this.lost(e);
  }

  disconnect() {
    clearTimeout(this.later);
    const s = this.socket;
    this.socket = null;
    this.connected = this.hopeless = false;
    if (s) s.close();
  }

  say(message) {
    if (this.connected) this.socket.send(JSON.stringify(message));
  }

  watch(requestToken) {
    this.watched.add(requestToken);
    this.say({ type: "watch", requestToken });
  }

  hear(m) {
    if (m.type === "ready") {
      this.connected = true;
      this.attempt = 0;
      this.say({ type: "subscribe", activityId: this.activity });
      for (const requestToken of this.watched) this.say({ type: "watch", requestToken });
      this.tell("line");
    } else if (m.type === "stock" && m.activityId === this.activity) {
      this.tell("stock", m.items);
    } else if (m.type === "outcome") {
      if (this.heard.size >= 50) this.heard.clear();
      this.heard.add(m.requestToken);
      if (settled(m.outcome)) this.watched.delete(m.requestToken);
      this.tell("outcome", m);
    }
  }

  lost(e) {
    this.socket = null;
    this.connected = false;
    // Unauthorized, forbidden, not understood: coming back would be answered the same. Polls still tell the truth.
    this.hopeless = [4001, 4003, 4400].includes(e.code);
    this.tell("line");
    const asked = e.code === 1012 ? Number(e.reason) || 1000 : 0;
    const delay = asked || backoff(this.attempt++, e.code === 4009 ? RECONNECT_MOST : 1000, RECONNECT_MOST);
    const quiet = this.watched.size ? 0 : this.quietUntil - this.now();
    this.later = setTimeout(() => this.connect(), Math.min(TIMER_MOST, quiet > 0 ? quiet + jitter(3000) : delay));
  }
}
