// Package browsertest shows tests the pages in a real browser. A Browser is one Chromium; each Tab that a test opens has a
// profile of its own in it, so tests may run in parallel. A script error and a request to another host fail the test.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// names are what Chromium is called by its packages.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// startWithin is for a cold disk and a machine that runs other tests too.
const startWithin = time.Minute

// Browser is one Chromium process. It may be used concurrently.
type Browser struct {
	ctx  context.Context
	stop func()
}

// Start starts Chromium. The error says what is missing.
func Start() (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	// As root in a container there is no sandbox; nothing leaves the machine by itself.
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("lang", "en-US"),
		chromedp.WSURLReadTimeout(startWithin))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, quit := chromedp.NewContext(allocator)
	b := &Browser{ctx, func() { quit(); stop() }}
	if err := chromedp.Do(ctx); err != nil {
		b.Stop()
		return nil, fmt.Errorf("cannot start %s: %w", path, err)
	}
	return b, nil
}

// Stop ends Chromium and removes its profiles.
func (b *Browser) Stop() { b.stop() }

func find() (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the tests of the pages need Chromium, and there is none on PATH (Debian: apt-get install chromium)")
}

// Open opens a tab with a profile of its own, until the test ends.
func (b *Browser) Open(t testing.TB) *Tab {
	t.Helper()
	return open(t, b.ctx, chromedp.WithNewBrowserContext())
}
