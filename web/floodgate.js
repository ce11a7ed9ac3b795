// What a buyer's page does, without the page: one purchase under one request token, and watching it until its
// outcome is known. It tells the page by the event item, with the commodity.
//
// One purchase: ask for a request token, write it down, send the order. Whatever happens after that (a cut line, a
// reload, a second tab, a crash) is answered by asking about that same token, so nothing is ever bought twice.

import { backoff, jitter, settled, wait } from "./line.js";
import { Shop } from "./shop.js";

const MOST_RETRIES = 3; // of too_fast and busy, by themselves; after that the buyer decides

export class Floodgate extends Shop {
  constructor(options) {
    super(options);
    this.items = new Map(); // commodity -> what the buyer is told: {step, code?, reason?, orderNo?, n?, of?}
    this.busy = new Set(); // commodities with a purchase under way in this tab
    this.refused = new Map(); // request tokens that were told sold_out -> their commodity
    this.addEventListener("outcome", (e) => this.afterAll(e.detail));
    addEventListener("storage", (e) => this.stored(e));
  }

  async login(userId) {
    const r = await this.ask("POST", "/api/demo/login", userId ? { userId } : {});
    if (r.status !== 200) return r.code;
    localStorage.setItem("fg.user", r.body.userId);
    localStorage.setItem("fg.token", r.body.token);
    await this.begin();
    return "";
  }

  logout() {
    localStorage.removeItem("fg.token");
    localStorage.removeItem("fg.user");
    this.begin();
  }

  /** Starts over for whoever is logged in: their orders, what is pending of theirs, and the line. */
  async begin() {
    this.watched.clear();
    this.items.clear();
    this.orders.clear();
    this.disconnect();
    this.tell("session");
    if (!this.activity) return;
    if (this.mayLogIn) await this.loadOrders();
    this.connect();
    for (const commodity of this.pendingItems()) this.resume(commodity);
  }

  // ---- what is pending, kept where a reload and a second tab find it

  key(commodity) { return `fg.pending.${this.user}.${this.activity}.${commodity}`; }

  pending(commodity) {
    try {
      return JSON.parse(localStorage.getItem(this.key(commodity)));
    } catch {
      return null;
    }
  }

  remember(commodity, p) { localStorage.setItem(this.key(commodity), JSON.stringify(p)); }
  forget(commodity) { localStorage.removeItem(this.key(commodity)); }

  pendingItems() {
    const prefix = this.key("");
    return Object.keys(localStorage).filter((k) => k.startsWith(prefix)).map((k) => k.slice(prefix.length));
  }

  stored(e) {
    if (e.key === "fg.token" || e.key === null) this.begin();
    const prefix = this.key("");
    if (!this.activity || !e.key || !e.key.startsWith(prefix)) return;
    const commodity = e.key.slice(prefix.length);
    if (e.newValue) this.resume(commodity, 1500); // the other tab is about to send: leave it the time to
    else this.release(commodity);
  }

  /** Another tab is done with this purchase: what came of it is an order of ours, or nothing. */
  async release(commodity) {
    if (this.busy.has(commodity)) return;
    await this.loadOrders();
    if (!this.pending(commodity)) this.set(commodity, null);
  }

  set(commodity, state) {
    if (state) this.items.set(commodity, state);
    else this.items.delete(commodity);
    this.tell("item", commodity);
  }

  // ---- one purchase

  /** The buyer pressed the button. A purchase under way is resumed, never doubled. */
  async buy(commodity) {
    await this.alone(commodity, async (mine) => {
      let p = this.pending(commodity);
      if (!p) {
        this.set(commodity, { step: "sending" });
        const r = await this.patiently(commodity, () => this.ask("POST", `/api/activities/${this.activity}/token`, {}));
        if (r.status !== 200) return mine() && this.refuse(commodity, r);
        p = { requestToken: r.body.requestToken, sure: true };
        if (!mine()) return;
        this.remember(commodity, p);
      }
      await this.send(commodity, p, mine);
    });
  }

  /** Comes back to a purchase that this or another tab began. */
  async resume(commodity, delay = 0) {
    await this.alone(commodity, async (mine) => {
      this.set(commodity, { step: "sending" });
      await wait(delay);
      const p = mine() && this.pending(commodity);
      if (!p) return mine() && this.set(commodity, null);
      await this.find(commodity, p, mine);
    });
  }

  /** Runs one purchase of an item at a time; mine() turns false when somebody else has logged in. */
  async alone(commodity, work) {
    if (this.busy.has(commodity)) return;
    this.busy.add(commodity);
    const user = this.user;
    try {
      await work(() => user === this.user);
    } finally {
      this.busy.delete(commodity);
      this.tell("item", commodity);
    }
  }

  async send(commodity, p, mine) {
    this.set(commodity, { step: "sending" });
    const path = `/api/activities/${this.activity}/items/${commodity}/orders`;
    const body = { requestToken: p.requestToken, quantity: 1 };
    const r = await this.patiently(commodity, async () => {
      const answer = await this.ask("POST", path, body);
      // Busy may be said of a reservation whose answer was lost, so it is as unsure as a cut line.
      if (answer.status === 0 || answer.status >= 500) this.remember(commodity, (p = { ...p, sure: false }));
      return answer;
    });
    if (!mine()) return;
    if (r.status === 202) return this.accepted(commodity, p, mine);
    if (r.status === 0) return this.find(commodity, p, mine);
    // A token that was ever left unsure may have bought: ask about it before any refusal is believed.
    if (p.sure && r.code === "sold_out") p = this.maybeRepeated(commodity, p);
    const live = r.code === "duplicate" && r.body.error.requestToken;
    if (!p.sure && live !== p.requestToken) return this.find(commodity, p, mine, r);
    if (live) return this.already(commodity, p, r.body.error, mine);
    this.forgetUnlessRetry(commodity, r);
    this.refuse(commodity, r);
  }

