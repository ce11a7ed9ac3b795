package identity_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"floodgate/identity"
	"floodgate/sale"
)

const secret = "0123456789abcdef0123456789abcdef"

var hs256 = identity.Config{Alg: identity.HS256, Key: secret}

// pairs makes one key pair of each kind for the whole run: RSA keys are slow to make.
var pairs = sync.OnceValue(func() (p struct{ rsaPub, rsaPriv, edPub, edPriv string }) {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	p.rsaPub, p.rsaPriv = publicPEM(&r.PublicKey), privatePEM(r)
	p.edPub, p.edPriv = publicPEM(pub), privatePEM(priv)
	return p
})

func publicPEM(key any) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func privatePEM(key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func verifier(t testing.TB, cfg identity.Config) *identity.Verifier {
	t.Helper()
	v, err := identity.NewVerifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(t testing.TB, cfg identity.Config, user sale.ID, ttl time.Duration) string {
	t.Helper()
	s, err := identity.NewSigner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Sign(user, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// raw signs any claims with HS256, as an issuer of another make would.
func raw(t testing.TB, claims jwt.MapClaims) string {
	t.Helper()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func refuse(t *testing.T, v *identity.Verifier, why, token string) {
	t.Helper()
	if u, err := v.Verify(token); !errors.Is(err, identity.ErrUnauthorized) || u != (identity.User{}) {
		t.Errorf("%s: got %+v, %v; want ErrUnauthorized", why, u, err)
	}
}

func TestRoundTripOfEachAlgorithm(t *testing.T) {
	t.Parallel()
	p := pairs()
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, []byte(p.edPub), 0o600); err != nil {
		t.Fatal(err)
	}
	ok := func(signer, checker identity.Config) {
		t.Helper()
		u, err := verifier(t, checker).Verify(sign(t, signer, 42, time.Hour))
		if left := time.Until(u.Expires.Time()); err != nil || u.ID != 42 || left < 59*time.Minute || left > time.Hour {
			t.Errorf("%s: got %+v, %v", checker.Alg, u, err)
		}
	}
	ok(hs256, hs256)
	ok(hs256, identity.Config{Key: secret}) // HS256 is the default
	ok(identity.Config{Alg: "RS256", Key: p.rsaPriv}, identity.Config{Alg: "RS256", Key: p.rsaPub})
	ok(identity.Config{Alg: "EdDSA", Key: p.edPriv}, identity.Config{Alg: "EdDSA", Key: p.edPub})
	ok(identity.Config{Alg: "EdDSA", Key: p.edPriv}, identity.Config{Alg: "EdDSA", Key: file})
	ok(identity.Config{Alg: "EdDSA", Key: p.edPriv}, identity.Config{Alg: "EdDSA", Key: p.edPriv}) // the private key holds the public one
	if u, err := verifier(t, hs256).Verify(sign(t, hs256, 7, 0)); err != nil || u != (identity.User{ID: 7}) {
		t.Errorf("a token without expiry: %+v, %v", u, err)
	}
}

func TestCase36UserIDs(t *testing.T) {
	t.Parallel()
	v := verifier(t, hs256)
	for _, id := range []string{"1", "9007199254740993", "9223372036854775807"} {
		if u, err := v.Verify(raw(t, jwt.MapClaims{"sub": id})); err != nil || u.ID.String() != id {
			t.Errorf("sub %q: got %+v, %v", id, u, err)
		}
	}
	for _, sub := range []any{"9223372036854775808", "-1", "0", "1e3", "007", "", " 1", "1 ", "+1", "0x1", "１", 1, 1.5, true, nil, []string{"1"}} {
		refuse(t, v, "sub", raw(t, jwt.MapClaims{"sub": sub}))
	}
	refuse(t, v, "no sub", raw(t, jwt.MapClaims{}))
}

func TestTimes(t *testing.T) {
	t.Parallel()
	v := verifier(t, hs256)
	now := time.Now().Unix()
	for _, exp := range []any{now - 31, 0, -1, 1e300, -1e300, "soon", latestPlusOne} {
		refuse(t, v, "exp", raw(t, jwt.MapClaims{"sub": "1", "exp": exp}))
	}
	refuse(t, v, "nbf", raw(t, jwt.MapClaims{"sub": "1", "nbf": now + 60}))
	refuse(t, v, "ended", sign(t, hs256, 1, -time.Minute))
	for _, claims := range []jwt.MapClaims{{"sub": "1", "exp": now - 20}, {"sub": "1", "nbf": now + 20}, {"sub": "1", "exp": now + 60}} {
		if _, err := v.Verify(raw(t, claims)); err != nil {
			t.Errorf("%v: %v", claims, err)
		}
	}
}

const latestPlusOne = 253402300800

func TestAlgorithmConfusion(t *testing.T) {
	t.Parallel()
	p := pairs()
	claims := jwt.MapClaims{"sub": "1"}
	rs := verifier(t, identity.Config{Alg: "RS256", Key: p.rsaPub})
	block, _ := pem.Decode([]byte(p.rsaPub))
	for _, known := range [][]byte{[]byte(p.rsaPub), block.Bytes, []byte(strings.TrimSpace(p.rsaPub))} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(known)
		if err != nil {
			t.Fatal(err)
		}
		refuse(t, rs, "the RSA public key used as an HS256 secret", token)
	}
	none, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	hs := verifier(t, hs256)
	for _, v := range []*identity.Verifier{hs, rs, verifier(t, identity.Config{Alg: "EdDSA", Key: p.edPub})} {
		refuse(t, v, "alg none", none)
		for _, alg := range []string{"None", "NONE", "nOnE", "hs256", "HS384", ""} {
			head := base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"` + alg + `"}`))
			refuse(t, v, "alg "+alg, head+"."+strings.Split(none, ".")[1]+".")
		}
	}
	refuse(t, hs, "RS256 where HS256 is valid", sign(t, identity.Config{Alg: "RS256", Key: p.rsaPriv}, 1, 0))
	hs512, err := jwt.NewWithClaims(jwt.SigningMethodHS512, claims).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	refuse(t, hs, "HS512 with the same secret", hs512)
	refuse(t, hs, "another secret", sign(t, identity.Config{Key: strings.Repeat("x", 32)}, 1, 0))
}

func TestMalformedTokens(t *testing.T) {
	t.Parallel()
	v := verifier(t, hs256)
	good := sign(t, hs256, 1, time.Hour)
	at := strings.LastIndexByte(good, '.')
	for _, token := range []string{"", ".", "..", "...", good + "=", good + ".x", good[:at], good[:at+1], " " + good, "Bearer " + good, strings.Repeat("a", 1<<20)} {
		refuse(t, v, "malformed", token)
	}
	for n := range good { // one changed character anywhere; the last one has two unused bits, which strict decoding refuses
		changed := []byte(good)
		changed[n] ^= 1
		refuse(t, v, "changed", string(changed))
	}
	refuse(t, v, "too long", raw(t, jwt.MapClaims{"sub": "1", "pad": strings.Repeat("x", identity.MaxToken)}))
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	p := pairs()
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	bad := func(alg, key, want string) {
		t.Helper()
		_, err := identity.NewVerifier(identity.Config{Alg: alg, Key: key})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("alg %q: got %v, want %q", alg, err, want)
		}
		if err != nil && len(key) > 8 && strings.Contains(err.Error(), key) {
			t.Errorf("the error tells the key: %v", err)
		}
	}
	bad("none", secret, "want HS256, RS256 or EdDSA")
	bad("hs256", secret, "want HS256, RS256 or EdDSA")
	bad("HS256", "", "at least 32")
	bad("HS256", secret[:31], "at least 32")
	bad("HS256", p.rsaPub, "PEM key, but alg is HS256")
	bad("RS256", "", "missing")
	bad("RS256", secret, "neither PEM nor the path")
	bad("RS256", t.TempDir(), "not a key file")
	bad("RS256", p.edPub, "not of alg RS256")
	bad("EdDSA", p.rsaPub, "not of alg EdDSA")
	bad("EdDSA", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "cannot read")
	bad("EdDSA", "-----BEGIN nothing", "no PEM block")
	bad("RS256", publicPEM(&weak.PublicKey), "1024 bits")
	if _, err := identity.NewSigner(identity.Config{Alg: "EdDSA", Key: p.edPub}); err == nil {
		t.Error("a public key signs")
	}
	s, err := identity.NewSigner(hs256)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sign(0, 0); !errors.Is(err, sale.ErrID) {
		t.Errorf("user 0: %v", err)
	}
}

func FuzzVerify(f *testing.F) {
	v := verifier(f, hs256)
	good := sign(f, hs256, 9223372036854775807, 0)
	f.Add(good)
	f.Add(raw(f, jwt.MapClaims{"sub": "9223372036854775808"}))
	f.Add(raw(f, jwt.MapClaims{"sub": "007", "exp": 1e300}))
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.")
	f.Fuzz(func(t *testing.T, token string) {
		u, err := v.Verify(token)
		switch {
		case err == nil && (u.ID <= 0 || u.Expires < 0):
			t.Errorf("%q: accepted as %+v", token, u)
		case err != nil && (!errors.Is(err, identity.ErrUnauthorized) || u != (identity.User{})):
			t.Errorf("%q: got %+v, %v", token, u, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	v, token := verifier(b, hs256), sign(b, hs256, 42, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(token); err != nil {
			b.Fatal(err)
		}
	}
}
