package test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A rule bans an import below a folder, with the reason.
type rule struct {
	under  string   // the folder whose files must not
	bans   string   // import this, or anything below it
	except []string // folders, or what may be imported after all
	why    string
}

var rules = []rule{
	{"balancer", "roundhouse/worker", []string{"roundhouse/worker/api", "roundhouse/worker/device"}, "a door must not link an engine"},
	{"balancer", "roundhouse/kernels", nil, "a door must not link kernels"},
	{"balancer", "roundhouse/supervisor", nil, "the door serves on while the supervisor is away"},
	{"supervisor", "roundhouse/worker", []string{"roundhouse/worker/api", "roundhouse/worker/device"}, "a supervisor starts engines, it is none"},
	{"supervisor", "roundhouse/kernels", nil, "a supervisor must not link kernels"},
	{"supervisor", "roundhouse/balancer", []string{"roundhouse/balancer/control"}, "the door is a process of its own, reached by its private socket"},
	{"kernels", "roundhouse", []string{"roundhouse/kernels"}, "kernels know tensors and nothing of ours"},
	{"plugins/sdk", "roundhouse", []string{"roundhouse/plugins"}, "a plugin is built outside this tree"},
	{"measure", "roundhouse", []string{"roundhouse/measure"}, "a client of any service; it knows the door by HTTP alone"},
	{"live", "roundhouse", []string{"roundhouse/live", "roundhouse/balancer/control", "roundhouse/configs", "roundhouse/measure/verdict"}, "doors and supervisors show themselves by it; it knows neither"},
	{"live/history", "roundhouse", nil, "figures over time, whatever they are of"},
	{"kube", "roundhouse", []string{"roundhouse/kube"}, "a client of any cluster; it knows nothing of doors"},
	{"web", "roundhouse", nil, "the console's files, which every admin address serves"},
	{"configs", "roundhouse", []string{"roundhouse/configs"}, "everyone reads the configuration; it reads nobody"},
	{"worker/api", "roundhouse", nil, "a leaf, so that door and supervisor may import it"},
	{"worker/device", "roundhouse", nil, "a leaf, so that the supervisor may import it"},
	{"worker/media", "roundhouse", []string{"roundhouse/worker/media"}, "from a file to features; towers and engines are others' work"},
	{"worker/kv", "roundhouse", nil, "the page pool is pure: ids and groups only"},
	{"worker/tokenizer", "roundhouse", []string{"roundhouse/worker/tokenizer"}, "text to ids needs no engine"},
	{"worker/template", "roundhouse", []string{"roundhouse/worker/template", "roundhouse/worker/tokenizer"}, "a chat template needs no engine; it knows which text is to be encoded plainly"},
	{".", "github.com/valyala/fasthttp", []string{"balancer"}, "only the door speaks fasthttp; its traps stay in one place"},
	{".", "github.com/docker/docker", []string{"supervisor", "compose/guard", "test/campaign"}, "the Docker client stays behind the drivers' interface; the guard reads by the engine's own types"},
	{".", "github.com/hashicorp/hcl", []string{"configs"}, "one place knows the file's language"},
	{".", "unsafe", []string{"kernels", "worker/weights"}, "only kernels and the weight readers look at raw memory"},
	{".", "C", nil, "cgo is off: one static binary, built anywhere"},
}

// below reports whether path is prefix or lies below it.
func below(path, prefix string) bool {
	return prefix == "." || path == prefix || strings.HasPrefix(path, prefix+"/")
}

func (r rule) broken(dir, imported string) bool {
	if !below(dir, r.under) || !below(imported, r.bans) {
		return false
	}
	for _, e := range r.except {
		if below(dir, e) || below(imported, e) {
			return false
		}
	}
	return true
}

// file is one Go file of the repository.
type file struct {
	path string // from the root
	text []byte
	ast  *ast.File
	set  *token.FileSet
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// goFiles parses every Go file that git tracks or would track.
func goFiles(t *testing.T) []file {
	t.Helper()
	out, err := exec.Command("git", "-C", "..", "ls-files", "-co", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []file
	for _, path := range strings.Fields(string(out)) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			continue // deleted, not yet committed
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if ast.IsGenerated(tree) {
			continue
		}
		files = append(files, file{path, text, tree, set})
	}
	if len(files) < 50 {
		t.Fatalf("only %d Go files found: is this a git checkout?", len(files))
	}
	return files
}

func TestRulesOfDependence(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, i := range f.ast.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			for _, r := range rules {
				if f.test() && r.bans != "roundhouse/supervisor" && !strings.Contains(r.bans, ".") {
					continue // a test may look at what it compares with
				}
				if r.broken(filepath.ToSlash(filepath.Dir(f.path)), path) {
					t.Errorf("%s imports %s: %s", f.set.Position(i.Pos()), path, r.why)
				}
			}
		}
	}
}

// A file is one noun and a function is seen whole. The limits are for
// programs; tables of tests and generated files may be longer.
func TestRulesOfSize(t *testing.T) {
	const fileLines, funcLines = 500, 70
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		if n := bytes.Count(f.text, []byte("\n")); n > fileLines {
			t.Errorf("%s has %d lines; a file has at most %d: is it one noun?", f.path, n, fileLines)
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			from, to := f.set.Position(fn.Pos()).Line, f.set.Position(fn.End()).Line
			if to-from+1 > funcLines {
				t.Errorf("%s:%d: %s has %d lines; a function has at most %d", f.path, from, fn.Name.Name, to-from+1, funcLines)
			}
		}
	}
}

