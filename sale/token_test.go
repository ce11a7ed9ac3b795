package sale

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
)

var widest = TokenClaims{User: math.MaxInt64, Activity: math.MaxInt64, Nonce: math.MaxUint64, Expires: (1<<32 - 1) * 1000}

func TestTokenIsBoundToItsClaims(t *testing.T) {
	k := NewTokenKey([]byte("one secret"))
	token := k.Sign(widest)
	if got, err := k.Parse(token); got != widest || err != nil || len(token) != TokenLen {
		t.Errorf("got %+v, %v, %d characters", got, err, len(token))
	}
	if got, err := token.Peek(); got != widest || err != nil {
		t.Errorf("peek: %+v, %v", got, err)
	}
	if _, err := NewTokenKey([]byte("another secret")).Parse(token); !errors.Is(err, ErrToken) {
		t.Errorf("another key: %v", err)
	}
	for i := range token {
		b := []byte(token)
		b[i] ^= 1
		if _, err := k.Parse(Token(b)); !errors.Is(err, ErrToken) {
			t.Errorf("character %d changed: %v", i, err)
		}
	}
	for _, bad := range []Token{"", token[1:], token + "A", token + token, Token(strings.Repeat("=", TokenLen)), Token(strings.Repeat("|", TokenLen))} {
		if _, err := k.Parse(bad); !errors.Is(err, ErrToken) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := bad.Peek(); !errors.Is(err, ErrToken) {
			t.Errorf("peek at %q: %v", bad, err)
		}
	}
}

func TestTokenKeyServesManyAtOnce(t *testing.T) {
	k := NewTokenKey([]byte("one secret"))
	var all sync.WaitGroup
	for n := range uint64(8) {
		all.Go(func() {
			for i := range uint64(200) {
				c := TokenClaims{User: ID(n + 1), Activity: 5, Nonce: i, Expires: 1_800_000_000_000}
				if got, err := k.Parse(k.Sign(c)); got != c || err != nil {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}

func widestMessage() Message {
	return Message{Token: NewTokenKey([]byte("s")).Sign(widest), User: math.MaxInt64, Activity: math.MaxInt64, Commodity: math.MaxInt64, Price: MaxPrice,
		Quantity: MaxQuantity, At: 9_999_999_999_999, LedgerID: "9999999999999-18446744073709551615"}
}

func TestMessageIsSmallAndReadsBack(t *testing.T) {
	m := widestMessage()
	b := m.Append(nil)
	if len(b) >= MaxMessage {
		t.Errorf("%d bytes at the widest ids, want fewer than %d", len(b), MaxMessage)
	}
	got, err := ReadMessage(b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, change := range [][2]string{
		{`"version":1`, `"version":2`}, {`"quantity":100`, `"quantity":101`}, {`"quantity":100`, `"quantity":0`},
		{`"userId":"9223372036854775807"`, `"userId":"7"`}, {`"seckillPrice":"100000000.00"`, `"seckillPrice":"100000000.01"`},
		{`"stockPayToken":"`, `"stockPayToken":"x`}, {`{`, `{"more":1,`}, {`}`, ``}, {`"timestamp":9999999999999`, `"timestamp":0`},
	} {
		bad := strings.Replace(string(b), change[0], change[1], 1)
		if bad == string(b) {
			t.Fatalf("nothing to change: %s", change[0])
		}
		if _, err := ReadMessage([]byte(bad)); !errors.Is(err, ErrMessage) {
			t.Errorf("%s -> %s: %v", change[0], change[1], err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	m := widestMessage()
	f.Add(m.Append(nil))
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadMessage(b)
		if err != nil {
			return
		}
		if again, err := ReadMessage(m.Append(nil)); err != nil || again != m {
			t.Errorf("%s: %+v does not read back: %v", b, m, err)
		}
	})
}
