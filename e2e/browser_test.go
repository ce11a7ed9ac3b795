package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"floodgate/sale"
	"floodgate/web/browsertest"
)

const (
	browserUser = sale.ID(9007199254740993) // what JavaScript's numbers would make ...992
	theBuy      = ".item:first-child .buy"
	theOrder    = ".order:first-child"
)

// A person opens the page that `floodgate serve` prints, logs in before the start, and presses the button once when it opens by
// itself. The order comes by socket, nobody polls, and it is the same after a reload. Not parallel: the demo opens 10 s after the
// start, and the page has to be there before.
func TestBrowserCountdownToOrder(t *testing.T) {
	browser, err := browsertest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(browser.Stop)
	build(t)
	tab := browser.Open(t) // before the shop, whose countdown is short
	tab.Run(chromedp.Navigate("about:blank"))
	r := newEmbedded(t)
	tab.Run(chromedp.Navigate("http://" + r.procs["serve"].addr["edge"] + "/"))
	tab.Says(".sale", "Flash sale demo")
	tab.Do(`document.querySelector(".sale").click()`)
	tab.Says("h1", "Flash sale demo")
	tab.Do(`document.querySelector("#user-id").value = "` + browserUser.String() + `"`)
	tab.Do(`document.querySelector("#login button").click()`)
	tab.Says("#user", browserUser.String())

	tab.Says(theBuy, "Opens in 00:0")
	tab.Until(`document.querySelector("` + theBuy + `").getAttribute("aria-disabled") === "true"`)
	first := tab.Text(`document.querySelector("#s").textContent`)
	tab.Until(`document.querySelector("#s").textContent < "` + first + `"`)
	tab.Says(theBuy, "Buy now")
	tab.Run(chromedp.Click(theBuy))
	tab.Says(theOrder, "¥99.00")
	shown := shownOrder(tab)
	tab.Says(".item:first-child .told", shown)
	tab.Says(theBuy, "You have yours")
	cameBySocket(t, tab, shown)

	listed := r.ordersOf(browserUser)
	if len(listed) != 1 || listed[0].OrderNo != shown || listed[0].State != "pending_payment" {
		t.Fatalf("the page shows order %s, the list has %+v", shown, listed)
	}
	tab.Run(chromedp.Reload())
	tab.Says("#user", browserUser.String())
	tab.Says(theBuy, "You have yours")
	if again := shownOrder(tab); again != shown {
		t.Errorf("order %s is %s after a reload", shown, again)
	}
	r.audit(listed[0].ActivityID)
	r.noRaces()
}

// shownOrder is the number of the first order on the page.
func shownOrder(tab *browsertest.Tab) string {
	tab.Until(`document.querySelectorAll(".order").length === 1`)
	return tab.Text(`document.querySelector(".order dd").textContent`)
}

// cameBySocket demands one order call, a pushed outcome and no poll.
func cameBySocket(t *testing.T, tab *browsertest.Tab, orderNo string) {
	t.Helper()
	orders := 0
	for _, asked := range tab.Requests() {
		if strings.HasPrefix(asked, "GET /api/requests/") {
			t.Errorf("the page polled: %s", asked)
		}
		if strings.HasPrefix(asked, "POST ") && strings.HasSuffix(asked, "/orders") {
			orders++
		}
	}
	if orders != 1 {
		t.Errorf("one click made %d order calls", orders)
	}
	if !slices.ContainsFunc(tab.Frames(), func(frame string) bool { return pushes(frame, orderNo) }) {
		t.Errorf("no outcome of order %s among the socket's messages %q", orderNo, tab.Frames())
	}
}

// pushes says whether a frame, which may hold several messages, one a line, tells of the order.
func pushes(frame, orderNo string) bool {
	for d := json.NewDecoder(strings.NewReader(frame)); ; {
		var m struct{ Type, Outcome, OrderNo string }
		if d.Decode(&m) != nil {
			return false
		}
		if m.Type == "outcome" && m.Outcome == "pending_payment" && m.OrderNo == orderNo {
			return true
		}
	}
}

type listedOrder struct {
	OrderNo, State string
	ActivityID     sale.ID
}

// ordersOf asks an edge for a user's orders.
func (r *rig) ordersOf(user sale.ID) []listedOrder {
	r.t.Helper()
	jwt, err := r.signer.Sign(user, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	var list struct{ Orders []listedOrder }
	if code := r.get("http://"+r.procs["edge-1"].addr["edge"]+"/api/orders", jwt, &list); code != http.StatusOK {
		r.t.Fatalf("GET /api/orders: %d", code)
	}
	return list.Orders
}
