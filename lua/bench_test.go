package lua

import (
	"fmt"
	"testing"

	"floodgate/sale"
)

// One reserve of 64 against 64 reserves of one, on real Redis with the whole record; reservations/s is the figure.
// The goal for 64 is 60,000 from one client.
//
//	go test ./lua -run '^$' -bench Reserve
func BenchmarkReserve(b *testing.B) {
	for _, size := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			w := real(b)
			w.open(b, sale.MaxTotal)
			batch, next := make([]ReserveRequest, size), 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				for i := range batch {
					batch[i] = wish(next)
					next++
				}
				b.StartTimer()
				if r := w.reserve(b, batch...); r.Answers[0].Code != Reserved {
					b.Fatalf("%+v", r.Answers[0])
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "reservations/s")
		})
	}
}
