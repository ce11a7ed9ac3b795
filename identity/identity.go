// Package identity says who a caller is: JWTs of buyers (edge and notifier), and signatures between our own processes.
package identity

import (
	"errors"

	"floodgate/sale"
)

// ErrUnauthorized says that a token is missing, malformed, expired, wrongly signed, or names no valid user. Why is not told to buyers.
var ErrUnauthorized = errors.New("unauthorized")

// User is a verified buyer.
type User struct {
	ID      sale.ID
	Expires sale.Millis // 0: the token has no expiry
}
