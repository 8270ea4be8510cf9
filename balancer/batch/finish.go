package batch

import (
	"encoding/json"
	"os"
)

// finish ends a batch whose lines are answered, or will not be.
func (j *job) finish() error {
	left := j.counts.Total - j.counts.Completed - j.counts.Failed
	status := completed
	switch {
	case j.over():
		status = cancelled
	case left > 0:
		status = expired
	}
	if status == completed {
		if _, err := j.s.store.update(j.b.ID, func(b *storedBatch) error {
			b.Status, b.FinalizingAt, b.Counts = finalizing, known(j.s.now().Unix()), j.counts
			return nil
		}); err != nil {
			return err
		}
	}
	if status == expired {
		if err := j.tellExpired(); err != nil {
			return err
		}
	}
	output, err := j.keep(j.b.Output, "output")
	if err != nil {
		return err
	}
	failures, err := j.keep(j.b.Failures, "error")
	if err != nil {
		return err
	}
	now := known(j.s.now().Unix())
	_, err = j.s.store.update(j.b.ID, func(b *storedBatch) error {
		b.Status, b.Counts, b.OutputFileID, b.ErrorFileID = status, j.counts, output, failures
		switch status {
		case completed:
			b.CompletedAt = now
		case expired:
			b.ExpiredAt = now
		case cancelled:
			b.CancelledAt = now
		}
		return nil
	})
	j.s.ended.Delete(j.b.ID)
	j.s.log.Info("a batch has ended", "batch", j.b.ID, "status", status, "completed", j.counts.Completed, "failed", j.counts.Failed)
	return err
}

// tellExpired writes an error for every line that was not answered in time.
func (j *job) tellExpired() error {
	f, err := openResults(j.s.store.content(j.b.Failures))
	if err != nil {
		return err
	}
	defer f.file.Close()
	return j.s.each(j.b.InputFileID, func(_ int, line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil || j.output.done[r.CustomID] || f.done[r.CustomID] {
			return nil
		}
		j.counts.Failed++
		return f.add(result{ID: newID("batch_req_"), CustomID: r.CustomID,
			Error: &resultsFault{"batch_expired", "This request could not be executed before the completion window expired."}})
	})
}

// keep makes a file of answers one that its owner can read; nil: it has none.
func (j *job) keep(id, what string) (*string, error) {
	info, err := os.Stat(j.s.store.content(id))
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, os.Remove(j.s.store.content(id))
	}
	now := j.s.now().Unix()
	f := storedFile{Owner: j.b.Owner, File: File{ID: id, Object: "file", Bytes: info.Size(), CreatedAt: now, ExpiresAt: known(now + j.b.KeepFor),
		Filename: j.b.ID + "_" + what + ".jsonl", Purpose: "batch_output", Status: "processed"}}
	return &id, j.s.store.locked(func() error { return write(j.s.store.meta(id), f) })
}
