package web

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"floodgate/sale"
)

const mostBytes = 60_000 // a page must come over a bad line within a second or two

func text(t *testing.T, path string) string {
	t.Helper()
	for _, f := range Files() {
		if f.Path == path {
			return string(f.Body)
		}
	}
	t.Fatalf("no file %s", path)
	return ""
}

func wordTable(t *testing.T) map[string][2]string {
	t.Helper()
	_, rest, found := strings.Cut(text(t, "/static/words.js"), "const table = ")
	object, _, ended := strings.Cut(rest, "};")
	if !found || !ended {
		t.Fatal("words.js has no table")
	}
	table := map[string][2]string{}
	if err := json.Unmarshal([]byte(object+"}"), &table); err != nil {
		t.Fatalf("the table of words.js is no JSON: %v", err)
	}
	return table
}

func TestEveryCodeHasWordsInBothLanguages(t *testing.T) {
	t.Parallel()
	table := wordTable(t)
	for _, code := range sale.Codes() {
		if _, ok := table[string(code.Verdict().Code)]; !ok {
			t.Errorf("no words for %s", code.Verdict().Code)
		}
	}
	hole := regexp.MustCompile(`\{\w+\}`)
	for key, words := range table {
		if words[0] == "" || words[1] == "" {
			t.Errorf("%s is missing in one language", key)
		}
		if a, b := hole.FindAllString(words[0], -1), hole.FindAllString(words[1], -1); len(a) != len(b) {
			t.Errorf("%s has other values in one language than in the other: %v, %v", key, a, b)
		}
		if strings.ContainsAny(words[0]+words[1], "!！") {
			t.Errorf("%s shouts", key)
		}
	}
}

func TestEveryWordThatIsSaidIsInTheTable(t *testing.T) {
	t.Parallel()
	table := wordTable(t)
	said := regexp.MustCompile(`\bsay\("(\w+)"|data-say(?:-label)?="(\w+)"`)
	for _, f := range Files() {
		for _, m := range said.FindAllStringSubmatch(string(f.Body), -1) {
			if key := m[1] + m[2]; !strings.HasSuffix(key, "_") && table[key] == [2]string{} {
				t.Errorf("%s says %q, which has no words", f.Path, key)
			}
		}
	}
	for _, state := range []sale.OrderState{sale.StatePending, sale.StatePaid, sale.StateCancelled, sale.StateClosed, sale.StateFailed} {
		if _, ok := table["state_"+string(state.Outcome())]; !ok {
			t.Errorf("no words for the order state %s", state.Outcome())
		}
	}
}

// TestFilesStandAlone keeps the pages within the security policy that the edge sends: nothing inline, nothing from elsewhere.
func TestFilesStandAlone(t *testing.T) {
	t.Parallel()
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9-]+\.[a-z]{2,}`)
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+="|<script(?:\s+type="module")?>|javascript:`)
	total := 0
	for _, f := range Files() {
		total += len(f.Body)
		if f.ContentType == "" {
			t.Errorf("%s has no content type", f.Path)
		}
		body := strings.ReplaceAll(string(f.Body), "http://www.w3.org/2000/svg", "") // a name, never asked for
		if m := elsewhere.FindString(body); m != "" {
			t.Errorf("%s names another host: %s", f.Path, m)
		}
		if m := inline.FindString(body); m != "" && strings.HasSuffix(f.Path, ".html") {
			t.Errorf("%s has something inline: %s", f.Path, m)
		}
		if strings.HasSuffix(f.Path, ".html") && (!strings.Contains(body, `content="{{socket}}"`) || !strings.Contains(body, `content="{{demo}}"`)) {
			t.Errorf("%s has no place for the socket or the demo", f.Path)
		}
	}
	if total >= mostBytes {
		t.Errorf("%d bytes in all, want under %d", total, mostBytes)
	}
	t.Logf("%d bytes in %d files", total, len(Files()))
}

// TestEveryReferenceIsServed finds a renamed or forgotten file.
func TestEveryReferenceIsServed(t *testing.T) {
	t.Parallel()
	served := map[string]bool{}
	for _, f := range Files() {
		served[f.Path] = true
	}
	named := regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"|from "\./([^"]+)"`)
	for _, f := range Files() {
		for _, m := range named.FindAllStringSubmatch(string(f.Body), -1) {
			p := m[1]
			if m[2] != "" {
				p = "/static/" + m[2]
			}
			if !served[p] {
				t.Errorf("%s needs %s, which is not served", f.Path, p)
			}
		}
	}
}
