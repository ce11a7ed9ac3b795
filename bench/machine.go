package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"floodgate/mq"
	"floodgate/mq/remoting"
	"floodgate/sql"
)

// Surroundings are where and with what a run was made: figures of two runs compare only where these are alike.
type Surroundings struct {
	Commit   string            `json:"commit"` // with + behind it where files differed from it
	Machine  string            `json:"machine"`
	Cores    int               `json:"cores"`
	Load     float64           `json:"load"` // the machine's load average at the start: what others took away
	Versions map[string]string `json:"versions"`
}

// String is one line for the head of a report.
func (s Surroundings) String() string {
	return fmt.Sprintf("commit %s, %d x %s, load %.1f at the start, %v", s.Commit, s.Cores, s.Machine, s.Load, s.Versions)
}

func surroundings(ctx context.Context, o Options) Surroundings {
	s := Surroundings{Commit: commit(ctx), Machine: "unknown", Cores: runtime.NumCPU(), Versions: map[string]string{"go": runtime.Version()}}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			s.Machine = strings.TrimSpace(v)
			break
		}
	}
	text, _ = os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	s.Load, _ = strconv.ParseFloat(first, 64)
	if o.Redis == nil {
		return s
	}
	s.Versions["redis"] = redisVersion(ctx, o.Redis)
	s.Versions["database"] = databaseVersion(ctx, o.DB)
	s.Versions["rocketmq"] = brokerVersion(ctx, o.MQ)
	return s
}

// commit is that of the working folder's repository, else the one that the binary was built from.
func commit(ctx context.Context) string {
	if root := Root(); root != "" {
		git := func(args ...string) string {
			out, _ := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
			return strings.TrimSpace(string(out))
		}
		if head := git("rev-parse", "--short=10", "HEAD"); head != "" {
			if git("status", "--porcelain", "--untracked-files=no", "--", "*.go", "*.lua", "*.sql") != "" {
				head += "+"
			}
			return head
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(10, len(s.Value))]
			}
		}
	}
	return "unknown"
}

// Root is the folder of Floodgate's sources at or above the working folder; empty where there is none.
func Root() string {
	dir, err := os.Getwd()
	for err == nil {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			if strings.HasPrefix(string(text), "module floodgate\n") {
				return dir
			}
			return ""
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}

func redisVersion(ctx context.Context, o *redis.UniversalOptions) string {
	rdb := redis.NewUniversalClient(o)
	defer rdb.Close()
	return infoField(rdb.Info(ctx, "server").Val(), "redis_version")
}

// infoField reads one line of Redis's INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return v
		}
	}
	return "unknown"
}

func databaseVersion(ctx context.Context, cfg sql.Config) (version string) {
	version = "unknown"
	s, err := sql.Open(ctx, cfg)
	if err != nil {
		return version
	}
	defer s.Close()
	_ = s.DB().QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	return version
}

// Codes of requests that only an operator makes.
const (
	codeCreateTopic     = 17
	codeBrokerInfo      = 28
	codeDeleteGroup     = 207
	codeDeleteInBroker  = 215
	codeDeleteInNameSrv = 216
)

// ask sends one request to a broker or name server.
func ask(ctx context.Context, addr string, code int, fields map[string]string) (remoting.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	link := remoting.NewLink(addr)
	defer link.Close()
	reply, err := link.Call(ctx, remoting.Request{Code: code, Fields: fields})
	if err == nil && reply.Code != remoting.Success {
		err = fmt.Errorf("%s refused with code %d: %s", addr, reply.Code, reply.Remark)
	}
	return reply, err
}

// brokers are the masters of a topic.
func brokers(ctx context.Context, nameServers []string, topic string) ([]string, error) {
	reply, err := ask(ctx, nameServers[0], remoting.RouteOfTopic, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"})
	if err != nil {
		return nil, fmt.Errorf("cannot find the brokers of topic %s: %w", topic, err)
	}
	var route struct {
		BrokerDatas []struct{ BrokerAddrs map[string]string }
	}
	if err := json.Unmarshal(reply.Body, &route); err != nil {
		return nil, fmt.Errorf("unreadable route of topic %s: %w", topic, err)
	}
	var out []string
	for _, b := range route.BrokerDatas {
		out = append(out, b.BrokerAddrs["0"])
	}
	return out, nil
}

// brokerVersion waits a little for a broker that has just started.
func brokerVersion(ctx context.Context, cfg mq.Config) string {
	var addrs []string
	if err := eventually(ctx, 5*time.Second, "the broker is known", func() bool {
		var err error
		addrs, err = brokers(ctx, cfg.NameServers, cfg.Topic)
		return err == nil && len(addrs) > 0
	}); err != nil {
		return "unknown"
	}
	reply, err := ask(ctx, addrs[0], codeBrokerInfo, nil)
	if err != nil {
		return "unknown"
	}
	var info struct{ Table map[string]string }
	if json.Unmarshal(reply.Body, &info) != nil || info.Table["brokerVersionDesc"] == "" {
		return "unknown"
	}
	return info.Table["brokerVersionDesc"]
}

// loopback says that the host of host:port is this machine.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
