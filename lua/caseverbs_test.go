package lua

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"floodgate/sale"
)

// callVerb makes a call that is written as text, by the Go method, and writes its answer as text.
func (w *world) callVerb(t *testing.T, line string) string {
	t.Helper()
	words := strings.Fields(instants(line))
	call, ok := caseVerbs[words[0]]
	if !ok {
		t.Fatalf("no verb %q", words[0])
	}
	return call(w, words[1:])
}

// caseVerbs are the calls of the cases:
//
//	reserve ITEM CENTS TOKEN:USER:QUANTITY...     claim TOKEN:USER:ITEM:QUANTITY:CENTS...
//	commit TOKEN:OUTCOME...                       release TOKEN:OUTCOME[:REASON]...
//	open EPOCH ITEM:N...                          rebuild_end EPOCH ITEM:N...
//	rebuild_page EPOCH -TOKEN... TOKEN=RECORD...  and the rest with their plain arguments
var caseVerbs = map[string]func(w *world, a []string) string{
	"reserve": func(w *world, a []string) string {
		var batch []ReserveRequest
		for _, s := range a[2:] {
			f := strings.Split(s, ":")
			batch = append(batch, ReserveRequest{sale.Token(f[0]), id(f[1]), int(id(f[2]))})
		}
		r, err := w.Reserve(w.ctx, w.cell, id(a[0]), sale.Cents(id(a[1])), batch)
		if err != nil {
			return err.Error()
		}
		out := ""
		for _, x := range r.Answers {
			out += fmt.Sprint(int(x.Code)) + strings.TrimSuffix(fmt.Sprint(x.Live), "[]") + " "
		}
		return fmt.Sprintf("%sremaining=%d epoch=%d version=%d pending=%s", out, r.Remaining, r.Epoch, r.Version, r.Pending)
	},
	"claim": func(w *world, a []string) string {
		var batch []ClaimRequest
		for _, s := range a {
			f := strings.Split(s, ":")
			batch = append(batch, ClaimRequest{sale.Token(f[0]), id(f[1]), id(f[2]), int(id(f[3])), sale.Cents(id(f[4])), 1})
		}
		answers, epoch, err := w.Claim(w.ctx, w.cell, batch)
		if err != nil {
			return err.Error()
		}
		out := ""
		for _, x := range answers {
			out += fmt.Sprint(int(x.Code))
			if x.Reservation.State != 0 {
				out += fmt.Sprintf("%c%s", x.Reservation.State, x.Reservation.Token)
			}
			out += " "
		}
		return out + fmt.Sprintf("epoch=%d", epoch)
	},
	"commit":   func(w *world, a []string) string { return codesText(w.Commit(w.ctx, w.cell, settlements(a))) },
	"release":  func(w *world, a []string) string { return codesText(w.Release(w.ctx, w.cell, settlements(a))) },
	"enqueued": func(w *world, a []string) string { return errText(w.Enqueued(w.ctx, w.cell, a...)) },
	"pause":    func(w *world, a []string) string { return errText(w.Pause(w.ctx, w.cell)) },
	"resume":   func(w *world, a []string) string { return errText(w.Resume(w.ctx, w.cell)) },
	"unprove":  func(w *world, a []string) string { return errText(w.Unprove(w.ctx, w.cell)) },
	"due": func(w *world, a []string) string {
		due, held, err := w.Due(w.ctx, w.cell, int(id(a[0])))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("due=%v held=%v", names(due), names(held))
	},
	"restock": func(w *world, a []string) string {
		return codeText(w.Restock(w.ctx, w.cell, id(a[0]), int64(id(a[1])), int64(id(a[2])), a[3]))
	},
	"open": func(w *world, a []string) string {
		return codeText(w.Open(w.ctx, w.sale, int64(id(a[0])), stockOf(a[1:])))
	},
	"describe": func(w *world, a []string) string {
		s := w.sale
		s.Status, s.PerUserLimit = sale.Status(a[0]), int(id(a[1]))
		return errText(w.Describe(w.ctx, s))
	},
	"rebuild_begin": func(w *world, a []string) string { return codeText(w.RebuildBegin(w.ctx, w.cell, int64(id(a[0])))) },
	"rebuild_lots": func(w *world, a []string) string {
		return codeText(w.RebuildLots(w.ctx, w.cell, int64(id(a[0])), a[1:]))
	},
	"rebuild_live": func(w *world, a []string) string { return codeText(w.RebuildLive(w.ctx, w.cell, int64(id(a[0])))) },
	"rebuild_end": func(w *world, a []string) string {
		return codeText(w.RebuildEnd(w.ctx, w.sale, int64(id(a[0])), stockOf(a[1:])))
	},
	"rebuild_page": func(w *world, a []string) string {
		var keep []sale.Reservation
		var drop []sale.Token
		for _, s := range a[1:] {
			token, record, kept := strings.Cut(s, "=")
			if !kept {
				drop = append(drop, sale.Token(s[1:]))
				continue
			}
			r, err := unpack(sale.Token(token), record)
			if err != nil {
				return err.Error()
			}
			keep = append(keep, r)
		}
		return codeText(w.RebuildPage(w.ctx, w.cell, int64(id(a[0])), keep, drop))
	},
	"inspect": func(w *world, a []string) string {
		s, err := w.Inspect(w.ctx, w.cell)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("opened=%t proven=%t recovering=%t %s epoch=%d version=%d %v pending=%d reserved=%d",
			s.Opened, s.Proven, s.Recovering, s.Status, s.Epoch, s.Version, s.Remaining, s.Pending, s.Reserved)
	},
}

func id(s string) sale.ID {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return sale.ID(n)
}

func stockOf(a []string) map[sale.ID]int64 {
	out := map[sale.ID]int64{}
	for _, s := range a {
		item, n, _ := strings.Cut(s, ":")
		out[id(item)] = int64(id(n))
	}
	return out
}

func settlements(a []string) []Settlement {
	var out []Settlement
	for _, s := range a {
		f := append(strings.Split(s, ":"), "")
		o := sale.Outcome{User: 11, Token: sale.Token(f[0]), Outcome: sale.Code(f[1]), OrderNo: 1 << 62, PayBy: 99, Reason: f[2], At: 88}
		out = append(out, Settlement{Outcome: o, Commodity: 5, Quantity: 1})
	}
	return out
}

func codesText(codes []Code, err error) string {
	if err != nil {
		return err.Error()
	}
	return strings.Trim(fmt.Sprint(codes), "[]")
}

func codeText(c Code, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(int(c))
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func names(list []sale.Reservation) []string {
	set := map[string]bool{}
	for _, r := range list {
		set[string(r.Token)] = true
	}
	return slices.Sorted(maps.Keys(set))
}
