package console

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"floodgate/lua"
	"floodgate/mq"
	"floodgate/sale"
	"floodgate/sql"
)

// Fault is what an operator's call is refused with; Code never changes its meaning.
type Fault struct {
	HTTP    int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is the message.
func (f *Fault) Error() string { return f.Message }

func badRequest(format string, args ...any) error {
	return &Fault{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &Fault{http.StatusConflict, "conflict", fmt.Sprintf(format, args...)}
}

// faultOf turns any error into what the operator is told. Operators see causes: they are who must mend them.
func faultOf(err error) *Fault {
	var f *Fault
	var field *sale.FieldError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &field), errors.Is(err, sale.ErrID):
		return &Fault{http.StatusBadRequest, "bad_request", err.Error()}
	case errors.Is(err, sql.ErrNotFound), errors.Is(err, mq.ErrNoLetter):
		return &Fault{http.StatusNotFound, "not_found", strings.Replace(err.Error(), sql.ErrNotFound.Error(), "there is none", 1)}
	case errors.Is(err, sql.ErrConflict), errors.Is(err, sql.ErrExists), errors.Is(err, lua.ErrStale):
		return &Fault{http.StatusConflict, "conflict", err.Error()}
	case errors.Is(err, lua.ErrUnopened), errors.Is(err, lua.ErrUnproven), errors.Is(err, sql.ErrFenced):
		return &Fault{http.StatusServiceUnavailable, "recovering", err.Error() + ": a recovery is due or going on; try again in some seconds"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{http.StatusGatewayTimeout, "timeout", err.Error()}
	}
	return &Fault{http.StatusInternalServerError, "internal", err.Error()}
}

// action is one call of the API: what it returns is written as JSON.
type action func(r *http.Request) (any, error)

// answer serves an action.
func (c *Console) answer(f action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(r)
		if err != nil {
			fault := faultOf(err)
			if fault.HTTP >= http.StatusInternalServerError {
				c.deps.Log.Error("an operator's call failed", "path", r.URL.Path, "error", err)
			}
			refuse(w, fault)
			return
		}
		write(w, http.StatusOK, v)
	}
}

func refuse(w http.ResponseWriter, f *Fault) {
	write(w, f.HTTP, map[string]any{"error": f, "requestId": w.Header().Get(requestID)})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the operator has gone
}

// guard lets only the operator token in, and no browser's page that would act in the operator's name.
func (c *Console) guard(next http.Handler) http.Handler {
	want := []byte("Bearer " + c.deps.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, &Fault{http.StatusUnauthorized, "unauthorized", "send Authorization: Bearer and the operator token"})
		case !safe && r.Header.Get("Origin") != "":
			refuse(w, &Fault{http.StatusForbidden, "forbidden", "changes from a browser's page are refused"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// maxBody bounds every body but an activity's.
const maxBody = 16 << 10

// body reads a JSON object without unknown fields; an empty body is an empty object.
func body(r *http.Request, to any) error {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return badRequest("cannot read the body: %v", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return badRequest("%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return badRequest("more than one JSON value in the body")
	}
	return nil
}

// idOf reads an id of the path.
func idOf(r *http.Request, name string) (sale.ID, error) {
	id, err := sale.ParseID(r.PathValue(name))
	if err != nil {
		return 0, badRequest("%s %q: %v", name, r.PathValue(name), err)
	}
	return id, nil
}

// who names the operator in the log: the name that the client gives, as told, and the address, as seen.
func who(r *http.Request) string {
	name := r.Header.Get("X-Operator")
	if name == "" || len(name) > 64 || strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' }) {
		name = "operator"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return name + "@" + host
}
