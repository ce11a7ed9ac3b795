package mq_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"floodgate/deploy/stacktest"
	"floodgate/mq"
)

// BenchmarkSend is one edge that sends all it can: batches of a size, as many at once as an edge has on their way.
func BenchmarkSend(b *testing.B) {
	topic := stacktest.Topic(b)
	d := rocket(b, mq.Config{Driver: "rocketmq", NameServers: []string{stacktest.NameServer(b)}, Topic: topic, Group: topic})
	for _, size := range []int{1, 64, mq.MaxSend} {
		b.Run(fmt.Sprintf("rocketmq/%d", size), func(b *testing.B) { sendAll(b, d.producer, size) })
		b.Run(fmt.Sprintf("table/%d", size), func(b *testing.B) {
			sendAll(b, mq.NewTable(openFile(b, filepath.Join(b.TempDir(), "floodgate.db"))), size)
		})
	}
}

func sendAll(b *testing.B, p mq.Producer, size int) {
	const atOnce = 2
	batch := messages(1, size)
	b.ResetTimer()
	var senders sync.WaitGroup
	var failed atomic.Int64
	for s := range atOnce {
		senders.Go(func() {
			for i := s; i < b.N; i += atOnce {
				if p.Send(b.Context(), batch) != nil {
					failed.Add(1)
				}
			}
		})
	}
	senders.Wait()
	b.ReportMetric(float64(failed.Load()), "unanswered")
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkConsume is one worker whose placing costs nothing; run it with -benchtime 1x.
func BenchmarkConsume(b *testing.B) {
	topic := stacktest.Topic(b)
	d := rocket(b, mq.Config{Driver: "rocketmq", NameServers: []string{stacktest.NameServer(b)}, Topic: topic, Group: topic})
	const batches = 200
	all := messages(1, mq.MaxSend)
	for range batches {
		if err := d.producer.Send(b.Context(), all); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	w := start(b, d.worker())
	w.until("all are consumed", func() bool { return w.count() >= batches*len(all) })
	b.ReportMetric(float64(w.count())/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(w.count())/float64(len(w.all())), "messages/batch")
}

// BenchmarkFirstMessage is the time from making a producer and a consumer to the first message's arrival.
func BenchmarkFirstMessage(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		topic := stacktest.Topic(b)
		b.StartTimer()
		d := rocket(b, mq.Config{Driver: "rocketmq", NameServers: []string{stacktest.NameServer(b)}, Topic: topic, Group: topic})
		w := start(b, d.worker())
		if err := d.producer.Send(b.Context(), messages(1, 1)); err != nil {
			b.Error(err)
		}
		w.until("the first message", func() bool { return w.count() > 0 })
		b.StopTimer()
		w.stop()
		w.wait()
		b.StartTimer()
	}
}
