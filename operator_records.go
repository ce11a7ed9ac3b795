package main

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"floodgate/console"
	"floodgate/identity"
	"floodgate/sale"
)

func auditCommand() *cobra.Command {
	return operate("audit [ID]", "promises 1, 2 and 4 over Redis, queue and database; exit 1 where one is broken", cobra.MaximumNArgs(1), func(o *operator, args []string) error {
		path := "/admin/api/audit"
		if len(args) == 1 {
			one, err := activityPath(args[0])
			if err != nil {
				return err
			}
			path = one + "/audit"
		}
		var a console.Audit
		if err := o.call("GET", path, nil, &a); err != nil {
			return err
		}
		if err := o.print(a, func(w io.Writer) { writeAudit(w, &a) }); err != nil {
			return err
		}
		if !a.Balanced {
			return errCheckFailed
		}
		return nil
	})
}

func writeAudit(w io.Writer, a *console.Audit) {
	for i := range a.Activities {
		writeBook(w, &a.Activities[i])
	}
	q := a.Queue
	fmt.Fprintf(w, "queue: %d not placed, %d parked, %d dead letters, %d outcomes not announced\n", q.Backlog, q.Parked, q.DeadLetters, q.Unannounced)
	if q.Error != "" {
		fmt.Fprintf(w, "queue: does not answer: %s\n", q.Error)
	}
	verdict := "balanced"
	switch {
	case !a.Balanced:
		verdict = "NOT BALANCED"
	case !a.Exact:
		verdict = "balanced, as far as could be compared"
	}
	fmt.Fprintln(w, verdict)
}

func writeBook(w io.Writer, b *console.ActivityAudit) {
	fmt.Fprintf(w, "activity %s, %s, %s: %s\n", b.ID, b.Status, b.State, b.Title)
	fmt.Fprintln(w, "item\ttotal\tremaining\toccupied\tlive\tfallback\tto add\tdifference\tsold\tslots\tcommitted\tbuyers\treserved")
	for _, s := range b.Items {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", s.Commodity, s.Total, s.Remaining, s.Occupied, s.LiveUnits,
			s.FallbackLeft, s.ToApply, s.Difference, s.Sold, s.SlotRows, s.Committed, s.BuyersUnits, s.Reserved)
	}
	if b.Shelf > 0 {
		fmt.Fprintf(w, "%d messages are put aside until the stock is proven\n", b.Shelf)
	}
	for _, f := range b.Faults {
		fmt.Fprintf(w, "BROKEN %s: %s\n", f.Check, f.Text)
	}
	if b.More > 0 {
		fmt.Fprintf(w, "and %d more\n", b.More)
	}
	fmt.Fprintln(w)
}

func ledgerCommand() *cobra.Command {
	var token string
	c := operate("ledger ID", "the transitions of an activity, oldest first", cobra.ExactArgs(1), func(o *operator, args []string) error {
		path, err := activityPath(args[0])
		if err != nil {
			return err
		}
		all := console.Transitions{Transitions: []console.Transition{}}
		for after := ""; ; {
			var page console.Transitions
			q := url.Values{"token": {token}, "after": {after}}
			if err := o.call("GET", path+"/ledger?"+q.Encode(), nil, &page); err != nil {
				return err
			}
			all.Transitions = append(all.Transitions, page.Transitions...)
			if after = page.Next; after == "" {
				break
			}
		}
		return o.print(all, func(w io.Writer) {
			for _, t := range all.Transitions {
				writeTransition(w, &t)
			}
		})
	})
	c.Flags().StringVar(&token, "token", "", "only the transitions of this request token")
	return c
}

func writeTransition(w io.Writer, t *console.Transition) {
	fmt.Fprintf(w, "%s\t%s\t%s\t", t.ID, t.At.Time().Local().Format("2006-01-02 15:04:05.000"), t.Op)
	for _, k := range slices.Sorted(maps.Keys(t.Fields)) {
		fmt.Fprintf(w, " %s=%s", k, t.Fields[k])
	}
	fmt.Fprintln(w)
}

// tokenCommand signs with the configured key itself; without one the console of a demo signs with the key that it made.
func tokenCommand() *cobra.Command {
	var user string
	var ttl time.Duration
	c := &cobra.Command{Use: "token --user ID", Short: "a buyer's token for tests, signed with the shop's key", Args: cobra.NoArgs}
	c.Flags().StringP("output", "o", "text", "text or json")
	c.Flags().StringVar(&user, "user", "", "the buyer's id")
	c.Flags().DurationVar(&ttl, "ttl", 2*time.Hour, "how long it is good")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := newOperator(cmd)
		if err != nil {
			return err
		}
		id, err := parseID("--user", user)
		if err != nil {
			return err
		}
		t, err := o.sign(id, ttl)
		if err != nil {
			return err
		}
		return o.print(t, func(w io.Writer) { fmt.Fprintln(w, t.Token) })
	}
	return c
}

func (o *operator) sign(user sale.ID, ttl time.Duration) (t console.Token, err error) {
	if o.cfg.Auth.Key == "" {
		if err := o.connect(); err != nil {
			return t, err
		}
		return t, o.call("POST", "/admin/api/token", map[string]any{"userId": user, "ttl": ttl.String()}, &t)
	}
	signer, err := identity.NewSigner(o.cfg.Auth)
	if err != nil {
		return t, usagef("auth: %w", err)
	}
	if t.Token, err = signer.Sign(user, ttl); err != nil {
		return t, usageError{err}
	}
	t.User, t.ExpiresAt = user, sale.At(time.Now().Add(ttl))
	return t, nil
}

func lettersCommand() *cobra.Command {
	c := &cobra.Command{Use: "dead-letters", Short: "messages that could not be read"}
	c.AddCommand(
		operate("list", "the newest 100", cobra.NoArgs, func(o *operator, _ []string) error {
			var l console.Letters
			if err := o.call("GET", "/admin/api/dead-letters", nil, &l); err != nil {
				return err
			}
			return o.print(l, func(w io.Writer) {
				fmt.Fprintln(w, "id\tat\treason\tbody")
				for _, d := range l.Letters {
					fmt.Fprintf(w, "%s\t%s\t%s\t%.120q\n", d.ID, local(d.At), d.Reason, d.Body)
				}
			})
		}),
		operate("replay ID", "puts one into the queue again", cobra.ExactArgs(1), func(o *operator, args []string) error {
			var answer console.Change
			if err := o.call("POST", "/admin/api/dead-letters/"+url.PathEscape(args[0])+"/replay", nil, &answer); err != nil {
				return err
			}
			return o.changed(answer, answer)
		}),
	)
	return c
}
