package identity

import (
	"time"

	"github.com/golang-jwt/jwt/v5"

	"floodgate/sale"
)

// MaxToken is the most bytes a token may have; longer ones are refused unread.
const MaxToken = 4096

// Leeway is how far a token's issuer and we may disagree about the time.
const Leeway = 30 * time.Second

// latest is the last second of the year 9999: an expiry beyond it is garbage that would overflow on its way.
const latest = 253402300799

// Verifier tells who signed in. It is safe for concurrent use and remembers nothing.
type Verifier struct {
	parser *jwt.Parser
	key    any
}

// NewVerifier reads the key; an error names the field and what to change, never the key.
func NewVerifier(cfg Config) (*Verifier, error) {
	k, err := cfg.keys()
	if err != nil {
		return nil, err
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{k.method.Alg()}), jwt.WithLeeway(Leeway), jwt.WithStrictDecoding())
	return &Verifier{parser: parser, key: k.public}, nil
}

// Verify checks signature, algorithm, times and subject; every failure is [ErrUnauthorized] alone.
func (v *Verifier) Verify(token string) (User, error) {
	if len(token) == 0 || len(token) > MaxToken {
		return User{}, ErrUnauthorized
	}
	var claims jwt.RegisteredClaims
	if _, err := v.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return v.key, nil }); err != nil {
		return User{}, ErrUnauthorized
	}
	id, err := sale.ParseID(claims.Subject)
	if err != nil {
		return User{}, ErrUnauthorized
	}
	if claims.ExpiresAt == nil {
		return User{ID: id}, nil
	}
	if s := claims.ExpiresAt.Unix(); s <= 0 || s > latest {
		return User{}, ErrUnauthorized
	}
	return User{ID: id, Expires: sale.At(claims.ExpiresAt.Time)}, nil
}
