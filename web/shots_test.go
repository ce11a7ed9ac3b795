//go:build shots

package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestScreenshots writes every state in every width, scheme and language into the folder FLOODGATE_SHOTS, for people to look at.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("FLOODGATE_SHOTS")
	if folder == "" {
		t.Fatal("FLOODGATE_SHOTS must name a folder")
	}
	states := map[string]struct {
		opens  time.Duration
		script []string
		press  bool
		told   string
	}{
		"before":   {3 * time.Hour, nil, false, ""},
		"open":     {-time.Minute, nil, false, ""},
		"ended":    {-2 * time.Hour, nil, false, ""},
		"accepted": {-time.Minute, nil, true, ""},
		"order":    {-time.Minute, nil, true, orderNo},
		"soldout":  {-time.Minute, []string{"sold_out"}, true, "."},
		"retrying": {-time.Minute, []string{"busy", "busy", "busy", "busy"}, true, "1"},
		"had":      {-time.Minute, []string{"duplicate"}, true, orderNo},
	}
	for name, st := range states {
		for _, lang := range []string{"en", "zh-CN"} {
			s, b := newShop(t, st.opens), newTab(t)
			s.script, s.instant = st.script, name == "order"
			b.Run(chromedp.Navigate(s.url + "/"))
			b.Do(`localStorage.setItem("fg.lang", "` + lang + `")`)
			if name == "open" {
				b.Run(chromedp.Reload())
				b.Says(".sale", "Midnight")
				b.shoot(t, folder, "list-"+lang)
				b.Run(chromedp.Navigate(s.url + "/a/" + activityID))
				b.Says("h1", "Midnight")
				b.shoot(t, folder, "login-"+lang)
			}
			b.login(s)
			if st.press {
				b.click()
				b.Until(fmt.Sprintf(`document.querySelector(%q).innerText.trim() !== ""`, firstTold))
			}
			if st.told == orderNo {
				b.Says(firstTold, orderNo)
			}
			b.shoot(t, folder, name+"-"+lang)
		}
	}
}

func (b tab) shoot(t *testing.T, folder, name string) {
	for _, width := range []int64{360, 768, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			b.Run(chromedp.EmulateViewport(width, 800), media("prefers-color-scheme", scheme))
			b.Until(`document.documentElement.scrollWidth <= innerWidth`) // nothing scrolls sideways
			png, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), png, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func media(name, value string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: name, Value: value}}})
		return err
	})
}
