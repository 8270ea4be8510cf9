package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// caches lists where Hugging Face's tools keep what they downloaded.
func caches(getenv func(string) string) []string {
	if dir := getenv("HF_HUB_CACHE"); dir != "" {
		return []string{dir}
	}
	if dir := getenv("HF_HOME"); dir != "" {
		return []string{filepath.Join(dir, "hub")}
	}
	if home := getenv("HOME"); home != "" {
		return []string{filepath.Join(home, ".cache", "huggingface", "hub")}
	}
	return nil
}

// findModel resolves --model: a folder, a GGUF file, or a name in the local
// cache, there at a revision ("": main).
func findModel(name, revision string, caches []string) (string, error) {
	if revision == "" {
		revision = "main"
	}
	if st, err := os.Stat(name); err == nil {
		if !st.IsDir() && filepath.Ext(name) != ".gguf" {
			return "", fmt.Errorf("--model %s is a file; want the model's folder, or a file *.gguf", name)
		}
		return name, nil
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, ".") || strings.Count(name, "/") != 1 {
		return "", fmt.Errorf("--model %s: there is no such folder", name)
	}
	var searched []string
	for _, dir := range caches {
		repo := filepath.Join(dir, "models--"+strings.ReplaceAll(name, "/", "--"))
		searched = append(searched, repo)
		commit := revision // a branch or tag, or the commit itself
		if ref, err := os.ReadFile(filepath.Join(repo, "refs", filepath.Clean("/"+revision))); err == nil {
			commit = strings.TrimSpace(string(ref))
		}
		snapshot := filepath.Join(repo, "snapshots", filepath.Base(commit))
		if st, err := os.Stat(snapshot); err == nil && st.IsDir() {
			return snapshot, nil
		}
	}
	at := ""
	if revision != "main" {
		at = " --revision " + revision
	}
	return "", fmt.Errorf("--model %s is neither a folder nor in the local cache (searched %s); download it with: hf download %s%s", name, strings.Join(searched, ", "), name, at)
}
