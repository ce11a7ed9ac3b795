package console

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"floodgate/sale"
)

// MaxActivity bounds an activity file: 100 items with titles of 200 characters are a third of it.
const MaxActivity = 256 << 10

// ReadActivity reads an activity file, YAML or JSON, with exactly the fields of the contract. name stands before each fault,
// which names line and field; all faults are joined, one a line. An id may be left out.
func ReadActivity(name string, text []byte) (sale.Activity, error) {
	if len(text) > MaxActivity {
		return sale.Activity{}, fmt.Errorf("%s: larger than %d bytes", name, MaxActivity)
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return sale.Activity{}, fmt.Errorf("%s: %s", name, strings.SplitN(err.Error(), "\n", 2)[0])
	}
	r := reader{name: name, line: map[string]int{}}
	var a sale.Activity
	switch {
	case len(file.Docs) != 1 || file.Docs[0].Body == nil:
		return a, fmt.Errorf("%s: want one activity", name)
	default:
		r.mapping(file.Docs[0].Body, "", activityFields(&r, &a))
	}
	if len(r.faults) == 0 {
		r.check(&a)
	}
	return a, errors.Join(r.faults...)
}

// maxFaults is how many faults of one file are told.
const maxFaults = 20

// reader walks the nodes of a file, and notes where each field stands and what is wrong with it.
type reader struct {
	name   string
	line   map[string]int // of a field
	faults []error
}

func (r *reader) fault(line int, field, problem string, args ...any) {
	if len(r.faults) >= maxFaults {
		return
	}
	if field != "" {
		field += ": "
	}
	r.faults = append(r.faults, fmt.Errorf("%s:%d: %s%s", r.name, line, field, fmt.Sprintf(problem, args...)))
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// read takes the value of one field.
type read func(n ast.Node, field string)

// mapping calls the reader of each field; an unknown field is a fault.
func (r *reader) mapping(n ast.Node, prefix string, fields map[string]read) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.fault(lineOf(n), strings.TrimSuffix(prefix, "."), "want fields with values")
		return
	}
	for _, v := range m.Values {
		key := v.Key.GetToken().Value
		f, ok := fields[key]
		r.line[prefix+key] = lineOf(v)
		if !ok {
			r.fault(lineOf(v), prefix+key, "unknown field")
			continue
		}
		f(v.Value, prefix+key)
	}
}

func activityFields(r *reader, a *sale.Activity) map[string]read {
	return map[string]read{
		"id": r.id(&a.ID), "title": r.text(&a.Title), "startsAt": r.instant(&a.StartsAt), "endsAt": r.instant(&a.EndsAt),
		"perUserLimit": r.limit(&a.PerUserLimit), "payWindow": r.duration(&a.PayWindow), "items": r.items(&a.Items),
		"captcha": r.absent, "closeAfterEnd": r.absent, "eligibleUsers": r.absent, "eligibleClaim": r.absent, "waitlist": r.absent,
	}
}

func (r *reader) items(to *[]sale.Item) read {
	return func(n ast.Node, field string) {
		list, ok := n.(*ast.SequenceNode)
		if !ok {
			r.fault(lineOf(n), field, "want a list")
			return
		}
		for i, v := range list.Values {
			item := fmt.Sprintf("%s[%d]", field, i)
			r.line[item] = lineOf(v)
			var it sale.Item
			r.mapping(v, item+".", map[string]read{
				"commodityId": r.id(&it.Commodity), "title": r.text(&it.Title), "price": r.cents(&it.Price), "total": r.units(&it.Total),
				"fallbackQuota": r.absent,
			})
			if r.line[item+".price"] == 0 || r.line[item+".total"] == 0 {
				r.fault(lineOf(v), item, "want price and total")
			}
			*to = append(*to, it)
		}
	}
}

// absent is a field of a later version: what asks for nothing may stand there, anything else would be ignored silently.
func (r *reader) absent(n ast.Node, field string) {
	switch v := n.(type) {
	case *ast.NullNode:
		return
	case *ast.BoolNode:
		if !v.Value {
			return
		}
	case *ast.IntegerNode:
		if v.Token.Value == "0" {
			return
		}
	}
	r.fault(lineOf(n), field, "not in this version: leave it out")
}

func (r *reader) text(to *string) read {
	return func(n ast.Node, field string) {
		switch v := n.(type) {
		case *ast.StringNode:
			*to = v.Value
		case *ast.LiteralNode:
			*to = strings.TrimSpace(v.Value.Value)
		default:
			r.fault(lineOf(n), field, "want a text")
		}
	}
}

// word is the text of a string node.
func (r *reader) word(n ast.Node, field, want string) (string, bool) {
	v, ok := n.(*ast.StringNode)
	if !ok {
		r.fault(lineOf(n), field, "%s", want)
		return "", false
	}
	return v.Value, true
}

func (r *reader) id(to *sale.ID) read {
	return func(n ast.Node, field string) {
		var text string
		switch v := n.(type) {
		case *ast.StringNode:
			text = v.Value
		case *ast.IntegerNode:
			text = v.Token.Value // as written: 007 is no id
		}
		id, err := sale.ParseID(text)
		if err != nil {
			r.fault(lineOf(n), field, "%v", err)
		}
		*to = id
	}
}

func (r *reader) instant(to *sale.Millis) read {
	const want = `want a time with an offset, like "2026-11-11T10:00:00+08:00"`
	return func(n ast.Node, field string) {
		text, ok := r.word(n, field, want)
		if !ok {
			return
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.UnixMilli() <= 0 {
			r.fault(lineOf(n), field, want)
			return
		}
		*to = sale.At(t)
	}
}

func (r *reader) duration(to *time.Duration) read {
	const want = `want a duration from "1s" to "72h", like "15m"`
	return func(n ast.Node, field string) {
		text, ok := r.word(n, field, want)
		if !ok {
			return
		}
		d, err := time.ParseDuration(text)
		if err != nil || d%time.Millisecond != 0 {
			r.fault(lineOf(n), field, want)
			return
		}
		*to = d
	}
}

func (r *reader) cents(to *sale.Cents) read {
	return func(n ast.Node, field string) {
		text, ok := r.word(n, field, `want an amount in quotes, like "99.00"`)
		if !ok {
			return
		}
		v, err := sale.ParseCents(text)
		if err != nil {
			r.fault(lineOf(n), field, "%v", err)
		}
		*to = v
	}
}

func (r *reader) units(to *int64) read {
	return func(n ast.Node, field string) {
		v, err := int64(0), strconv.ErrSyntax
		if i, ok := n.(*ast.IntegerNode); ok {
			v, err = strconv.ParseInt(i.Token.Value, 10, 64)
		}
		if err != nil || v > sale.MaxTotal || v < 0 {
			r.fault(lineOf(n), field, "want a whole number from 0 to %d", sale.MaxTotal)
			return
		}
		*to = v
	}
}

func (r *reader) limit(to *int) read {
	return func(n ast.Node, field string) {
		var v int64
		r.units(&v)(n, field)
		*to = int(v)
	}
}

// check adds what the activity's own check refuses, with the line of each field; a field that is not there is told by the line of
// what should hold it.
func (r *reader) check(a *sale.Activity) {
	err := a.Check()
	if err == nil {
		return
	}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *sale.FieldError
		if !errors.As(e, &f) {
			panic("console: a fault without a field: " + e.Error())
		}
		line, at := 1, f.Field
		for at != "" {
			if l, ok := r.line[at]; ok {
				line = l
				break
			}
			at = at[:max(0, strings.LastIndex(at, "."))]
		}
		r.fault(line, f.Field, "%s", f.Problem)
	}
}
