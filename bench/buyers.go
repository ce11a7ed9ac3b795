package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"floodgate/bench/load"
	"floodgate/sale"
)

// Kinds of answers that a crowd notes.
const (
	accepted  = iota // 202
	soldOut          // 409 sold_out
	duplicate        // 409 duplicate
	busy             // 503
	other            // anything else: a bug of ours or theirs
	issued           // a request token
	pushed           // an outcome, from the 202 to the socket
)

// firstUser keeps made-up users away from small ids that people use.
const firstUser = 1_000_000

// signedFor is how long the buyers' tokens live.
const signedFor = time.Hour

// buyer is one user with everything signed that it will send.
type buyer struct {
	user  sale.ID
	jwt   string
	token sale.Token // given by the bench, or by the edge on the way
	order []byte     // the whole request, once there is a token
}

// buyers makes n users who have not come before, with JWT; where ready, with request token and the whole order request too. Signing is
// done before the clock starts: it is the shop's login and an earlier click, not the purchase.
func (s *shop) buyers(ctx context.Context, activity sale.ID, n int, ready bool) ([]buyer, error) {
	out := make([]buyer, n)
	first := s.b.user + 1
	s.b.user += int64(n)
	expires := sale.At(time.Now().Add(9*time.Minute)) / 1000 * 1000
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	const part = 4096
	for from := 0; from < n; from += part {
		g.Go(func() error {
			for i := from; i < min(n, from+part) && ctx.Err() == nil; i++ {
				u := &out[i]
				u.user = sale.ID(first + int64(i))
				var err error
				if u.jwt, err = s.signer.Sign(u.user, signedFor); err != nil {
					return err
				}
				if ready {
					u.token = s.tokens.Sign(sale.TokenClaims{User: u.user, Activity: activity, Nonce: rand.Uint64(), Expires: expires})
					u.order = orderRequest(activity, u.jwt, u.token)
				}
			}
			return ctx.Err()
		})
	}
	return out, g.Wait()
}

// post is a request of a buyer with a JSON body.
func post(path, jwt, body string) []byte {
	return fmt.Appendf(make([]byte, 0, 512), "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, jwt, len(body), body)
}

func orderRequest(activity sale.ID, jwt string, token sale.Token) []byte {
	return post(fmt.Sprintf("/api/activities/%s/items/%s/orders", activity, commodity), jwt, `{"requestToken":"`+string(token)+`","quantity":1}`)
}

func tokenRequest(activity sale.ID, jwt string) []byte {
	return post(fmt.Sprintf("/api/activities/%s/token", activity), jwt, "{}")
}

var (
	codeSoldOut   = []byte(`"sold_out"`)
	codeDuplicate = []byte(`"duplicate"`)
)

// kindOf sorts an answer to an order.
func kindOf(status int, body []byte) int {
	switch {
	case status == 202:
		return accepted
	case status == 409 && bytes.Contains(body, codeSoldOut):
		return soldOut
	case status == 409 && bytes.Contains(body, codeDuplicate):
		return duplicate
	case status == 503:
		return busy
	}
	return other
}

// order sends a buyer's order and notes the answer's kind; -1 is no answer.
func order(c *load.Conn, request []byte, due time.Time) int {
	status, body, err := c.Do(request)
	if err != nil {
		c.Fail()
		return -1
	}
	kind := kindOf(status, body)
	c.Note(kind, time.Since(due))
	return kind
}
