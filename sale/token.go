package sale

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
)

// Token is a request token: the buyer's idempotency key, signed by the edge for (user, activity, nonce, expiry).
// It is 59 characters of base64url, so it may stand in a URL, in a `|`-joined record and in a comma-joined list.
type Token string

// TokenLen is the length of every request token.
const TokenLen = 59

const (
	tokenBody = 28 // user 8, activity 8, nonce 8, expiry in epoch seconds 4
	tokenMAC  = 16 // 128 bits of HMAC-SHA256: a forgery is a guess of 2^-128
)

// ErrToken says that a request token was not made here: wrong length, alphabet or signature.
var ErrToken = errors.New("not a request token of this shop")

// TokenClaims is what a request token is bound to.
type TokenClaims struct {
	User     ID
	Activity ID
	Nonce    uint64
	Expires  Millis // whole seconds; binds the first use only
}

// TokenKey signs and reads request tokens. It is safe for concurrent use.
type TokenKey struct{ macs sync.Pool }

// NewTokenKey derives the signing key from the secret that all processes share (internal.key).
func NewTokenKey(secret []byte) *TokenKey {
	d := hmac.New(sha256.New, secret)
	d.Write([]byte("floodgate request token v1"))
	key := d.Sum(nil)
	k := &TokenKey{}
	k.macs.New = func() any { return hmac.New(sha256.New, key) }
	return k
}

func (k *TokenKey) sum(dst, body []byte) []byte {
	m := k.macs.Get().(hash.Hash)
	defer k.macs.Put(m)
	m.Reset()
	m.Write(body)
	return m.Sum(dst)
}

// Sign makes the token; claims beyond their range panic, since ids were parsed before.
func (k *TokenKey) Sign(c TokenClaims) Token {
	if c.User <= 0 || c.Activity <= 0 || c.Expires < 0 || c.Expires/1000 > 1<<32-1 {
		panic("sale: token claims out of range")
	}
	b := make([]byte, tokenBody, tokenBody+sha256.Size)
	binary.BigEndian.PutUint64(b[0:], uint64(c.User))
	binary.BigEndian.PutUint64(b[8:], uint64(c.Activity))
	binary.BigEndian.PutUint64(b[16:], c.Nonce)
	binary.BigEndian.PutUint32(b[24:], uint32(c.Expires/1000))
	b = k.sum(b, b)[:tokenBody+tokenMAC]
	return Token(base64.RawURLEncoding.EncodeToString(b))
}

// Parse reads a token and checks its signature; expiry is the caller's to judge.
func (k *TokenKey) Parse(t Token) (TokenClaims, error) {
	var buf [tokenBody + tokenMAC]byte
	if !t.decode(&buf) {
		return TokenClaims{}, ErrToken
	}
	var sum [sha256.Size]byte
	if !hmac.Equal(k.sum(sum[:0], buf[:tokenBody])[:tokenMAC], buf[tokenBody:]) {
		return TokenClaims{}, ErrToken
	}
	return peek(buf[:]), nil
}

// Peek reads what a token claims without checking the signature: for parts that got it from a ledger or a row.
func (t Token) Peek() (TokenClaims, error) {
	var buf [tokenBody + tokenMAC]byte
	if !t.decode(&buf) {
		return TokenClaims{}, ErrToken
	}
	return peek(buf[:]), nil
}

// decode checks the length first: the decoder writes beyond a buffer that is too small.
func (t Token) decode(buf *[tokenBody + tokenMAC]byte) bool {
	if len(t) != TokenLen {
		return false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(buf[:], []byte(t))
	return err == nil && n == len(buf)
}

func peek(b []byte) TokenClaims {
	return TokenClaims{
		User: ID(binary.BigEndian.Uint64(b)), Activity: ID(binary.BigEndian.Uint64(b[8:])),
		Nonce: binary.BigEndian.Uint64(b[16:]), Expires: Millis(binary.BigEndian.Uint32(b[24:])) * 1000,
	}
}
