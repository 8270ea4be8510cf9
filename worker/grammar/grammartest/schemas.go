package grammartest

import (
	"encoding/json"
	"fmt"
	"math/rand"
)

// written are schemas as people write them.
var written = []string{
	`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150}},"required":["name","age"]}`,
	`{"type":"object","properties":{"city":{"type":"string","minLength":2,"maxLength":12},"unit":{"enum":["C","F"]}},"required":["city"],"additionalProperties":false}`,
	`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":5}`,
	`{"$defs":{"node":{"type":"object","properties":{"v":{"type":"number"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"]}},"$ref":"#/$defs/node"}`,
	`{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}},"tag":{"type":"string"}},"required":["tag"]}`,
	`{"oneOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},{"type":"object","properties":{"kind":{"const":"b"},"y":{"type":"boolean"}},"required":["kind","y"]}]}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"null"}},"required":["b"]}]}`,
	`{"type":"object","additionalProperties":{"type":"integer"}}`,
	`{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"string"},"é\"":{"type":"boolean"}},"required":["a"],"additionalProperties":{"type":"null"}}`,
	`{"type":"object","required":["q"]}`,
	`{"type":"string","pattern":"^[A-Z]{3}-\\d{2,4}$"}`,
	`{"type":"string","pattern":"\"quoted\\\\\"|a\\tb"}`,
	`{"type":"string","pattern":"colou?r"}`,
	`{"type":"string","format":"date-time"}`, `{"type":"string","format":"uuid"}`, `{"type":"string","format":"ipv4"}`, `{"type":"string","format":"email"}`,
	`{"type":"number","minimum":-1.5,"maximum":2.25}`, `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `{"type":"number","minimum":0.001}`,
	`{"type":"integer","minimum":-105,"maximum":98}`, `{"type":"integer","exclusiveMinimum":99}`, `{"type":"integer","maximum":-7}`, `{"type":"number","minimum":0,"multipleOf":0.01}`,
	`{"type":"integer","minimum":5,"maximum":5}`, `{"minimum":3,"maximum":3.5}`, `{"type":"number","multipleOf":0.01}`, `{"multipleOf":1.0}`,
	`{"type":["string","null","integer"]}`, `{"type":"boolean"}`, `{"type":"null"}`, `{"enum":[1,"two",null,[3],{"four":4.5}]}`, `{"const":{"a":[1,2]}}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"},"minItems":1,"maxItems":4}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}`, `{"type":"array","items":false}`, `{"type":"array","maxItems":0}`,
	`{"type":"array","items":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string","maxLength":3}},"required":["p"]},"minItems":1},"minItems":1}`,
	`{"type":"string","nullable":true}`, `{"type":"string","minLength":3}`, `{"type":"string","maxLength":0}`, `true`, `{}`,
	`{"type":"object","properties":{"o":{"type":"object","properties":{}},"p":{"type":"object"}},"required":["o","p"]}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}}}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"],"anyOf":[{"properties":{"c":{"type":"integer"}},"required":["c"]},{"required":["a"]}]}`,
	`{"type":"array","items":{"type":"string","enum":["x","yy","zzz"]},"minItems":3,"maxItems":3}`,
}

// Count is how many schemas there are.
const Count = 500

// Schemas are those that people write, and drawn ones up to Count.
func Schemas() [][]byte {
	var all [][]byte
	for _, s := range written {
		all = append(all, []byte(s))
	}
	for seed := int64(0); len(all) < Count; seed++ {
		all = append(all, randomRoot(seed))
	}
	return all
}

// randomSchema draws a schema.
func randomSchema(r *rand.Rand, depth int) any {
	kinds := []string{"string", "integer", "number", "boolean", "null", "enum", "bounded", "ranged", "object", "object", "array", "anyOf", "ref"}
	kind := kinds[r.Intn(len(kinds))]
	if depth > 3 {
		kind = kinds[r.Intn(8)]
	}
	switch kind {
	case "enum":
		return map[string]any{"enum": []any{r.Intn(9), fmt.Sprint("v", r.Intn(99)), nil, "é\n\"q\""}[:1+r.Intn(4)]}
	case "bounded":
		n := r.Intn(6)
		return map[string]any{"type": "string", "minLength": n, "maxLength": n + r.Intn(8)}
	case "ranged":
		lo := r.Intn(4000) - 2000
		t := []string{"integer", "number"}[r.Intn(2)]
		return map[string]any{"type": t, "minimum": lo, "exclusiveMaximum": lo + 1 + r.Intn(1500)}
	case "object":
		props, required := map[string]any{}, []any{}
		for i := range r.Intn(5) {
			name := fmt.Sprint([]string{"a", "name", "x y", "ö", "id\""}[i], r.Intn(3))
			props[name] = randomSchema(r, depth+1)
			if r.Intn(2) == 0 {
				required = append(required, name)
			}
		}
		o := map[string]any{"type": "object", "properties": props, "required": required}
		switch r.Intn(4) {
		case 0:
			o["additionalProperties"] = false
		case 1:
			o["additionalProperties"] = randomSchema(r, depth+1)
		}
		return o
	case "array":
		n := r.Intn(3)
		a := map[string]any{"type": "array", "items": randomSchema(r, depth+1), "minItems": n}
		if r.Intn(2) == 0 {
			a["maxItems"] = n + r.Intn(4)
		}
		return a
	case "anyOf":
		return map[string]any{"anyOf": []any{randomSchema(r, depth+1), randomSchema(r, depth+1)}}
	case "ref":
		return map[string]any{"$ref": "#/$defs/shared"}
	}
	return map[string]any{"type": kind}
}

// randomRoot draws a schema with definitions that it may refer to.
func randomRoot(seed int64) []byte {
	r := rand.New(rand.NewSource(seed))
	shared := map[string]any{
		"type": "object", "required": []any{"n"},
		"properties": map[string]any{"n": map[string]any{"type": "integer"}, "more": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/shared"}, "maxItems": 2}},
	}
	b, err := json.Marshal(map[string]any{"$defs": map[string]any{"shared": shared}, "anyOf": []any{randomSchema(r, 0)}})
	if err != nil {
		panic(err)
	}
	return b
}
