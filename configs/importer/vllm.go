package importer

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// serve is what a `vllm serve` command line says.
type serve struct {
	model, quant, maxLen, key string
	served, rest              []string
	port, dp, tp, pp          int
}

// valued are the flags that a pool has attributes for, under the names that
// vLLM knows them by.
var valued = map[string]string{
	"--model": "model", "--served-model-name": "served", "--quantization": "quant", "-q": "quant",
	"--max-model-len": "max-len", "--port": "port", "--host": "drop", "--api-key": "key",
	"-dp": "dp", "--dp": "dp", "--data-parallel-size": "dp", "-tp": "tp", "--tensor-parallel-size": "tp", "--tp": "tp",
	"-pp": "pp", "--pipeline-parallel-size": "pp",
	"--data-parallel-rank": "drop", "--data-parallel-address": "drop", "--data-parallel-rpc-port": "drop",
	"--data-parallel-backend": "drop", "--data-parallel-size-local": "drop", "-dpl": "drop", "-dpa": "drop", "-dpp": "drop", "-dpb": "drop",
	"--data-parallel-start-rank": "drop", "--api-server-count": "drop", "-asc": "drop",
}

// dropped are flags without a value that have no meaning for one worker.
var dropped = []string{"--headless", "--data-parallel-hybrid-lb", "--data-parallel-external-lb"}

// parseServe reads what stands after `vllm serve`. Flags without an attribute
// stay as they are, in their order.
func parseServe(args []string) (serve, error) {
	s := serve{dp: 1, tp: 1, pp: 1}
	for i := 0; i < len(args); {
		flag, value, joined := strings.Cut(args[i], "=")
		name := flag
		if strings.HasPrefix(flag, "--") {
			name = strings.ReplaceAll(flag, "_", "-")
		}
		i++
		what, known := valued[name]
		if m := shortFlag.FindStringSubmatch(name); m != nil && !joined { // -tp4
			what, known, value, joined = valued[m[1]], true, m[2], true
		}
		switch {
		case slices.Contains(dropped, name):
			continue
		case !strings.HasPrefix(flag, "-"):
			if s.model == "" {
				s.model = args[i-1]
				continue
			}
			s.rest = append(s.rest, args[i-1])
			continue
		case !known:
			s.rest = append(s.rest, args[i-1])
			// The flag's values go with it, so that none is taken for the model.
			for ; !joined && i < len(args) && !isFlag(args[i]) && !flagless(name); i++ {
				s.rest = append(s.rest, args[i])
			}
			continue
		}
		values := []string{value}
		if !joined {
			start := i
			for i < len(args) && !isFlag(args[i]) && (what == "served" || i == start) {
				i++
			}
			values = args[start:i]
		}
		if len(values) == 0 {
			return s, fmt.Errorf("%s has no value", flag)
		}
		if err := s.set(what, name, values); err != nil {
			return s, err
		}
	}
	return s, nil
}

var shortFlag = regexp.MustCompile(`^(-tp|-dp|-pp)(\d+)$`)

// isFlag reports whether an argument begins a flag; "-1" is a number.
func isFlag(arg string) bool {
	_, err := strconv.ParseFloat(arg, 64)
	return strings.HasPrefix(arg, "-") && len(arg) > 1 && err != nil
}

