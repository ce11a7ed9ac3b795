package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"floodgate/bench"
	"floodgate/sale"
	"floodgate/sql"
)

// benchCommand measures. Without a name it is the workload that matters.
func benchCommand() *cobra.Command {
	var opt bench.Options
	c := &cobra.Command{
		Use: "bench", Short: "measures this machine: canonical, the sale that matters, where no other is named (see bench/README.md)",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, "canonical", opt) },
	}
	f := c.PersistentFlags()
	f.StringP("output", "o", "text", "text or json")
	f.StringVar(&opt.History, "history", defaultHistory(), "file that the result is added to, one line a run; empty: none")
	f.IntVar(&opt.Conns, "connections", 256, "connections of the crowd (1 to 10000)")
	f.DurationVar(&opt.For, "for", 0, "length of one phase of accept, place and memory (1s to 1m; default 3s)")
	f.IntVar(&opt.Rounds, "rounds", 3, "how often two ways are measured in turn (1 to 20)")
	f.IntVar(&opt.Users, "users", 100_000, "canonical: how many come (1 to 1000000)")
	f.IntVar(&opt.Units, "units", 1000, "canonical: how many units there are")
	f.Float64Var(&opt.Rate, "rate", 0, "canonical: buyers a second; 0: as fast as answers come")
	f.BoolVar(&opt.Embedded, "embedded", false, "canonical: against floodgate serve, which needs nothing installed")
	f.StringVar(&opt.Flush, "flush", "both", "accept: always, second, both, or keep what the stack has")
	for name, short := range map[string]string{
		"canonical": "a crowd far larger than the stock, over HTTP, with outcomes by push and the books audited",
		"accept":    "purchases a second under a large stock: gathered against one call each, and the CPU of each process",
		"place":     "orders a second in the database: a batch against one transaction each; and the whole chain's outcome by push",
		"reserve":   "reservations a second of the ledger alone, and their cost as the stock grows",
		"memory":    "the edge's memory at 10,000 connections and a sold-out crowd",
	} {
		c.AddCommand(&cobra.Command{Use: name, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, name, opt) }})
	}
	c.AddCommand(benchBuyersCommand())
	return c
}

// benchBuyersCommand makes signed buyers for other load generators.
func benchBuyersCommand() *cobra.Command {
	var b bench.BuyerList
	var activity, item int64
	c := &cobra.Command{Use: "buyers", Short: "prints signed buyers for other load generators (bench/wrk, bench/vegeta)", Args: cobra.NoArgs}
	f := c.Flags()
	f.Int64Var(&activity, "activity", 0, "the activity that they come to")
	f.Int64Var(&item, "item", 0, "the item that they want; vegeta's targets name it")
	f.Int64Var(&b.First, "first", 1_000_000_000, "the first user's id; the others follow")
	f.IntVar(&b.Count, "count", 1000, "how many (1 to 1000000)")
	f.StringVar(&b.URL, "url", "http://127.0.0.1:8080", "vegeta: where the edge is")
	f.BoolVar(&b.Vegeta, "vegeta", false, "targets for vegeta attack -format=json; otherwise a line with JWT and request token each")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadFlags(cmd)
		if err != nil {
			return err
		}
		b.Activity, b.Item, b.Auth, b.InternalKey = sale.ID(activity), sale.ID(item), cfg.Auth, cfg.Internal.Key
		if err := b.Write(cmd.OutOrStdout()); errors.Is(err, bench.ErrUsage) {
			return usageError{err}
		} else if err != nil {
			return err
		}
		return nil
	}
	return c
}

// defaultHistory is the history in the sources, where the working folder is in them.
func defaultHistory() string {
	if root := bench.Root(); root != "" {
		return filepath.Join(root, "bench", "results", "history.jsonl")
	}
	return ""
}

// runBench runs one benchmark against the configured stack and prints its report; books that do not balance are exit code 1.
func runBench(cmd *cobra.Command, name string, opt bench.Options) error {
	output, _ := cmd.Flags().GetString("output")
	if output != "text" && output != "json" {
		return usagef("--output %s: want text or json", output)
	}
	cfg, err := loadFlags(cmd)
	if err != nil {
		return err
	}
	if !opt.Embedded && len(cfg.Redis.Addrs) > 0 && cfg.MQ.Driver == "rocketmq" && cfg.DB.Driver == sql.MySQL {
		opt.Redis = &redis.UniversalOptions{Addrs: cfg.Redis.Addrs, MasterName: cfg.Redis.Sentinel, Username: cfg.Redis.Username,
			Password: cfg.Redis.Password, IsClusterMode: cfg.Redis.Sentinel == "" && len(cfg.Redis.Addrs) > 1, MaxRetries: -1}
	}
	opt.MQ, opt.DB, opt.Progress = cfg.MQ, cfg.DB, os.Stderr
	file, pairs, _ := sources(cmd) // read a moment ago
	if file != "" {
		opt.Args = append(opt.Args, "--config", file)
	}
	for _, p := range pairs {
		opt.Args = append(opt.Args, "--set", p)
	}
	report, err := bench.Run(cmd.Context(), name, opt)
	if errors.Is(err, bench.ErrNoStack) || errors.Is(err, bench.ErrUsage) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return showReport(cmd, report, output)
}

func showReport(cmd *cobra.Command, r *bench.Report, output string) error {
	write := r.WriteText
	if output == "json" {
		write = r.WriteJSON
	}
	if err := write(cmd.OutOrStdout()); err != nil {
		return err
	}
	if !r.Books.Balanced {
		fmt.Fprintln(cmd.ErrOrStderr(), "floodgate: the books do not balance")
		return errCheckFailed
	}
	return nil
}
