package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	tabFor     = 2 * time.Minute // the longest that a test may use a tab
	truthAfter = 25 * time.Second
)

// Tab is one page in the browser. Its methods belong to the test's goroutine, and fail the test.
type Tab struct {
	Context context.Context // for actions of chromedp that have no method here
	t       testing.TB

	mu       sync.Mutex // guards what follows
	faults   []string
	requests []string
	frames   []string
}

func open(t testing.TB, parent context.Context, opts ...chromedp.ContextOption) *Tab {
	t.Helper()
	b := &Tab{t: t}
	ctx, cancel := chromedp.NewContext(parent, append(opts, chromedp.WithListener(b.hear))...)
	ctx, stop := context.WithTimeout(ctx, tabFor)
	b.Context = ctx
	t.Cleanup(func() { stop(); cancel() })
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error("the browser says:", f)
		}
	})
	return b
}

// Second opens another tab of the same profile.
func (b *Tab) Second() *Tab {
	b.t.Helper()
	return open(b.t, b.Context)
}

// hear notes what the tab asks for and what goes wrong in it. A refused request and a cut socket are no faults of a page.
func (b *Tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, fmt.Sprintf("%+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			b.faults = append(b.faults, fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		lineCut := strings.Contains(e.Entry.Text, "WebSocket connection to")
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork && !lineCut {
			b.faults = append(b.faults, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.asked(e.Request.Method, e.Request.URL)
	case *network.EventWebSocketCreated:
		b.asked("SOCKET", e.URL)
	case *network.EventWebSocketFrameReceived:
		b.frames = append(b.frames, string(e.Response.PayloadData))
	}
}

// asked notes a request; one that leaves this machine is a fault.
func (b *Tab) asked(method, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "data" || u.Scheme == "about" {
		return
	}
	b.requests = append(b.requests, method+" "+u.Path)
	if u.Hostname() != "127.0.0.1" {
		b.faults = append(b.faults, "a request to another host: "+address)
	}
}

// Requests lists what the tab has asked for since it was opened, as "GET /path"; a socket is "SOCKET /path".
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// Frames lists the messages that have come by socket.
func (b *Tab) Frames() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.frames)
}

// Run runs actions of chromedp.
func (b *Tab) Run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.Context, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// Do runs a JavaScript statement on the page.
func (b *Tab) Do(js string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.Context, chromedp.Evaluate[bool](js+"; true")); err != nil {
		b.t.Fatal(err)
	}
}

// Text is the value of a JavaScript expression that is a string.
func (b *Tab) Text(js string) string {
	b.t.Helper()
	text, err := chromedp.Run(b.Context, chromedp.Evaluate[string](js))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// Until waits for a JavaScript expression to become true. (chromedp's own poll evaluates text, which the pages' policy forbids.)
func (b *Tab) Until(js string) {
	b.t.Helper()
	deadline, tick := time.After(truthAfter), time.NewTicker(30*time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := chromedp.Run(b.Context, chromedp.Evaluate[bool](js)); err == nil && ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			text, _ := chromedp.Run(b.Context, chromedp.Evaluate[string](`document.body.innerText`))
			b.t.Fatalf("never true: %s\nthe page says:\n%s", js, text)
		}
	}
}

// Says waits until the first element of a selector holds a text.
func (b *Tab) Says(selector, text string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`(document.querySelector(%q)?.innerText || "").includes(%q)`, selector, text))
}
