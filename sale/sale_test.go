package sale

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// Case 36: ids beyond 2^53 pass, everything that is not the one spelling of an id is refused.
func TestParseID(t *testing.T) {
	for text, want := range map[string]ID{"1": 1, "9007199254740993": 9007199254740993, "9223372036854775807": math.MaxInt64} {
		if got, err := ParseID(text); got != want || err != nil || got.String() != text {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "007", "-1", "+1", "1e3", "1.0", " 1", "9223372036854775808", "18446744073709551617", "１", "99999999999999999999"} {
		if got, err := ParseID(text); !errors.Is(err, ErrID) {
			t.Errorf("%q: got %d, %v, want ErrID", text, got, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseID([]byte("9007199254740993")) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestIDsAndMoneyAreStringsInJSON(t *testing.T) {
	var v struct {
		ID    ID
		Price Cents
	}
	if err := json.Unmarshal([]byte(`{"ID":"9007199254740993","Price":"100000000.00"}`), &v); err != nil || v.ID != 9007199254740993 || v.Price != MaxPrice {
		t.Errorf("%+v, %v", v, err)
	}
	if text, err := json.Marshal(v); err != nil || string(text) != `{"ID":"9007199254740993","Price":"100000000.00"}` {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{`{"ID":9007199254740993}`, `{"ID":"0"}`, `{"ID":null}`, `{"Price":99}`, `{"Price":"99"}`, `{"Price":99.00}`} {
		if err := json.Unmarshal([]byte(bad), &v); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// Case 34: money has one spelling.
func TestParseCents(t *testing.T) {
	for text, want := range map[string]Cents{"0.00": 0, "0.01": 1, "59.97": 5997, "100000000.00": MaxPrice} {
		if got, err := ParseCents(text); got != want || err != nil || got.String() != text {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "59.970000001", "59.9", "5997", "59,97", "+1.00", "-1.00", "01.00", ".99", "1.", "1e2.00", "99999999999999999.00"} {
		if got, err := ParseCents(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
	if got := Cents(-5).String(); got != "-0.05" {
		t.Errorf("got %s", got)
	}
}

func TestActivityCheckNamesEveryFault(t *testing.T) {
	good := func() Activity {
		return Activity{Title: "t", StartsAt: 1, EndsAt: 2, PerUserLimit: 1, PayWindow: time.Minute, Items: []Item{{Commodity: 1, Title: "i", Price: 1, Total: 1}}}
	}
	a := good()
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	for field, spoil := range map[string]func(*Activity){
		"title":                  func(a *Activity) { a.Title = strings.Repeat("秒", MaxTitle+1) },
		"endsAt":                 func(a *Activity) { a.EndsAt = a.StartsAt },
		"perUserLimit":           func(a *Activity) { a.PerUserLimit = 0 },
		"payWindow":              func(a *Activity) { a.PayWindow = MaxPayWindow + time.Second },
		"items":                  func(a *Activity) { a.Items = nil },
		"items[0].total":         func(a *Activity) { a.Items[0].Total = MaxTotal + 1 },
		"items[0].price":         func(a *Activity) { a.Items[0].Price = -1 },
		"items[0].fallbackQuota": func(a *Activity) { a.Items[0].FallbackQuota = 2 },
		"items[1].commodityId":   func(a *Activity) { a.Items = append(a.Items, a.Items[0]) },
	} {
		a := good()
		spoil(&a)
		var fault *FieldError
		if err := a.Check(); !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if a.Expires() != 2+Millis((time.Minute+KeepKeys).Milliseconds()) {
		t.Errorf("expires at %d", a.Expires())
	}
}

// Every code has its row, with a status, and what invites another try says so.
func TestVerdictsAreComplete(t *testing.T) {
	for _, c := range Codes() {
		v := c.Verdict()
		if v.HTTP < 200 || v.HTTP > 503 || v.Message == "" || v.Label == "" || v.Retry != (v.HTTP == 429 || v.HTTP == 503) {
			t.Errorf("%s: %+v", c, v)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown code does not panic")
		}
	}()
	Code("sold").Verdict()
}
