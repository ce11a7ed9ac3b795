package web

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"floodgate/web/browsertest"
)

// browser is one Chromium for all tests, started by the first that needs it.
var browser = sync.OnceValues(func() (*browsertest.Browser, error) {
	b, err := browsertest.Start()
	if err == nil {
		stopBrowser = b.Stop
	}
	return b, err
})

var stopBrowser = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stopBrowser()
	os.Exit(code)
}

// tab is the page of a shop in a browser.
type tab struct{ *browsertest.Tab }

func newTab(t *testing.T) tab {
	t.Helper()
	b, err := browser()
	if err != nil {
		t.Fatal(err)
	}
	return tab{b.Open(t)}
}

const (
	first     = ".item:first-child"
	firstBuy  = first + " .buy"
	firstTold = first + " .told"
)

func (b tab) login(s *shop) {
	b.Run(chromedp.Navigate(s.url + "/a/" + activityID))
	b.Says("h1", "Midnight sale")
	b.Do(`document.querySelector("#login button").click()`)
	b.Says("#user", userID)
	b.Until(`document.querySelector("#login").hidden`)
}

func (b tab) click() {
	b.Do(fmt.Sprintf(`document.querySelector(%q).click()`, firstBuy))
}

func (s *shop) count(hit string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, h := range s.hits {
		if strings.HasPrefix(h, hit) {
			n++
		}
	}
	return n
}

// placeAll makes every accepted request an order, and says for which it did.
func (s *shop) placeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, o := range s.tokens {
		if o["outcome"] == "accepted" {
			s.place(token)
		}
	}
}

func TestPurchaseFromCountdownToOrder(t *testing.T) {
	t.Parallel()
	s, b := newShop(t, 6*time.Second), newTab(t)
	b.login(s)
	b.Says(firstBuy, "Opens in 00:0")
	b.Until(`document.querySelector("#s").textContent === "02"`)
	if n := s.count("GET /api/time"); n != 3 {
		t.Errorf("the clock was asked for %d times, want 3", n)
	}
	before := s.count("")
	b.Says(firstBuy, "Buy now")
	if n := s.count("") - before; n != 0 {
		t.Errorf("%d requests between load and start: %v", n, s.hits)
	}
	b.click()
	b.Says(firstBuy, "Accepted")
	b.Says(firstTold, "Your order is being made")
	s.placeAll()
	b.Says(firstTold, "Pay within 14:")
	b.Says(firstTold, orderNo)
	b.Says("#orders", orderNo)
	b.Says("#orders", "¥899.00")
	b.Says(firstBuy, "You have yours")
	b.Until(`Object.keys(localStorage).every((k) => !k.startsWith("fg.pending"))`)
}

// TestAnswers: what the order call answers, in turn; what the buyer reads in the end; how many order calls and how many
// different request tokens that took.
func TestAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		script        []string
		told          string
		posts, tokens int // posts 0: not known, since a browser may repeat a request whose connection broke by itself
	}{
		"busy, then taken":                      {[]string{"busy", "too_fast"}, "Pay within", 3, 1},
		"busy for long":                         {[]string{"busy", "busy", "busy", "busy", "busy"}, "Very busy right now", 4, 1},
		"the line is cut before":                {[]string{"cut"}, "Pay within", 0, 1},
		"the line is cut after":                 {[]string{"take_and_cut"}, "Pay within", 0, 1},
		"cut, then sold out, but it was bought": {[]string{"take_and_cut", "sold_out"}, "Pay within", 0, 1},
		"cut, then sold out":                    {[]string{"cut", "sold_out"}, "Sold out. Nothing was bought", 0, 1},
		"sold out":                              {[]string{"sold_out"}, "Sold out. Nothing was bought", 1, 1},
		"duplicate":                             {[]string{"duplicate"}, "You already have an order", 1, 1},
		"blocked":                               {[]string{"blocked"}, "This account is blocked", 1, 1},
		"ended":                                 {[]string{"ended"}, "The sale has ended", 1, 1},
		"token expired":                         {[]string{"bad_request_token"}, "Please try again", 1, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b := newShop(t, -time.Minute), newTab(t)
			s.script, s.instant = c.script, true
			b.login(s)
			b.click()
			b.Says(firstTold, c.told)
			s.mu.Lock()
			defer s.mu.Unlock()
			tokens := slices.Compact(slices.Clone(s.posts))
			if (c.posts > 0 && len(s.posts) != c.posts) || len(tokens) != c.tokens || len(s.orders) > 1 {
				t.Errorf("%d order calls with %d tokens made %d orders, want %d calls with %d", len(s.posts), len(tokens), len(s.orders), c.posts, c.tokens)
			}
		})
	}
}

func TestReloadSecondTabAndLostSocketComeToTheTruth(t *testing.T) {
	t.Parallel()
	s, b := newShop(t, -time.Minute), newTab(t)
	b.login(s)
	second := tab{b.Second()}
	second.Run(chromedp.Navigate(s.url + "/a/" + activityID))
	second.Says(firstBuy, "Buy now")
	b.click()
	b.Says(firstBuy, "Accepted")
	second.Says(firstBuy, "Accepted")
	b.Run(chromedp.Reload())
	b.Says(firstBuy, "Accepted")
	s.cutSockets()
	b.Says("#line", "Reconnecting")
	s.placeAll() // nobody is told: both tabs must ask
	b.Says(firstTold, "Pay within")
	second.Says(firstTold, "Pay within")
	if len(s.posts) != 1 {
		t.Errorf("%d order calls, want 1", len(s.posts))
	}
}

func TestStockIsLiveWithAndWithoutSocket(t *testing.T) {
	t.Parallel()
	s, b := newShop(t, -time.Minute), newTab(t)
	b.login(s)
	s.mu.Lock()
	s.items[0]["remaining"] = 41
	for c := range s.sockets {
		c.WriteJSON(object{"type": "stock", "activityId": activityID, "items": s.items})
	}
	s.mu.Unlock()
	b.Says(first, "41 left")
	s.cutSockets()
	s.mu.Lock()
	s.items[0]["remaining"], s.items[0]["soldOut"] = 0, true
	s.mu.Unlock()
	b.Says(firstBuy, "Sold out")
}

func TestOrderComesWithoutNotifier(t *testing.T) {
	t.Parallel()
	s, b := newShop(t, -time.Minute), newTab(t)
	s.cutSockets() // and none is let in
	b.login(s)
	b.click()
	b.Says(firstBuy, "Accepted")
	s.placeAll() // nobody is told
	b.Says(firstTold, "Pay within")
	b.Says(firstTold, orderNo)
	if n := s.count("GET /api/requests/"); n == 0 || len(s.posts) != 1 {
		t.Errorf("%d polls and %d order calls, want some and 1", n, len(s.posts))
	}
}

func TestListShowsASaleThatIsPlannedLater(t *testing.T) {
	t.Parallel()
	s, b := newShop(t, time.Hour), newTab(t)
	s.mu.Lock()
	s.unplanned = true
	s.mu.Unlock()
	b.Run(chromedp.Navigate(s.url + "/"))
	b.Says("#note", "No sale is planned")
	s.mu.Lock()
	s.unplanned = false
	s.mu.Unlock()
	b.Says(".sale", "Midnight sale")
	b.Until(`document.querySelector("#note").textContent === ""`)
}
