package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"floodgate/console"
	"floodgate/sale"
)

func activityCommand() *cobra.Command {
	c := &cobra.Command{Use: "activity", Short: "creates, opens, pauses, extends, ends and shows activities"}
	c.AddCommand(
		createCommand(),
		actionCommand("preheat", "loads the stock into Redis; the start stays"),
		actionCommand("open", "lets buyers in now: preheats, and moves the start to now where it lies ahead"),
		actionCommand("pause", "refuses new reservations at once; what is reserved goes on"),
		actionCommand("resume", "goes on after a pause"),
		extendCommand(),
		actionCommand("end", "ends the sale for good"),
		addStockCommand(),
		operate("show ID", "one activity, from the database and from Redis", cobra.ExactArgs(1), showActivity),
		operate("list", "all activities, newest first", cobra.NoArgs, listActivities),
	)
	return c
}

func createCommand() *cobra.Command {
	var file string
	c := operate("create -f FILE", "creates an activity from a YAML or JSON file", cobra.NoArgs, func(o *operator, _ []string) error {
		a, err := readActivity(file)
		if err != nil {
			return err
		}
		var answer console.Created
		if err := o.call("POST", "/admin/api/activities", fileOf(a), &answer); err != nil {
			return err
		}
		return o.print(answer, func(w io.Writer) { fmt.Fprintf(w, "created activity %s: %s\n", answer.ID, answer.After) })
	})
	c.Flags().StringVarP(&file, "file", "f", "", "the activity file; - is stdin")
	return c
}

func readActivity(file string) (sale.Activity, error) {
	var text []byte
	var err error
	switch file {
	case "":
		return sale.Activity{}, usagef("activity create: name the file with -f FILE")
	case "-":
		text, err = io.ReadAll(io.LimitReader(os.Stdin, console.MaxActivity+1))
	default:
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return sale.Activity{}, usageError{err}
	}
	a, err := console.ReadActivity(file, text)
	if err != nil {
		return a, usageError{err}
	}
	return a, nil
}

// fileOf is the activity as the API takes it: the fields of the file.
func fileOf(a sale.Activity) any {
	items := make([]map[string]any, len(a.Items))
	for i, it := range a.Items {
		items[i] = map[string]any{"commodityId": it.Commodity, "title": it.Title, "price": it.Price, "total": it.Total}
	}
	body := map[string]any{"title": a.Title, "startsAt": a.StartsAt.Time().Format(time.RFC3339Nano), "endsAt": a.EndsAt.Time().Format(time.RFC3339Nano),
		"perUserLimit": a.PerUserLimit, "payWindow": a.PayWindow.String(), "items": items}
	if a.ID > 0 {
		body["id"] = a.ID
	}
	return body
}

func actionCommand(name, short string) *cobra.Command {
	return operate(name+" ID", short, cobra.ExactArgs(1), func(o *operator, args []string) error {
		path, err := activityPath(args[0])
		if err != nil {
			return err
		}
		var answer console.Change
		if err := o.call("POST", path+"/"+name, nil, &answer); err != nil {
			return err
		}
		return o.changed(answer, answer)
	})
}

// extendCommand reads the end first, so that a repeated request (not a repeated command) moves it once.
func extendCommand() *cobra.Command {
	c := operate("extend ID DURATION", `moves the end by a duration like 10m; a negative one stands behind --: extend ID -- -30s`, cobra.ExactArgs(2), func(o *operator, args []string) error {
		path, err := activityPath(args[0])
		if err != nil {
			return err
		}
		var now console.Shown
		if err := o.call("GET", path, nil, &now); err != nil {
			return err
		}
		var answer console.Change
		if err := o.call("POST", path+"/extend", map[string]any{"by": args[1], "from": now.EndsAt}, &answer); err != nil {
			return err
		}
		return o.changed(answer, answer)
	})
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("%w: a negative duration stands behind --: extend ID -- -30s", err)
	})
	return c
}

func addStockCommand() *cobra.Command {
	var operation string
	c := operate("add-stock ID ITEM N", "adds N units to an item", cobra.ExactArgs(3), func(o *operator, args []string) error {
		path, err := activityPath(args[0])
		if err != nil {
			return err
		}
		item, err := parseID("item", args[1])
		if err != nil {
			return err
		}
		units, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil || units < 1 {
			return usagef("%q is not a number of units: want 1 to %d", args[2], sale.MaxTotal)
		}
		var answer console.Added
		body := map[string]any{"units": units}
		if operation != "" {
			body["operation"] = operation
		}
		if err := o.call("POST", path+"/items/"+item.String()+"/stock", body, &answer); err != nil {
			return err
		}
		return o.changed(answer.Change, answer)
	})
	c.Flags().StringVar(&operation, "operation", "", "an id of your own: the same one adds nothing again")
	return c
}

func showActivity(o *operator, args []string) error {
	path, err := activityPath(args[0])
	if err != nil {
		return err
	}
	var a console.Shown
	if err := o.call("GET", path, nil, &a); err != nil {
		return err
	}
	return o.print(a, func(w io.Writer) { writeActivity(w, &a) })
}

func writeActivity(w io.Writer, a *console.Shown) {
	fmt.Fprintf(w, "id\t%s\ntitle\t%s\nstatus\t%s\nstarts\t%s\nends\t%s\nlimit\t%d a user and item\npay window\t%s\n", a.ID, a.Title, a.Status,
		local(a.StartsAt), local(a.EndsAt), a.PerUserLimit, a.PayWindow)
	fmt.Fprintf(w, "redis\t%s, %d reservations, %d batches in hand\n", redisOf(a.Redis), a.Redis.Reservations, a.Redis.Pending)
	fmt.Fprintln(w, "\nitem\tprice\ttotal\tsold\tremaining\ttitle")
	for _, it := range a.Items {
		remaining := "-"
		if it.Remaining != nil {
			remaining = strconv.FormatInt(*it.Remaining, 10)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\n", it.Commodity, it.Price, it.Total, it.Sold, remaining, it.Title)
	}
}

func redisOf(r console.ShownRedis) string {
	if r.Error != "" {
		return r.State + " (" + r.Error + ")"
	}
	if r.State == "open" && r.Status != sale.Live {
		return r.State + ", " + string(r.Status)
	}
	return r.State
}

func local(m sale.Millis) string { return m.Time().Local().Format(time.RFC3339) }

func listActivities(o *operator, _ []string) error {
	all := console.List{Activities: []console.Shown{}}
	for before := ""; ; {
		var page console.List
		if err := o.call("GET", "/admin/api/activities"+before, nil, &page); err != nil {
			return err
		}
		all.Activities = append(all.Activities, page.Activities...)
		if page.Next == 0 {
			break
		}
		before = "?before=" + page.Next.String()
	}
	return o.print(all, func(w io.Writer) {
		fmt.Fprintln(w, "id\tstatus\tstarts\tends\tsold\ttotal\tredis\ttitle")
		for _, a := range all.Activities {
			var sold, total int64
			for _, it := range a.Items {
				sold, total = sold+it.Sold, total+it.Total
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", a.ID, a.Status, local(a.StartsAt), local(a.EndsAt), sold, total, redisOf(a.Redis), a.Title)
		}
	})
}
