package identity

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"floodgate/sale"
)

// Signer makes buyers' tokens for the demo login, tests and benchmarks; a real shop has an issuer of its own.
// It is safe for concurrent use.
type Signer struct{ k keys }

// NewSigner wants a key that can sign: the secret of HS256, a private key otherwise.
func NewSigner(cfg Config) (*Signer, error) {
	k, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	if k.private == nil {
		return nil, errors.New("key is a public key: signing wants the private one")
	}
	return &Signer{k}, nil
}

// Sign makes a token that is valid for ttl from now; 0 makes one that never ends, a negative ttl one that has ended.
func (s *Signer) Sign(user sale.ID, ttl time.Duration) (string, error) {
	if user <= 0 {
		return "", fmt.Errorf("cannot sign a token for user %d: %w", user, sale.ErrID)
	}
	now := time.Now()
	claims := jwt.RegisteredClaims{Subject: user.String(), IssuedAt: jwt.NewNumericDate(now)}
	if ttl != 0 {
		claims.ExpiresAt = jwt.NewNumericDate(now.Add(ttl))
	}
	return jwt.NewWithClaims(s.k.method, claims).SignedString(s.k.private)
}