// flagless are vLLM's switches: what follows them is not theirs.
func flagless(name string) bool {
	for _, prefix := range []string{"--enable-", "--disable-", "--no-", "--enforce-eager", "--trust-remote-code", "--return-", "--skip-", "--use-", "--calculate-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (s *serve) set(what, flag string, values []string) error {
	number := func(out *int) error {
		n, err := strconv.Atoi(values[0])
		if err != nil || n < 1 {
			return fmt.Errorf("%s %s: not a number above 0", flag, values[0])
		}
		*out = n
		return nil
	}
	switch what {
	case "model":
		s.model = values[0]
	case "served":
		s.served = append([]string{}, values...)
	case "quant":
		s.quant = values[0]
	case "max-len":
		n, err := tokenCount(values[0])
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		s.maxLen = n
	case "key":
		s.key = values[0]
	case "port":
		return number(&s.port)
	case "dp":
		return number(&s.dp)
	case "tp":
		return number(&s.tp)
	case "pp":
		return number(&s.pp)
	}
	return nil
}

// tokenCount reads vLLM's "32768", "32k" (thousands) and "32K" (of 1024).
func tokenCount(s string) (string, error) {
	factor, digits := 1, s
	for suffix, f := range map[string]int{"k": 1000, "K": 1024, "m": 1_000_000, "M": 1 << 20} {
		if d, ok := strings.CutSuffix(s, suffix); ok {
			factor, digits = f, d
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return "", fmt.Errorf("%q is not a number of tokens", s)
	}
	return strconv.Itoa(n * factor), nil
}

// findServe looks for `vllm serve`, or its module's name, among the words of
// a command, which may be wrapped in a shell. before is what a shell ran
// first.
func findServe(words []string) (args []string, before string, ok bool) {
	for i, w := range words {
		if strings.ContainsAny(w, " \n") { // bash -c "… vllm serve …"
			inner, err := split(w)
			if err != nil {
				continue
			}
			if args, b, ok := findServe(inner); ok {
				return args, b, true
			}
		}
		tool := w == "vllm" || strings.HasSuffix(w, "/vllm")
		if tool && i+1 < len(words) && words[i+1] == "serve" {
			return untilShell(words[i+2:]), strings.Join(words[:i], " "), true
		}
		if w == "vllm.entrypoints.openai.api_server" || w == "vllm.entrypoints.cli.main" {
			return untilShell(words[i+1:]), strings.Join(words[:i], " "), true
		}
	}
	return nil, "", false
}

// untilShell cuts what a shell would do after the command.
func untilShell(words []string) []string {
	for i, w := range words {
		if w == "&&" || w == "||" || w == ";" || w == "|" || w == "&" || w == ">" || w == ">>" || strings.HasPrefix(w, "2>") {
			return words[:i]
		}
	}
	return words
}

// split cuts a line into words as a POSIX shell would, without running
// anything: quotes and backslashes count, $VARIABLES stay as they are.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	quoteChar := rune(0)
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			if r != '\n' {
				word.WriteRune(r)
			}
			escaped = false
		case r == '\\' && quoteChar != '\'':
			escaped, inWord = true, inWord || quoteChar != 0
		case quoteChar != 0:
			if r == quoteChar {
				quoteChar = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quoteChar, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord || word.Len() > 0 {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quoteChar != 0 {
		return nil, fmt.Errorf("a %c is not closed in %q", quoteChar, line)
	}
	if inWord || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, nil
}

// command plans for a `vllm serve` command line.
func (p *plan) command(args []string, o Options) error {
	if len(args) == 1 {
		words, err := split(args[0])
		if err != nil {
			return err
		}
		args = words
	}
	environment := map[string]string{}
	for len(args) > 0 && assignment.MatchString(args[0]) { // NAME=value vllm serve …
		name, value, _ := strings.Cut(args[0], "=")
		environment[name] = value
		args = args[1:]
	}
	words, _, ok := findServe(args)
	if !ok {
		return errors.New("that is no `vllm serve …` command line")
	}
	s, err := parseServe(words)
	if err != nil {
		return err
	}
	p.listen = fmt.Sprintf(":%d", orPort(s.port))
	one := pool{name: "vllm", driver: "process", count: s.dp, served: servedNames(s), model: s.model, quant: s.quant, maxLen: s.maxLen,
		args: s.rest, environment: p.steering(environment), gpus: s.tp * s.pp}
	if o.Image != "" {
		one.driver, one.image = "docker", o.Image
		p.parallel(&one, s)
	} else {
		one.name = "chat"
		if s.tp*s.pp > 1 {
			return fmt.Errorf("-tp %d -pp %d: our own engine takes one GPU a worker; --image IMAGE keeps vLLM in containers", s.tp, s.pp)
		}
		one.gpus = 0
		p.note("Our own engine serves the model; it takes vLLM's flags. `roundhouse import --image IMAGE` keeps vLLM, in containers.")
	}
	if s.dp > 1 {
		p.note("--data-parallel-size %d has become %d workers: each takes its turn alone, and one that fails takes no other with it.", s.dp, s.dp)
	}
	p.client(s.key)
	p.pools = append(p.pools, one)
	return nil
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func orPort(port int) int {
	if port == 0 {
		return 8000
	}
	return port
}

// servedNames is what clients ask for: without a name of its own, the model
// goes by its path.
func servedNames(s serve) []string {
	if len(s.served) == 0 && s.model != "" {
		return []string{s.model}
	}
	return s.served
}

// parallel keeps tensor and pipeline parallelism, which stay inside a worker.
func (p *plan) parallel(one *pool, s serve) {
	if s.tp > 1 {
		one.args = append(one.args, "--tensor-parallel-size", strconv.Itoa(s.tp))
	}
	if s.pp > 1 {
		one.args = append(one.args, "--pipeline-parallel-size", strconv.Itoa(s.pp))
	}
}

// client lets the engine's key in at the door.
func (p *plan) client(key string) {
	if key == "" || slices.Contains(p.keys, key) {
		return
	}
	p.keys = append(p.keys, key)
	p.note("--api-key stands at the door now, as its SHA-256; clients keep their key. The workers have none, and listen where the door alone reaches them.")
}

// deviceVariables name devices by their number in the order in which a driver
// finds them, which changes with a reboot or a card more.
var deviceVariables = []string{"ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}

// steering takes out of an environment what the supervisor sets itself.
func (p *plan) steering(environment map[string]string) map[string]string {
	for _, name := range deviceVariables {
		if value, ok := environment[name]; ok {
			delete(environment, name)
			p.note("%s=%s names a device by its number, which is not stable; each worker gets one free device instead. To choose, write gpus = [\"0000:18:00.0\"] into its block; `roundhouse doctor` lists the addresses.", name, value)
		}
	}
	for _, name := range []string{"PWD", "PATH", "HOME"} {
		delete(environment, name)
	}
	return environment
}
