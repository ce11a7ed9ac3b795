package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newRoot is the command table.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "floodgate", Short: "A flash sale: refuses nearly everybody, sells exactly what there is, tells every buyer one outcome",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().String("config", os.Getenv("FLOODGATE_CONFIG"), "configuration file (YAML)")
	root.PersistentFlags().StringArray("set", nil, "one setting, key=value; may be repeated and wins over file and environment")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		serveCommand(),
		roleCommand("edge", "buyers' HTTP", runEdge),
		roleCommand("worker", "places orders from the queue into the database", runWorker),
		roleCommand("notifier", "WebSockets: outcomes and stock", runNotifier),
		roleCommand("console", "operators' API, metrics and health", runConsole),
		migrateCommand(), configCommand(), versionCommand(), benchCommand(),
	)
	root.AddCommand(operatorCommands()...)
	strict(root)
	return root
}

// strict makes wrong usage of any command a usage error: an unknown command, a missing or extra argument.
func strict(c *cobra.Command) {
	if args := c.Args; args != nil {
		c.Args = func(c *cobra.Command, a []string) error {
			if err := args(c, a); err != nil {
				return usagef("%w: usage: %s", err, c.UseLine())
			}
			return nil
		}
	} else if c.HasSubCommands() {
		c.Args = func(c *cobra.Command, a []string) error {
			if len(a) > 0 {
				return usagef("unknown command %q: see %s --help", a[0], c.CommandPath())
			}
			return nil
		}
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// loadFlags reads the configuration that a command's shared flags, the environment and the file give.
func loadFlags(cmd *cobra.Command) (Config, error) {
	file, pairs, err := sources(cmd)
	if err != nil {
		return Config{}, err
	}
	return load(nil, file, os.Environ(), pairs)
}

func sources(cmd *cobra.Command) (file string, pairs []string, err error) {
	if file, err = cmd.Flags().GetString("config"); err != nil {
		return "", nil, usageError{err}
	}
	if pairs, err = cmd.Flags().GetStringArray("set"); err != nil {
		return "", nil, usageError{err}
	}
	return file, pairs, nil
}

// serveCommand runs everything in one process. With the Redis inside, which is for trying things out, buyers may log in by
// themselves unless the configuration says otherwise.
func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "everything in one process; without a configuration nothing needs to be installed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadFlags(cmd)
			if err == nil && len(cfg.Redis.Addrs) == 0 {
				file, pairs, _ := sources(cmd) // read a moment ago
				cfg, err = load(map[string]string{"demo": "true"}, file, os.Environ(), pairs)
			}
			if err != nil {
				return err
			}
			return runServe(cmd.Context(), cfg)
		},
	}
}

// roleCommand is a command that runs until it is told to stop.
func roleCommand(name, short string, run func(ctx context.Context, cfg Config) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadFlags(cmd)
		if err != nil {
			return err
		}
		return run(cmd.Context(), cfg)
	}}
}

func migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "migrate up|down|status", Short: "brings the database's tables to this version, one back, or tells where they are",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"up", "down", "status"},
	}
	c.Flags().StringP("output", "o", "text", "text or json")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := newOperator(cmd)
		if err != nil {
			return err
		}
		p := newParts(o.cfg, newLog(o.cfg))
		defer p.close()
		if err := p.openStore(cmd.Context()); err != nil {
			return err
		}
		lines, err := p.store.Migrate(cmd.Context(), args[0])
		if err == nil && len(lines) == 0 && !o.json {
			lines = []string{"nothing to do"}
		}
		told := o.print(map[string][]string{"migrations": lines}, func(w io.Writer) {
			for _, l := range lines {
				fmt.Fprintln(w, l)
			}
		})
		return cmp.Or(err, told)
	}
	return c
}

func configCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "check, print or explain the configuration"}
	c.AddCommand(
		&cobra.Command{Use: "check", Short: "says whether the configuration can be read", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := loadFlags(cmd); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "the configuration is fine")
			return nil
		}},
		&cobra.Command{Use: "print", Short: "every key with its value; secrets are hidden", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadFlags(cmd)
			if err != nil {
				return err
			}
			for _, s := range settings(&cfg) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s=%s\n", s.key, s.show())
			}
			return nil
		}},
		&cobra.Command{Use: "reference", Short: "every key with its default and meaning, as Markdown", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprint(cmd.OutOrStdout(), reference())
			return nil
		}},
	)
	return c
}

// version and commit are set by the build; without it the commit that Go recorded is told.
var version, commit = "dev", ""

func versionCommand() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "version, commit and Go version", Args: cobra.NoArgs}
	output := c.Flags().StringP("output", "o", "text", "text or json")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		v := map[string]string{"version": version, "commit": commit, "go": "unknown"}
		if info, ok := debug.ReadBuildInfo(); ok {
			v["go"] = info.GoVersion
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					v["commit"] = s.Value
				}
			}
		}
		v["commit"] = cmp.Or(v["commit"], "unknown")
		if *output == "json" {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "floodgate %s (commit %s, %s)\n", v["version"], v["commit"], v["go"])
		return nil
	}
	return c
}
