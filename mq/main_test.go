package mq_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"floodgate/mq"
)

// childFile makes the test binary a process that sends to the queue in this file until it is killed.
const childFile = "FLOODGATE_TEST_QUEUE_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(childFile); file != "" {
		sendForEver(file)
		return
	}
	// The library's client ends its own goroutines only up to 10 s after its shutdown.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/apache/rocketmq-client-go/v2/primitive.WithRecover"),
		// It asks a silent name server for up to 12 s and takes no context meanwhile; Close leaves it at that.
		goleak.IgnoreAnyFunction("github.com/apache/rocketmq-client-go/v2/producer.(*defaultProducer).tryToFindTopicPublishInfo"),
		// Its cache of parsed names has one cleaner for the process, started by importing it.
		goleak.IgnoreAnyFunction("github.com/patrickmn/go-cache.(*janitor).Run"))
}

// sendForEver tells the number of each message after its Send has returned.
func sendForEver(file string) {
	db, err := sql.Open("sqlite", dsn(file))
	for i, table := 1, mq.NewTable(db); err == nil; i++ {
		err = table.Send(context.Background(), messages(i, 1))
		fmt.Println(i, err)
	}
}

// What Send has acknowledged is there after kill -9, and numbers go on where they were.
func TestTableKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "floodgate.db")
	db := openFile(t, file)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFile+"="+file)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged, lines := 0, bufio.NewScanner(out)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "%d <nil>", &acknowledged); err != nil {
			t.Errorf("the child says %q", lines.Text())
		}
		if acknowledged == 100 {
			child.Process.Kill() // and read on what it still said
		}
	}
	child.Wait()
	w := start(t, mq.NewTable(db))
	w.until("all acknowledged messages", func() bool { return covers(messages(1, acknowledged), w) })
}
