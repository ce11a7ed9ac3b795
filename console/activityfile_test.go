package console

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"floodgate/sale"
)

const goodFile = `# the sale of the year
title: 秒杀
startsAt: 2026-11-11T10:00:00+08:00
endsAt: "2026-11-11T11:00:00+08:00"
perUserLimit: 2
payWindow: 15m
captcha: false
waitlist: 0
items:
  - commodityId: "9007199254740993"
    title: 耳机
    price: "99.00"
    total: 100
    fallbackQuota: 0
  - commodityId: 1002
    title: keyboard
    price: "0.00"
    total: 0
`

func TestActivityFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 11, 2, 0, 0, 0, time.UTC)
	want := sale.Activity{Title: "秒杀", StartsAt: sale.At(at), EndsAt: sale.At(at.Add(time.Hour)), PerUserLimit: 2, PayWindow: 15 * time.Minute,
		Items: []sale.Item{{Commodity: 9007199254740993, Title: "耳机", Price: 9900, Total: 100}, {Commodity: 1002, Title: "keyboard"}}}
	asJSON := `{"id":"9223372036854775807","title":"\u79d2\u6740","startsAt":"2026-11-11T10:00:00+08:00","endsAt":"2026-11-11T03:00:00Z","perUserLimit":2,"payWindow":"15m",` +
		`"items":[{"commodityId":"9007199254740993","title":"耳机","price":"99.00","total":100},{"commodityId":"1002","title":"keyboard","price":"0.00","total":0}]}`
	if got, err := ReadActivity("a.yaml", []byte(goodFile)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	want.ID = 9223372036854775807
	if got, err := ReadActivity("a.json", []byte(asJSON)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

// Each change of the good file is refused with the line and the field.
func TestActivityFileFaults(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"endsAt: \"2026-11-11T11", "endsAt: \"2026-11-11T10", "a.yaml:4: endsAt: must be after startsAt"},
		{"T10:00:00+08:00", "T10:00:00", "a.yaml:3: startsAt: want a time with an offset"},
		{"startsAt: 2026-11-11T10:00:00+08:00", "startsAt: 1762826400000", "a.yaml:3: startsAt: want a time with an offset"},
		{"title: 秒杀\n", "", "a.yaml:1: title: want 1 to 200 characters"},
		{"title: 秒杀", "title: " + strings.Repeat("杀", 201), "a.yaml:2: title: want 1 to 200 characters"},
		{"total: 100", "total: -1", "a.yaml:13: items[0].total: want a whole number"},
		{"total: 100", "total: 1000000001", "a.yaml:13: items[0].total: want a whole number from 0 to 1000000000"},
		{"total: 100", "total: 1e2", "a.yaml:13: items[0].total"},
		{"total: 100", "total: \"100\"", "a.yaml:13: items[0].total"},
		{"    total: 100\n", "", "a.yaml:10: items[0]: want price and total"},
		{`"99.00"`, `"99.0"`, "a.yaml:12: items[0].price: not an amount"},
		{`"99.00"`, `99.00`, `a.yaml:12: items[0].price: want an amount in quotes`},
		{`"99.00"`, `"-1.00"`, "a.yaml:12: items[0].price: not an amount"},
		{`"99.00"`, `"100000000.01"`, "a.yaml:12: items[0].price: want"},
		{"commodityId: 1002", "commodityId: 9007199254740993", "a.yaml:15: items[1].commodityId: two items with commodityId 9007199254740993"},
		{"commodityId: 1002", "commodityId: 007", "a.yaml:15: items[1].commodityId: not an id"},
		{"perUserLimit: 2", "perUserLimit: 0", "a.yaml:5: perUserLimit: want 1 to 100 units"},
		{"perUserLimit", "perUserLimits", "a.yaml:5: perUserLimits: unknown field"},
		{"    title: keyboard", "    name: keyboard", "a.yaml:16: items[1].name: unknown field"},
		{"payWindow: 15m", "payWindow: 73h", `a.yaml:6: payWindow: want from "1s" to "72h"`},
		{"payWindow: 15m", "payWindow: 15", `a.yaml:6: payWindow: want a duration`},
		{"captcha: false", "captcha: true", "a.yaml:7: captcha: not in this version"},
		{"waitlist: 0", "waitlist: 5", "a.yaml:8: waitlist: not in this version"},
		{"waitlist: 0", "closeAfterEnd: 5m", "a.yaml:8: closeAfterEnd: not in this version"},
		{"waitlist: 0", "eligibleUsers: ids.txt", "a.yaml:8: eligibleUsers: not in this version"},
		{"waitlist: 0", "eligibleClaim: {name: vip, values: [yes]}", "a.yaml:8: eligibleClaim: not in this version"},
		{"fallbackQuota: 0", "fallbackQuota: 10", "a.yaml:14: items[0].fallbackQuota: not in this version"},
		{"title: 秒杀", "title: a\ntitle: b", `a.yaml: [3:1] mapping key "title" already defined`},
		{"items:\n", "items: [\n", "a.yaml: ["},
	} {
		text := strings.Replace(goodFile, c[0], c[1], 1)
		if text == goodFile {
			t.Fatalf("%q is not in the file", c[0])
		}
		if _, err := ReadActivity("a.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q: got %v, want %s", c[1], err, c[2])
		}
	}
	for _, text := range []string{"", "# nothing", "- 1", "7", "a: 1\n---\nb: 2", "&a {title: *a}", "title: *b"} {
		if _, err := ReadActivity("a.yaml", []byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func FuzzActivityFile(f *testing.F) {
	f.Add(goodFile)
	f.Add(`{"title":"x","items":[{"price":"1.00"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ReadActivity("a", []byte(text))
		if err == nil && a.Check() != nil {
			t.Errorf("accepted what cannot be sold: %q", text)
		}
	})
}
