package notifier

import "testing"

func FuzzReadRequest(f *testing.F) {
	for _, seed := range []string{
		`{"type":"auth","token":"x.y.z"}`, `{"type":"watch","requestToken":"x"}`, `{"type":"subscribe","activityId":"9223372036854775807"}`,
		`{"type":"subscribe","activityId":"9223372036854775808"}`, `{"type":"auth","token":"x","activityId":"1"}`, `{"TYPE":"auth"}`, `{}{}`, "\xff", ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRequest(b)
		if err != nil {
			if err != errBadMessage || r != (request{}) {
				t.Errorf("%q: %+v, %v", b, r, err)
			}
			return
		}
		filled := 0
		for _, is := range []bool{r.Token != "", r.RequestToken != "", r.ActivityID > 0} {
			if is {
				filled++
			}
		}
		if filled != 1 || r.ActivityID < 0 {
			t.Errorf("%q: %+v", b, r)
		}
	})
}
