// Webhook is a notifier that posts each event as JSON, signed, and tries again
// when the receiver is away.
//
// Its settings stand in webhook.json in the folder of the plugin:
//
//	{"url": "https://example.org/hook", "secret": "…"}
//
// The header X-Roundhouse-Signature is "sha256=" and the hex HMAC-SHA256 of the
// body with the secret, as many receivers know it already.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"roundhouse/plugins/pb"
	"roundhouse/plugins/sdk"
)

type webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
	client http.Client
}

// Notify tries three times, with growing pauses, within the deadline of the call.
func (w *webhook) Notify(ctx context.Context, req *pb.NotifyRequest) error {
	body, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, []byte(w.Secret))
	mac.Write(body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))

	pause := 200 * time.Millisecond
	for try := 1; ; try++ {
		err = w.post(ctx, body, signature)
		if err == nil || try == 3 {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 4
		case <-ctx.Done():
			return fmt.Errorf("%w; last try: %w", ctx.Err(), err)
		}
	}
}

func (w *webhook) post(ctx context.Context, body []byte, signature string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Roundhouse-Signature", signature)
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return fmt.Errorf("the receiver answered %s", res.Status)
	}
	return nil
}

func main() {
	text, err := os.ReadFile("webhook.json")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var w webhook
	if err := json.Unmarshal(text, &w); err != nil {
		fmt.Fprintf(os.Stderr, "webhook.json: %v\n", err)
		os.Exit(1)
	}
	sdk.ServeNotifier(&w)
}
