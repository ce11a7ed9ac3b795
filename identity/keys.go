package identity

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// The algorithms that [Config] knows.
const (
	HS256 = "HS256"
	RS256 = "RS256"
	EdDSA = "EdDSA"
)

const (
	minSecret  = 32       // bytes: an HMAC-SHA256 secret shorter than its hash can be searched for off line
	minRSABits = 2048     // shorter moduli have been factored or soon will be
	maxKeyFile = 64 << 10 // bytes: a key is 2 KiB, so whatever is larger is not one
)

// Config says how buyers' tokens are signed. One algorithm is valid at a time: a token never chooses its own.
type Config struct {
	Alg string `config:"alg" default:"HS256" help:"how buyers' tokens are signed: HS256, RS256 or EdDSA"`
	Key string `config:"key" secret:"true" help:"HS256: a secret of at least 32 bytes; RS256, EdDSA: a PEM public key or the path of one (a private key where this process signs too)"`
}

// keys are the two halves of the configured key; private is nil where only the public one was given.
type keys struct {
	method          jwt.SigningMethod
	public, private any
}

// Check refuses an unknown algorithm, and a key, where there is one, that is none of it.
func (c Config) Check() error {
	if _, err := c.keys(); err != nil && (c.Key != "" || !slices.Contains([]string{"", HS256, RS256, EdDSA}, c.Alg)) {
		return fmt.Errorf("auth.%w", err)
	}
	return nil
}

func (c Config) keys() (keys, error) {
	switch c.Alg {
	case HS256, "":
		return c.secret()
	case RS256, EdDSA:
		return c.pair()
	}
	return keys{}, fmt.Errorf("alg is %q: want HS256, RS256 or EdDSA", c.Alg)
}

// secret refuses PEM: a public key is known to everybody, so as a secret it would let anybody sign.
func (c Config) secret() (keys, error) {
	switch {
	case isPEM(c.Key):
		return keys{}, errors.New("key is a PEM key, but alg is HS256: want a secret, or alg RS256 or EdDSA")
	case len(c.Key) < minSecret:
		return keys{}, fmt.Errorf("key has %d bytes: HS256 wants a secret of at least %d", len(c.Key), minSecret)
	}
	secret := []byte(c.Key)
	return keys{jwt.SigningMethodHS256, secret, secret}, nil
}

func (c Config) pair() (keys, error) {
	text, err := readPEM(c.Key)
	if err != nil {
		return keys{}, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return keys{}, fmt.Errorf("key holds no PEM block: %s wants a public or private key", c.Alg)
	}
	key, err := parseKey(block)
	if err != nil {
		return keys{}, fmt.Errorf("cannot read the key's PEM block %q: %w", block.Type, err)
	}
	private, public := any(nil), key
	if p, ok := key.(interface{ Public() crypto.PublicKey }); ok {
		private, public = key, p.Public()
	}
	switch p := public.(type) {
	case *rsa.PublicKey:
		if c.Alg == RS256 && p.N.BitLen() < minRSABits {
			return keys{}, fmt.Errorf("key is an RSA key of %d bits: want at least %d", p.N.BitLen(), minRSABits)
		}
		if c.Alg == RS256 {
			return keys{jwt.SigningMethodRS256, public, private}, nil
		}
	case ed25519.PublicKey:
		if c.Alg == EdDSA {
			return keys{jwt.SigningMethodEdDSA, public, private}, nil
		}
	}
	return keys{}, fmt.Errorf("key is a %T: not of alg %s", public, c.Alg)
}

func isPEM(key string) bool { return strings.Contains(key, "-----BEGIN ") }

// readPEM takes a key as it stands in the configuration, or the file that it names.
func readPEM(key string) ([]byte, error) {
	if isPEM(key) {
		return []byte(key), nil
	}
	if key == "" {
		return nil, errors.New("key is missing: want a PEM key or the path of one")
	}
	info, err := os.Stat(key)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxKeyFile) {
		return nil, errors.New("key names something that is not a key file")
	}
	if err != nil {
		return nil, errors.New("key is neither PEM nor the path of a readable file") // the value itself may be a secret
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return nil, errors.New("key names a file that cannot be read")
	}
	return text, nil
}

func parseKey(block *pem.Block) (any, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "PRIVATE KEY":
		return x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	}
	return nil, errors.New("unknown type: want PUBLIC KEY or PRIVATE KEY")
}
