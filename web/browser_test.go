//go:build browser

package web

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var browser context.Context // one Chromium for all tests; each test has a profile of its own in it

func TestMain(m *testing.M) {
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-US"), chromedp.WSURLReadTimeout(time.Minute))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	var quit context.CancelFunc
	browser, quit = chromedp.NewContext(allocator)
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintln(os.Stderr, "the page tests need Chromium (Debian: apt-get install chromium):", err)
		os.Exit(1)
	}
	code := m.Run()
	quit()
	stop()
	os.Exit(code)
}

// tab is one page; any script error in it fails the test. A refused request is no error.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func openTab(t *testing.T, parent context.Context, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, opts...)
	var mu sync.Mutex
	var faults []string
	err := chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			faults = append(faults, fmt.Sprintf("%+v", e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError {
				faults = append(faults, fmt.Sprint(e.Args))
			}
		case *log.EventEntryAdded:
			lineCut := strings.Contains(e.Entry.Text, "WebSocket connection to")
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork && !lineCut {
				faults = append(faults, e.Entry.Text)
			}
		}
	})
	if err != nil {
		t.Fatal("cannot open a tab:", err)
	}
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { stop(); cancel() })
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range faults {
			t.Error("the browser's console:", f)
		}
	})
	return &tab{t, ctx}
}

func newTab(t *testing.T) *tab { return openTab(t, browser, chromedp.WithNewBrowserContext()) }

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// until waits for an expression to become true. (The library's own poll evaluates text, which the policy forbids.)
func (b *tab) until(js string) {
	b.t.Helper()
	deadline, tick := time.After(25*time.Second), time.NewTicker(30*time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](js)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
			b.t.Fatalf("never true: %s\nthe page says:\n%s", js, text)
		}
	}
}

func (b *tab) says(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(document.querySelector(%q)?.innerText || "").includes(%q)`, selector, text))
}

const (
	first     = ".item:first-child"
	firstBuy  = first + " .buy"
	firstTold = first + " .told"
)

func (b *tab) login(s *shop) {
	b.t.Helper()
	b.run(chromedp.Navigate(s.url + "/a/" + activityID))
	b.says("h1", "Midnight sale")
	b.do(`document.querySelector("#login button").click()`)
	b.says("#user", userID)
	b.until(`document.querySelector("#login").hidden`)
}

// do runs a statement on the page.
func (b *tab) do(js string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](js+"; true")); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) click() {
	b.t.Helper()
	b.do(fmt.Sprintf(`document.querySelector(%q).click()`, firstBuy))
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
	b.says(firstBuy, "Opens in 00:0")
	b.until(`document.querySelector("#s").textContent === "02"`)
	if n := s.count("GET /api/time"); n != 3 {
		t.Errorf("the clock was asked for %d times, want 3", n)
	}
	before := s.count("")
	b.says(firstBuy, "Buy now")
	if n := s.count("") - before; n != 0 {
		t.Errorf("%d requests between load and start: %v", n, s.hits)
	}
	b.click()
	b.says(firstBuy, "Accepted")
	b.says(firstTold, "Your order is being made")
	s.placeAll()
	b.says(firstTold, "Pay within 14:")
	b.says(firstTold, orderNo)
	b.says("#orders", orderNo)
	b.says("#orders", "¥899.00")
	b.says(firstBuy, "You have yours")
	b.until(`Object.keys(localStorage).every((k) => !k.startsWith("fg.pending"))`)
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
			s, b := newShop(t, -time.Minute), newTab(t)
			s.script, s.instant = c.script, true
			b.login(s)
			b.click()
			b.says(firstTold, c.told)
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
	second := openTab(t, b.ctx)
	second.run(chromedp.Navigate(s.url + "/a/" + activityID))
	second.says(firstBuy, "Buy now")
	b.click()
	b.says(firstBuy, "Accepted")
	second.says(firstBuy, "Accepted")
	b.run(chromedp.Reload())
	b.says(firstBuy, "Accepted")
	s.cutSockets()
	b.says("#line", "Reconnecting")
	s.placeAll() // nobody is told: both tabs must ask
	b.says(firstTold, "Pay within")
	second.says(firstTold, "Pay within")
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
	b.says(first, "41 left")
	s.cutSockets()
	s.mu.Lock()
	s.items[0]["remaining"], s.items[0]["soldOut"] = 0, true
	s.mu.Unlock()
	b.says(firstBuy, "Sold out")
}
