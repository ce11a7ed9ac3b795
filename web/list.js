// The list of sales. It asks once, and again by itself only where that failed or no sale is planned yet.
import { backoff, jitter, wait } from "./line.js";
import { Shop } from "./shop.js";
import { $, make, phaseOf, put, settings, speak, windowText } from "./view.js";
import { say } from "./words.js";

const shop = new Shop({ ...settings(), activity: "" });
const order = ["open", "paused", "before", "ended"];
let sales = null;

function card(activity, phase) {
  const link = make("a", "card sale");
  link.href = "/a/" + activity.id;
  link.append(make("span", "phase " + phase, say("phase_" + phase)), make("h2", "", activity.title),
    make("p", "note", windowText(activity.startsAt, activity.endsAt)), make("p", "note", say("items_n", { n: activity.items.length })));
  const li = make("li");
  li.append(link);
  return li;
}

function render() {
  if (!sales) return;
  put($("note"), sales.length ? "" : say("no_sales"));
  const now = shop.now();
  const withPhase = sales.map((a) => ({ a, phase: phaseOf(a, now) }));
  withPhase.sort((x, y) => order.indexOf(x.phase) - order.indexOf(y.phase) || x.a.startsAt - y.a.startsAt);
  $("sales").replaceChildren(...withPhase.map(({ a, phase }) => card(a, phase)));
}

/** A sale may be planned any moment, for whoever looks: where there is none there is no crowd that asks. */
async function unhurried() {
  do await wait(2000 + jitter(3000));
  while (document.hidden);
}

speak(render);
setInterval(render, 30000); // a sale that opens moves up
for (let n = 0; !sales?.length; n++) {
  const r = await shop.ask("GET", "/api/activities");
  if (r.status === 200) {
    shop.offset = r.body.now - Date.now();
    sales = r.body.activities;
    render();
    if (!sales.length) await unhurried();
  } else {
    if (!sales) put($("note"), say("cannot_load"));
    await wait(backoff(n, 1000, 15000));
  }
}