// A type is seen whole too: what a function may not have in lines, it must not
// have in fields of its receiver. Fields with a tag mirror somebody's document,
// whose length is not ours to choose. Methods in many files are a noun with many
// verbs, which is well as long as few of the files meet in the same fields.
func TestRulesOfTypes(t *testing.T) {
	const mostFields, mostFiles, mostPairs = 30, 8, 100
	larger := map[string]int{"supervisor.Supervisor": 200} // pairs of a field and a file that names it
	types := map[string]*shape{}
	files := goFiles(t)
	for _, f := range files {
		f.structs(types)
	}
	for _, f := range files {
		f.methods(types)
	}
	for name, s := range types {
		if s.untagged > mostFields {
			t.Errorf("%s has %d fields without a tag; a struct has at most %d: split it into named parts", name, s.untagged, mostFields)
		}
		if limit := max(mostPairs, larger[name]); len(s.files) > mostFiles && len(s.pairs) > limit {
			t.Errorf("the methods of %s are in %d files, which name its fields in %d pairs of a field and a file; more than %d files may have %d",
				name, len(s.files), len(s.pairs), mostFiles, limit)
		}
	}
	for name, limit := range larger {
		if s := types[name]; s == nil || len(s.pairs) <= mostPairs || len(s.pairs) < limit-5 {
			t.Errorf("%s has fewer pairs than %d by now: say so", name, limit)
		}
	}
}

// shape is what of a type shows how much of it must be read at once.
type shape struct {
	untagged int
	fields   map[string]bool
	files    map[string]bool    // with methods
	pairs    map[[2]string]bool // of a field and a file whose methods name it
}

// structs enters the types of a program's file.
func (f file) structs(types map[string]*shape) {
	if f.test() {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		ts, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		s := &shape{fields: map[string]bool{}, files: map[string]bool{}, pairs: map[[2]string]bool{}}
		if st, ok := ts.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				for _, name := range field.Names {
					s.fields[name.Name] = true
				}
				if field.Tag == nil {
					s.untagged += max(1, len(field.Names))
				}
			}
		}
		types[filepath.ToSlash(filepath.Dir(f.path))+"."+ts.Name.Name] = s
		return false
	})
}

// methods enters which fields the methods in a program's file name.
func (f file) methods(types map[string]*shape) {
	if f.test() {
		return
	}
	for _, d := range f.ast.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 {
			continue
		}
		s := types[filepath.ToSlash(filepath.Dir(f.path))+"."+receiver(fn)]
		if s == nil {
			continue
		}
		s.files[f.path] = true
		ast.Inspect(fn, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && s.fields[sel.Sel.Name] {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == fn.Recv.List[0].Names[0].Name {
					s.pairs[[2]string{sel.Sel.Name, f.path}] = true
				}
			}
			return true
		})
	}
}

// receiver is the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	e := fn.Recv.List[0].Type
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if g, ok := e.(*ast.IndexExpr); ok {
		e = g.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// Every package says once what it is, and every exported name what it is for.
func TestRulesOfWords(t *testing.T) {
	docs, packages := map[string]int{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		dir := filepath.Dir(f.path)
		packages[dir] = true
		if f.ast.Doc != nil {
			docs[dir]++
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.IsExported() && fn.Doc == nil && f.ast.Name.Name != "main" {
				t.Errorf("%s: %s has no comment", f.set.Position(fn.Pos()), fn.Name.Name)
			}
			if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				for _, s := range gen.Specs {
					ts := s.(*ast.TypeSpec)
					if ts.Name.IsExported() && gen.Doc == nil && ts.Doc == nil && ts.Comment == nil {
						t.Errorf("%s: type %s has no comment", f.set.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
	for dir := range packages {
		if docs[dir] != 1 {
			t.Errorf("%s has %d package comments; want one", dir, docs[dir])
		}
	}
}

// What tests must not do, and what no file may promise.
func TestRulesOfHabit(t *testing.T) {
	promise := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	for _, f := range goFiles(t) {
		if f.path == "test/rules_test.go" {
			continue
		}
		if loc := promise.FindIndex(f.text); loc != nil {
			t.Errorf("%s: a promise in the tree; keep it or remove what it promises: %s", f.path, f.text[loc[0]:min(loc[0]+60, len(f.text))])
		}
		if bytes.Contains(f.text, []byte("says whether")) {
			t.Errorf("%s: a function reports whether, as Go's own do", f.path)
		}
		if f.test() && bytes.Contains(f.text, []byte("time.Sleep(")) && !bytes.Contains(f.text, []byte("synctest")) {
			t.Errorf("%s sleeps; wait for what is to happen, or use synctest", f.path)
		}
		if !f.test() && f.ast.Name.Name != "main" && !below(f.path, "cmd") && regexp.MustCompile(`\bos\.(Getenv|LookupEnv|Environ)\b`).Match(f.text) {
			t.Errorf("%s reads the environment; a program's main reads it and passes it in", f.path)
		}
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)^replace`).Match(mod) {
		t.Error("go.mod replaces a module; importers would not get it")
	}
}

// Links in the documentation lead somewhere.
func TestRulesOfLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "build" || d.Name() == "node_modules") {
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), string(m[1]))); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
