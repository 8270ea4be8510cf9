package lora

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
)

// config is what adapter_config.json says that matters here.
type config struct {
	Type     string             `json:"peft_type"`
	Base     string             `json:"base_model_name_or_path"`
	Rank     int                `json:"r"`
	Alpha    *float64           `json:"lora_alpha"`
	Stable   bool               `json:"use_rslora"`
	Bias     string             `json:"bias"`
	LoRABias bool               `json:"lora_bias"`
	DoRA     bool               `json:"use_dora"`
	FanInOut bool               `json:"fan_in_fan_out"`
	Save     []string           `json:"modules_to_save"`
	Init     any                `json:"init_lora_weights"`
	Ranks    map[string]int     `json:"rank_pattern"`
	Alphas   map[string]float64 `json:"alpha_pattern"`

	ranks  []pattern[int]
	alphas []pattern[float64]
}

// pattern is what modules whose names end in it have instead.
type pattern[T comparable] struct {
	re    *regexp.Regexp
	value T
}

// defaultAlpha is PEFT's lora_alpha where the file names none.
const defaultAlpha = 8

// maxRank bounds what a file may say; the room for ranks is the worker's to
// choose.
const maxRank = 4096

func (c *config) parse(data []byte) error {
	c.Rank, c.Bias, c.Init = 8, "none", true
	if err := json.Unmarshal(data, c); err != nil {
		return fmt.Errorf("%s: %w", configName, err)
	}
	err := c.check()
	if err == nil {
		err = plain(data)
	}
	if err == nil {
		c.ranks, err = patterns("rank_pattern", c.Ranks)
	}
	if err == nil {
		c.alphas, err = patterns("alpha_pattern", c.Alphas)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", configName, err)
	}
	return nil
}

// check refuses what changes an adapter's answers and is not computed here.
func (c *config) check() error {
	init, _ := c.Init.(string)
	switch {
	case !strings.EqualFold(c.Type, "LORA"):
		return fmt.Errorf("peft_type is %q; want LORA", c.Type)
	case c.DoRA:
		return fmt.Errorf("use_dora is true; DoRA is not supported, merge the adapter into the model and serve the result")
	case c.Bias != "none" && c.Bias != "" || c.LoRABias:
		return fmt.Errorf("bias is %q and lora_bias %t; adapters with biases are not supported", c.Bias, c.LoRABias)
	case len(c.Save) > 0:
		return fmt.Errorf("modules_to_save is %q; whole modules of an adapter's own are not supported, merge it into the model and serve the result", c.Save)
	case c.FanInOut:
		return fmt.Errorf("fan_in_fan_out is true; it is for models whose linears are stored the other way round, which are not served here")
	case changesBase(init):
		return fmt.Errorf("init_lora_weights is %q, whose training changed the model's own weights; save the adapter converted to plain LoRA", init)
	case c.Rank < 1 || c.Rank > maxRank:
		return fmt.Errorf("r is %d; want 1 to %d", c.Rank, maxRank)
	}
	return nil
}

// others are fields of PEFT's relatives of LoRA, which compute something else.
var others = []string{"use_qalora", "use_bdlora", "alora_invocation_tokens", "arrow_config", "kasa_config", "monteclora_config",
	"trainable_token_indices", "layer_replication"}

// plain refuses adapters of LoRA's relatives.
func plain(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for _, name := range others {
		switch v := string(fields[name]); v {
		case "", "null", "false", "[]", "{}":
		default:
			return fmt.Errorf("%s is %.80s; only plain LoRA is supported: merge the adapter into the model and serve the result", name, v)
		}
	}
	return nil
}

// changesBase reports whether an initialisation took something out of the model,
// which an adapter then does not fit as it is published.
func changesBase(init string) bool {
	for _, name := range []string{"pissa", "olora", "corda", "loftq", "lora_ga", "velora"} {
		if strings.HasPrefix(strings.ToLower(init), name) {
			return true
		}
	}
	return false
}

// of is the rank and the factor of a module.
func (c *config) of(module string) (rank int, factor float32, err error) {
	rank, alpha := c.Rank, float64(defaultAlpha)
	if c.Alpha != nil {
		alpha = *c.Alpha
	}
	if rank, err = pick(c.ranks, module, rank); err == nil {
		alpha, err = pick(c.alphas, module, alpha)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", configName, err)
	}
	if rank < 1 || rank > maxRank {
		return 0, 0, fmt.Errorf("%s: %s has rank %d; want 1 to %d", configName, module, rank, maxRank)
	}
	by := float64(rank)
	if c.Stable {
		by = math.Sqrt(by)
	}
	factor = float32(alpha / by)
	if f := float64(factor); math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, 0, fmt.Errorf("%s: lora_alpha is %v; want a number that float32 can hold", configName, alpha)
	}
	return rank, factor, nil
}

// maxPatterns bounds the patterns of a file.
const maxPatterns = 1024

// patterns compiles a field's patterns, which PEFT takes for the end of a name.
func patterns[T comparable](field string, from map[string]T) ([]pattern[T], error) {
	if len(from) > maxPatterns {
		return nil, fmt.Errorf("%s has %d patterns; at most %d are read", field, len(from), maxPatterns)
	}
	var list []pattern[T]
	for text, v := range from {
		re, err := regexp.Compile(`^(?:.*\.)?(?:` + text + `)$`)
		if err != nil {
			return nil, fmt.Errorf("%s: %.80q is no regular expression that is understood here", field, text)
		}
		list = append(list, pattern[T]{re, v})
	}
	return list, nil
}

// pick is the value of the pattern that fits a module's name, or else its own.
func pick[T comparable](list []pattern[T], module string, own T) (T, error) {
	found := false
	for _, p := range list {
		if !p.re.MatchString(module) {
			continue
		}
		if found && p.value != own {
			return own, fmt.Errorf("two patterns fit %s, with %v and %v", module, own, p.value)
		}
		own, found = p.value, true
	}
	return own, nil
}
