package sql

import (
	"testing"

	"floodgate/sale"
)

// BenchmarkPlace places 200 orders an iteration: as one batch, and as one transaction an order. Read orders/s.
func BenchmarkPlace(b *testing.B) {
	for _, driver := range []string{MySQL, SQLite} {
		for _, c := range []struct {
			name string
			size int
		}{{"batch200", 200}, {"single", 1}} {
			b.Run(driver+"/"+c.name, func(b *testing.B) {
				s := fresh(b, driver)
				book := newBook(b, s, sale.MaxTotal, 0)
				user := sale.ID(0)
				for b.Loop() {
					for range 200 / c.size {
						rows := make([]sale.Order, c.size)
						for i := range rows {
							user++
							rows[i] = book.order(user, 0)
						}
						if got := book.place(b, s, 1, rows...); len(got.Inserted) != c.size {
							b.Fatalf("%d inserted of %d", len(got.Inserted), c.size)
						}
					}
				}
				b.ReportMetric(float64(b.N)*200/b.Elapsed().Seconds(), "orders/s")
				book.sums(b, s)
			})
		}
	}
}
