package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"floodgate/console"
	"floodgate/sale"
)

// operatorCommands speak to the console's API, so that they work beside an embedded server too.
func operatorCommands() []*cobra.Command {
	return []*cobra.Command{activityCommand(), auditCommand(), ledgerCommand(), tokenCommand(), lettersCommand(), doctorCommand()}
}

// operator is one command on its way: where the console is, and how to print.
type operator struct {
	ctx   context.Context
	cfg   Config
	out   io.Writer
	json  bool
	url   string
	token string
}

// operate makes a command that speaks to the console.
func operate(use, short string, args cobra.PositionalArgs, run func(o *operator, args []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: args}
	c.Flags().StringP("output", "o", "text", "text or json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := newOperator(cmd)
		if err != nil {
			return err
		}
		if err := o.connect(); err != nil {
			return err
		}
		return run(o, args)
	}
	return c
}

func newOperator(cmd *cobra.Command) (*operator, error) {
	cfg, err := loadFlags(cmd)
	if err != nil {
		return nil, err
	}
	output, err := cmd.Flags().GetString("output")
	if err != nil || output != "text" && output != "json" {
		return nil, usagef("-o %s: want text or json", output)
	}
	return &operator{ctx: cmd.Context(), cfg: cfg, out: cmd.OutOrStdout(), json: output == "json"}, nil
}

// connect finds the console's address and the operator token by configuration.
func (o *operator) connect() error {
	host, port, err := net.SplitHostPort(o.cfg.Console.Listen)
	if err != nil {
		return usagef("console.listen: %q is not host:port", o.cfg.Console.Listen)
	}
	if port == "0" {
		return usagef("console.listen: port 0 is any port: name the one of the console's start line with --set console.listen=host:port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	o.url = "http://" + net.JoinHostPort(host, port)
	text, err := os.ReadFile(filepath.Join(o.cfg.Data.Dir, operatorToken))
	if err != nil {
		return usagef("cannot read the operator token: %w: start the console first, or name its folder with --set data.dir=…", err)
	}
	o.token = strings.TrimSpace(string(text))
	return nil
}

// refusal is what the console answered instead of doing it.
type refusal struct{ Code, Message string }

// Error is the message.
func (r *refusal) Error() string { return r.Message }

// call sends one request and reads the answer into out. A console that does not answer, and a wrong call, are usage errors.
func (o *operator) call(method, path string, in, out any) error {
	var body []byte
	if in != nil {
		body, _ = json.Marshal(in) // maps and structs of ours
	}
	r, err := http.NewRequestWithContext(o.ctx, method, o.url+path, bytes.NewReader(body))
	if err != nil {
		return usageError{err}
	}
	r.Header.Set("Authorization", "Bearer "+o.token)
	r.Header.Set("Content-Type", "application/json")
	if u, err := user.Current(); err == nil {
		r.Header.Set("X-Operator", u.Username)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}
		return usagef("no console answers at %s (%v): start `floodgate serve` or `floodgate console`, or name its address with --set console.listen=host:port", o.url, cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusedWith(resp, o.url)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the console's answer: %w", err)
	}
	return nil
}

// cause is the innermost reason, which needs no address beside the one that is told.
func cause(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

func refusedWith(resp *http.Response, url string) error {
	var e struct{ Error refusal }
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(text, &e) != nil || e.Error.Code == "" {
		return usagef("what answers at %s is no console (%s): name its address with --set console.listen=host:port", url, resp.Status)
	}
	switch e.Error.Code {
	case "bad_request":
		return usageError{&e.Error}
	case "unauthorized":
		return usagef("the console at %s does not know this operator token: name the folder of that console with --set data.dir=…", url)
	}
	return &e.Error
}

// print shows v as JSON, or as the text that f writes; columns are separated by tabs.
func (o *operator) print(v any, f func(w io.Writer)) error {
	if o.json {
		e := json.NewEncoder(o.out)
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	w := tabwriter.NewWriter(o.out, 0, 4, 2, ' ', 0)
	f(w)
	return w.Flush()
}

func parseID(what, text string) (sale.ID, error) {
	id, err := sale.ParseID(text)
	if err != nil {
		return 0, usagef("%s %q: %w", what, text, err)
	}
	return id, nil
}

// activityPath is the API's path of an activity.
func activityPath(text string) (string, error) {
	id, err := parseID("activity", text)
	return "/admin/api/activities/" + id.String(), err
}

// changed prints what an action did; one that Redis does not show yet is a failed check.
func (o *operator) changed(c console.Change, answer any) error {
	err := o.print(answer, func(w io.Writer) {
		switch {
		case c.Changed:
			fmt.Fprintf(w, "%s\n", cmp.Or(c.After, "changed"))
		default:
			fmt.Fprintf(w, "nothing changed: %s\n", c.After)
		}
		if c.Note != "" {
			fmt.Fprintln(w, "note:", c.Note)
		}
	})
	if err == nil && !c.Applied {
		err = errCheckFailed
	}
	return err
}
