package test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os/exec"
	"sync"
	"testing"

	"roundhouse/worker/workertest"
)

// hearers is a pool of two workers with a model that hears. %q is its folder.
const hearers = `
pool "hear" {
  driver  = "process"
  devices = "cpu"
  workers = 2
  task    = "transcribe"
  engine {
    model             = %q
    served_model_name = ["hearer"]
    args              = ["--dtype", "float32", "--weights-cache", "off", "--pace", "5ms"]
  }
}
`

// TestSpeechIsNotLost: while workers that write down speech are rotated, and while
// one is killed, every sound has its text.
func TestSpeechIsNotLost(t *testing.T) {
	folder := t.TempDir()
	if err := workertest.WriteHearing(folder, "../worker/model/testdata/whisper.json"); err != nil {
		t.Fatal(err)
	}
	s := start(t, fmt.Sprintf(hearers, folder))
	want := map[int]string{}
	for seed := range 3 {
		text, err := s.hear(seed)
		if err != nil {
			t.Fatal(err)
		}
		want[seed] = text
	}
	if want[0] == want[1] || want[1] == want[2] {
		t.Errorf("sounds have one text: %v", want)
	}
	keep := func(while func()) {
		stop, heard := make(chan struct{}), make(chan struct{}, 1)
		var wait sync.WaitGroup
		for i := range 6 {
			wait.Go(func() {
				for n := 0; ; n++ {
					if text, err := s.hear((i + n) % 3); err != nil || text != want[(i+n)%3] {
						t.Errorf("sound %d: %q (%v); want %q", (i+n)%3, text, err, want[(i+n)%3])
					}
					select {
					case heard <- struct{}{}:
					case <-stop:
						return
					default:
					}
				}
			})
		}
		<-heard
		while()
		<-heard // one that was sent before, one behind it
		<-heard
		close(stop)
		wait.Wait()
	}
	keep(func() {
		if out, err := exec.CommandContext(t.Context(), built.Path(t, "roundhouse"), "rotate", "hear", "--admin", s.Admin).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	keep(func() { s.kill(s.known()[0].ID) })
}

// hear sends the sound of a seed through the door.
func (s *system) hear(seed int) (string, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("model", "hearer") // a buffer takes all
	file, _ := form.CreateFormFile("file", "a.wav")
	_, _ = file.Write(workertest.Sing(1.3, seed))
	_ = form.Close()
	resp, err := http.Post(s.Door+"/v1/audio/transcriptions", form.FormDataContentType(), &body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	var a struct{ Text string }
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, data)
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a.Text, err
}
