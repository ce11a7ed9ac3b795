package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"net/http"
	"strconv"
	"sync"
	"time"

	"floodgate/sale"
)

// Headers of a request between our own processes.
const (
	TimeHeader      = "X-Floodgate-Time"      // epoch milliseconds
	SignatureHeader = "X-Floodgate-Signature" // hex of HMAC-SHA256
)

// Skew is how old, or how far ahead, a signed request may be.
const Skew = 30 * time.Second

// ErrSignature says that a request was not signed by one of our processes within [Skew], or was changed on its way.
var ErrSignature = errors.New("the request is not signed by this shop, or too long ago: check internal.key and the clocks")

// Internal signs and checks requests between our own processes: method, path with query, time and body. A request may
// be replayed within the skew, so what it asks for must be safe to do twice. It is safe for concurrent use.
type Internal struct{ macs sync.Pool }

// NewInternal derives the key from the secret that all processes share, so that no other use of it can be confused
// with this one.
func NewInternal(secret []byte) *Internal {
	d := hmac.New(sha256.New, secret)
	d.Write([]byte("floodgate internal request v1"))
	key := d.Sum(nil)
	i := &Internal{}
	i.macs.New = func() any { return hmac.New(sha256.New, key) }
	return i
}

// SignRequest adds the two headers; body is what the request will send, nil for none.
func (i *Internal) SignRequest(r *http.Request, body []byte) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	at := strconv.FormatInt(time.Now().UnixMilli(), 10)
	sum := i.sum([3]string{method, r.URL.RequestURI(), at}, body)
	r.Header.Set(TimeHeader, at)
	r.Header.Set(SignatureHeader, hex.EncodeToString(sum[:]))
}

// Check refuses with [ErrSignature] what SignRequest did not sign within [Skew] of now. uri is path and query as they
// stood in the request line; header looks a header up.
func (i *Internal) Check(method, uri string, header func(string) string, body []byte, now time.Time) error {
	at := header(TimeHeader)
	ms, err := sale.ParseID(at) // the same form: decimal digits, one spelling for each number
	if err != nil {
		return ErrSignature
	}
	if age := now.UnixMilli() - int64(ms); age > Skew.Milliseconds() || age < -Skew.Milliseconds() {
		return ErrSignature
	}
	var got [sha256.Size]byte
	text := header(SignatureHeader)
	if len(text) != hex.EncodedLen(len(got)) {
		return ErrSignature
	}
	if _, err := hex.Decode(got[:], []byte(text)); err != nil {
		return ErrSignature
	}
	if want := i.sum([3]string{method, uri, at}, body); !hmac.Equal(want[:], got[:]) {
		return ErrSignature
	}
	return nil
}

// sum is unambiguous: none of the three parts can hold a line feed in HTTP, and the body comes last.
func (i *Internal) sum(parts [3]string, body []byte) (out [sha256.Size]byte) {
	m := i.macs.Get().(hash.Hash)
	defer i.macs.Put(m)
	m.Reset()
	for _, p := range parts {
		m.Write([]byte(p))
		m.Write([]byte{'\n'})
	}
	m.Write(body)
	m.Sum(out[:0])
	return out
}
