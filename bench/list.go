package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"floodgate/identity"
	"floodgate/sale"
)

// BuyerList is signed buyers for load generators that cannot sign: each has a JWT and a request token that is valid for some minutes.
type BuyerList struct {
	Activity, Item sale.ID
	First          int64 // user id
	Count          int   // 1..1,000,000
	URL            string
	Vegeta         bool // targets for vegeta's JSON format, not lines
	Auth           identity.Config
	InternalKey    string
}

// Write writes one buyer a line: "JWT REQUESTTOKEN", or a target of vegeta.
func (l BuyerList) Write(out io.Writer) error {
	switch {
	case l.Activity <= 0 || l.First <= 0 || l.Count < 1 || l.Count > 1_000_000 || l.Vegeta && l.Item <= 0:
		return fmt.Errorf("%w: want --activity, --first above 0, --count 1 to 1000000, and --item with --vegeta", ErrUsage)
	case len(l.InternalKey) < 32:
		return fmt.Errorf("%w: internal.key and auth.key must be those of the running edge", ErrUsage)
	}
	signer, err := identity.NewSigner(l.Auth)
	if err != nil {
		return fmt.Errorf("%w: auth: %w", ErrUsage, err)
	}
	tokens, w := sale.NewTokenKey([]byte(l.InternalKey)), bufio.NewWriter(out)
	expires := sale.At(time.Now().Add(10*time.Minute)) / 1000 * 1000
	for i := range l.Count {
		user := sale.ID(l.First + int64(i))
		jwt, err := signer.Sign(user, signedFor)
		if err != nil {
			return err
		}
		token := tokens.Sign(sale.TokenClaims{User: user, Activity: l.Activity, Nonce: rand.Uint64(), Expires: expires})
		if err := l.writeOne(w, jwt, token); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (l BuyerList) writeOne(w io.Writer, jwt string, token sale.Token) error {
	if !l.Vegeta {
		_, err := fmt.Fprintf(w, "%s %s\n", jwt, token)
		return err
	}
	return json.NewEncoder(w).Encode(struct {
		Method string      `json:"method"`
		URL    string      `json:"url"`
		Body   []byte      `json:"body"` // base64 in JSON, as vegeta wants it
		Header http.Header `json:"header"`
	}{http.MethodPost, fmt.Sprintf("%s/api/activities/%s/items/%s/orders", l.URL, l.Activity, l.Item), []byte(`{"requestToken":"` + string(token) + `","quantity":1}`),
		http.Header{"Authorization": {"Bearer " + jwt}, "Content-Type": {"application/json"}}})
}