  /**
   * A browser whose kept connection breaks under a request sends it again by itself and tells nobody, so a first sold_out
   * may be the answer to a repeat of what was taken. A whole crowd that asks about it would be a second crowd: the socket
   * tells every outcome of a user unasked, so the token is remembered for it; who has no socket asks.
   */
  maybeRepeated(commodity, p) {
    if (this.refused.size >= 20) this.refused.clear();
    this.refused.set(p.requestToken, commodity);
    return { ...p, sure: this.connected && !this.heard.has(p.requestToken) };
  }

  /** An outcome of a request that was told sold_out: it was bought after all. */
  afterAll(o) {
    const commodity = this.refused.get(o.requestToken);
    if (!commodity) return;
    this.refused.delete(o.requestToken);
    this.alone(commodity, (mine) => this.outcome(commodity, { requestToken: o.requestToken, sure: true }, o, mine));
  }

  forgetUnlessRetry(commodity, r) {
    if (r.code !== "busy" && r.code !== "too_fast") this.forget(commodity);
  }

  /** Asks again by itself where the shop asks for patience, saying so, three times at the most. */
  async patiently(commodity, once) {
    for (let n = 1; ; n++) {
      const r = await once();
      const early = r.code === "not_started" ? this.tooEarly(r.body.error) : Infinity;
      const again = r.code === "too_fast" || r.code === "busy" || early < 3000;
      if (!again || n > MOST_RETRIES) return r;
      const step = early < 3000 ? "sending" : "retrying";
      this.set(commodity, { step, code: r.code, n, of: MOST_RETRIES });
      await wait(early < 3000 ? early + jitter(200) : r.retryAfter + jitter(1000));
    }
  }

  /** Our clock was ahead: it is set by the answer. Returns the ms that are missing. */
  tooEarly({ startsAt, now }) {
    this.offset = now - Date.now();
    this.tell("offset");
    return Math.max(0, startsAt - now);
  }

  /** Asks about the token until its fate is known. refusal is what the shop last said, believed only if the token is unknown. */
  async find(commodity, p, mine, refusal) {
    for (let n = 0; mine(); n++) {
      if (n > 0) this.set(commodity, { step: "unknown" });
      const r = await this.ask("GET", "/api/requests/" + p.requestToken);
      if (!mine()) return;
      if (r.status === 200) return this.outcome(commodity, p, r.body, mine);
      if (r.status === 404) return this.unknownToShop(commodity, p, mine, refusal);
      if (r.status === 401 || r.status === 403 || r.status === 400) return this.refuse(commodity, r);
      await wait(backoff(n, 1000, 10000));
    }
  }

  async unknownToShop(commodity, p, mine, refusal) {
    if (!refusal) return this.send(commodity, p, mine); // never arrived: the same token again
    if (refusal.code === "duplicate" && refusal.body.error.requestToken) return this.already(commodity, p, refusal.body.error, mine);
    this.forgetUnlessRetry(commodity, refusal);
    this.refuse(commodity, refusal);
  }

  /** The limit is used up: what stands behind it is shown, so that the buyer is not left with a no. */
  async already(commodity, before, error, mine) {
    const p = { requestToken: error.requestToken, sure: true, had: error.requestToken !== before.requestToken };
    this.remember(commodity, p);
    if (error.orderNo) return this.ordered(commodity, p, error, mine);
    return this.accepted(commodity, p, mine);
  }

  refuse(commodity, r) {
    if (r.status === 401) this.tell("session", "expired");
    this.set(commodity, { step: "refused", code: r.code || "failed" });
  }

  async outcome(commodity, p, o, mine) {
    if (!settled(o.outcome)) return this.accepted(commodity, p, mine);
    if (o.orderNo && o.outcome !== "failed") return this.ordered(commodity, p, o, mine);
    this.forget(commodity);
    this.set(commodity, { step: "refused", code: o.outcome, reason: o.reason });
  }

  /** Accepted: wait for the outcome by socket, and ask for it now and then, often while the socket is down. */
  async accepted(commodity, p, mine) {
    this.set(commodity, { step: "accepted", had: p.had });
    for (let n = 0; mine(); n++) {
      const o = await this.next(p.requestToken, this.connected ? 15000 + jitter(5000) : backoff(n, 1000, 8000));
      if (o && settled(o.outcome)) return this.outcome(commodity, p, o, mine);
    }
  }

  /** The next outcome of a token by push, or by a poll once ms have passed or the line was lost. */
  async next(requestToken, ms) {
    const stop = new AbortController();
    const pushed = new Promise((done) => {
      this.addEventListener("outcome", (e) => e.detail.requestToken === requestToken && done(e.detail), stop);
      this.addEventListener("line", () => this.connected || done(null), stop);
      setTimeout(() => done(null), ms);
    });
    this.watch(requestToken);
    const o = await pushed;
    stop.abort();
    if (o) return o;
    const r = await this.ask("GET", "/api/requests/" + requestToken);
    return r.status === 200 ? r.body : null;
  }

  async ordered(commodity, p, o, mine) {
    this.set(commodity, { step: "accepted", had: p.had });
    for (let n = 0; mine(); n++) {
      if (await this.loadOrder(o.orderNo)) break;
      await wait(backoff(n, 1000, 10000));
    }
    if (!mine()) return;
    this.forget(commodity);
    this.set(commodity, { step: "order", orderNo: o.orderNo, had: p.had });
  }
}
