package workertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"

	"roundhouse/worker/demo"
)

// seeingTemplate is the shape of the template that models which see come with.
const seeingTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// seeingProcessor keeps pictures to 16 by 16 up to 64 by 64 pixels.
const seeingProcessor = `{"image_processor_type":"Qwen2VLImageProcessor","patch_size":4,"temporal_patch_size":2,"merge_size":2,"min_pixels":256,"max_pixels":4096}`

// WriteSeeing is WriteFolder of a model that sees, with all that it takes to be
// shown pictures: tokens for them, a chat template, and its processor's settings.
func WriteSeeing(dir, golden string) error {
	data, err := fs.ReadFile(demo.FS, "tokenizer.json")
	if err != nil {
		return err
	}
	var words map[string]any
	if err := json.Unmarshal(data, &words); err != nil {
		return err
	}
	base := 0 // the first id that is free
	added := words["added_tokens"].([]any)
	for _, one := range added {
		base = max(base, int(one.(map[string]any)["id"].(float64))+1)
	}
	if err := WriteFolder(dir, golden, base+3); err != nil {
		return err
	}
	for i, name := range []string{"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"} {
		added = append(added, map[string]any{"id": base + i, "content": name, "special": true})
	}
	words["added_tokens"] = added
	if data, err = os.ReadFile(filepath.Join(dir, "config.json")); err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	config["image_token_id"], textOf(config)["max_position_embeddings"] = base+1, 1024
	for name, v := range map[string]any{"tokenizer.json": words, "config.json": config} {
		if data, err = json.Marshal(v); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(seeingTemplate), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "preprocessor_config.json"), []byte(seeingProcessor), 0o600)
}

// Draw is a small PNG: what it shows follows from the seed.
func Draw(width, height, seed int) ([]byte, error) {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, color.NRGBA{R: uint8(x * 17 * seed), G: uint8(y*29 + 60*seed), B: uint8((x*y + seed*90) % 251), A: 255})
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, img)
	return b.Bytes(), err
}
