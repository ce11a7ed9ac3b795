package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// setting is one key of the configuration.
type setting struct {
	key, fallback, help string
	secret              bool
	value               reflect.Value
}

// env is the variable that sets the key.
func (s setting) env() string {
	return "FLOODGATE_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// settings lists every key of the configuration in the order of the struct.
func settings(c *Config) []setting {
	var out []setting
	var walk func(v reflect.Value, prefix string)
	walk = func(v reflect.Value, prefix string) {
		for i := range v.NumField() {
			f, key := v.Type().Field(i), v.Type().Field(i).Tag.Get("config")
			if key == "" {
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(v.Field(i), prefix+key+".")
				continue
			}
			out = append(out, setting{prefix + key, f.Tag.Get("default"), f.Tag.Get("help"), f.Tag.Get("secret") == "true", v.Field(i)})
		}
	}
	walk(reflect.ValueOf(c).Elem(), "")
	return out
}

// set parses text into the field; where names the source for the error.
func (s setting) set(text, where string) error {
	wrong := func(want string) error {
		shown := strconv.Quote(text)
		if s.secret {
			shown = "the value"
		}
		return usagef("%s: %s is not %s", where, shown, want)
	}
	switch p := s.value.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*p = append(*p, part)
			}
		}
	case *bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return wrong("true or false")
		}
		*p = v
	case *time.Duration:
		v, err := time.ParseDuration(text)
		if err != nil {
			return wrong(`a duration like "200ms", "5s" or "15m"`)
		}
		*p = v
	case *int:
		v, err := strconv.Atoi(text)
		if err != nil {
			return wrong("a whole number")
		}
		*p = v
	case *int64:
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return wrong("a whole number")
		}
		*p = v
	case *float64:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return wrong("a number")
		}
		*p = v
	default:
		panic("config: field type of " + s.key)
	}
	return nil
}

// reference explains every key as Markdown.
func reference() string {
	var c Config
	var b strings.Builder
	b.WriteString("# Configuration\n\nLater wins: default, the YAML file (`--config`), the environment, `--set key=value`. Lists are joined with commas in the environment.\n\n" +
		"| key | environment | default | meaning |\n| --- | --- | --- | --- |\n")
	for _, s := range settings(&c) {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", s.key, s.env(), code(s.fallback), strings.ReplaceAll(s.help, "|", "\\|"))
	}
	return b.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// show is a value of the configuration as text, without secrets.
func (s setting) show() string {
	switch v := s.value.Interface().(type) {
	case []string:
		return fmt.Sprint(v)
	case string:
		if s.secret && v != "" {
			return "(set)"
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}
