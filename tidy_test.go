package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// layers are who may import whom inside the project: a package may import those named here and nothing else of ours.
var layers = map[string][]string{
	"sale":             {},
	"crashpoint":       {},
	"web":              {},
	"web/browsertest":  {},
	"model":            {},
	"identity":         {"sale"},
	"lua":              {"sale"},
	"sql":              {"sale"},
	"mq":               {"sale", "mq/remoting"},
	"mq/remoting":      {},
	"edge":             {"sale", "crashpoint", "identity", "lua", "mq"},
	"worker":           {"sale", "crashpoint", "identity", "lua", "mq", "sql"},
	"notifier":         {"sale", "identity", "lua"},
	"console":          {"sale", "identity", "lua", "mq", "sql"},
	"deploy/stacktest": {"mq/remoting"},
	"deploy/rocketmq":  {},
	"e2e":              {"sale", "identity", "deploy/stacktest", "web/browsertest"},
}

// goFiles parses every Go file of the project.
func goFiles(t *testing.T, visit func(path string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "data" || d.Name() == "bin") {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(path), set, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func dir(path string) string { return filepath.ToSlash(filepath.Dir(path)) }

func TestTidyImports(t *testing.T) {
	goFiles(t, func(path string, _ *token.FileSet, f *ast.File) {
		from := dir(path)
		if from == "." || strings.HasPrefix(from, "bench") {
			return // main and the benches wire everything
		}
		allowed, known := layers[from]
		if !known {
			t.Errorf("%s: package %s has no place in the layers", path, from)
		}
		if strings.HasSuffix(path, "_test.go") {
			allowed = append(slices.Clone(allowed), "deploy/stacktest", "mq", "sql", "lua", "identity", "sale", from)
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			ours, ok := strings.CutPrefix(name, "floodgate/")
			if ok && !slices.Contains(allowed, ours) && !(strings.HasSuffix(path, "_test.go") && strings.HasPrefix(ours, from)) {
				t.Errorf("%s imports %s", path, ours)
			}
			if from == "sale" && strings.Contains(strings.Split(name, "/")[0], ".") {
				t.Errorf("%s imports %s: sale uses the standard library alone", path, name)
			}
		}
	})
}

// banned calls, by selector, with where they are allowed.
func TestTidyBannedCalls(t *testing.T) {
	goFiles(t, func(path string, set *token.FileSet, f *ast.File) {
		test := strings.HasSuffix(path, "_test.go")
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := s.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch name := pkg.Name + "." + s.Sel.Name; {
			case test && name == "time.Sleep":
				t.Errorf("%s: %s: wait for a signal, or poll with a deadline", set.Position(n.Pos()), name)
			case !test && path != "main.go" && (name == "os.Exit" || strings.HasPrefix(name, "log.Fatal")):
				t.Errorf("%s: %s outside main", set.Position(n.Pos()), name)
			case test && (s.Sel.Name == "Skip" || s.Sel.Name == "Skipf" || s.Sel.Name == "SkipNow") && pkg.Name == "t":
				t.Errorf("%s: a test never passes by skipping", set.Position(n.Pos()))
			}
			return true
		})
	})
}

func TestTidyNamesAndSizes(t *testing.T) {
	goFiles(t, func(path string, set *token.FileSet, f *ast.File) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "models", "base"}, f.Name.Name) {
			t.Errorf("%s: package %s says nothing", path, f.Name.Name)
		}
		if n := set.File(f.Pos()).LineCount(); n > 300 {
			t.Errorf("%s has %d lines, want at most 300", path, n)
		}
	})
}

// The story of a process stands first in its file.
func TestTidyStories(t *testing.T) {
	stories := map[string]string{"edge/buy.go": "buy", "worker/place.go": "place", "notifier/hub.go": "deliver"}
	seen := 0
	goFiles(t, func(path string, _ *token.FileSet, f *ast.File) {
		story, ok := stories[path]
		if !ok {
			return
		}
		seen++
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if fn.Name.Name != story {
					t.Errorf("%s begins with %s, want the story %s", path, fn.Name.Name, story)
				}
				return
			}
		}
	})
	if seen != len(stories) {
		t.Errorf("%d story files, want %d", seen, len(stories))
	}
}

// Every script says what it takes, beside the method that calls it.
func TestTidyScripts(t *testing.T) {
	scripts, _ := filepath.Glob("lua/*.lua")
	if len(scripts) < 15 {
		t.Fatalf("%d scripts", len(scripts))
	}
	argv := regexp.MustCompile(`ARGV\[(\d+)\]`)
	for _, s := range scripts {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(s) == "prelude.lua" {
			continue
		}
		if _, err := os.Stat(strings.TrimSuffix(s, ".lua") + ".go"); err != nil && !strings.Contains(s, "rebuild") {
			t.Errorf("%s has no method beside it", s)
		}
		header, _, _ := bytes.Cut(text, []byte("\nlocal "))
		for _, want := range []string{"-- KEYS ", "-- ARGV ", "Reply"} {
			if !bytes.Contains(header, []byte(want)) {
				t.Errorf("%s: its header lacks %q", s, want)
			}
		}
		line := regexp.MustCompile(`(?m)^-- ARGV (.*)$`).FindSubmatch(header)
		if line == nil {
			continue
		}
		named := len(strings.Fields(string(line[1])))
		for _, m := range argv.FindAllSubmatch(text, -1) {
			if n, _ := strconv.Atoi(string(m[1])); n > named {
				t.Errorf("%s uses ARGV[%d], its header names %d", s, n, named)
			}
		}
	}
}

// Commands that the documents tell a person to run exist.
func TestTidyDocumentedCommands(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	docs, _ := filepath.Glob("docs/*.md")
	for _, doc := range append(docs, "README.md", "ARCHITECTURE.md", "bench/README.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)(?:^|\x60)make ([a-z][a-z-]+)`).FindAllSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
				t.Errorf("%s tells to run make %s, which does not exist", doc, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?:^|[\x60\n/])floodgate ((?:[a-z-]+ ?)+)`).FindAllSubmatch(text, -1) {
			words := strings.Fields(string(m[1]))
			c, _, err := newRoot().Find(words)
			if err != nil || c == newRoot() || c.Name() == "floodgate" {
				t.Errorf("%s tells to run floodgate %s, which does not exist", doc, strings.Join(words, " "))
			}
		}
	}
}

// The configuration's reference is what the binary prints.
func TestTidyReferenceIsFresh(t *testing.T) {
	text, err := os.ReadFile("docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != reference() {
		t.Error("docs/configuration.md is stale: bin/floodgate config reference > docs/configuration.md")
	}
}

// Every command says what it is for.
func TestTidyCommandsAreExplained(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s has no short text", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
}
