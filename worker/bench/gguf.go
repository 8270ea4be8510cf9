package bench

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	"roundhouse/kernels/num"
)

// The types of a GGUF file's tensors that are written here.
const (
	ggmlF32  = 0
	ggmlQ40  = 2
	ggmlQ80  = 8
	ggmlBF16 = 30
)

// The types of its values.
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

const ggufAlign = 32

// WriteGGUF makes the same model as a GGUF file. Matrices
// are bfloat16, or with four bits Q4_0 and the embedding, which is the head as
// well, Q8_0.
func (s *Shape) WriteGGUF(path string, fourBits bool) error {
	all := s.tensors()
	return writeFile(path, func(w io.Writer) error {
		head := s.ggufHeader(all, fourBits)
		if _, err := w.Write(head); err != nil {
			return err
		}
		rows := 0 // of the tensor that is being written
		return s.each(all, s.turn, func(t *tensor, x []float32) error {
			if rows == 0 {
				rows = t.rows
			}
			b := t.encode(x, fourBits)
			rows--
			if rows == 0 { // the next begins at a multiple of ggufAlign
				b = append(b, make([]byte, -t.bytes(fourBits)&(ggufAlign-1))...)
			}
			_, err := w.Write(b)
			return err
		})
	})
}

// turn is which row of a tensor stands at row in the file. GGUF's llama turns
// neighbouring columns of a head by position, where the published weights turn
// the two halves.
func (s *Shape) turn(t *tensor, row int) int {
	if s.Family != "llama" || t.role != turned {
		return row
	}
	within := row % s.Dim
	return row - within + within%2*(s.Dim/2) + within/2
}

// kind is the type of a tensor in the file.
func (t *tensor) kind(fourBits bool) uint32 {
	switch {
	case t.role >= ones:
		return ggmlF32
	case !fourBits:
		return ggmlBF16
	case t.gguf == "token_embd.weight":
		return ggmlQ80
	}
	return ggmlQ40
}

// bytes is the size of a tensor in the file.
func (t *tensor) bytes(fourBits bool) int {
	n := t.rows * t.cols
	switch t.kind(fourBits) {
	case ggmlF32:
		return 4 * n
	case ggmlBF16:
		return 2 * n
	case ggmlQ80:
		return n / 32 * 34
	}
	return n / 32 * 18
}

// GGUFBytes is the size of the weights in such a file, all of which a token
// needs.
func (s *Shape) GGUFBytes(fourBits bool) (n int64) {
	for _, t := range s.tensors() {
		n += int64(t.bytes(fourBits))
	}
	return n
}

// encode is one row as the file has it.
func (t *tensor) encode(x []float32, fourBits bool) []byte {
	var b []byte
	switch t.kind(fourBits) {
	case ggmlF32:
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	case ggmlBF16:
		return bf16Bytes(x)
	case ggmlQ80:
		var q [32]int8
		for ; len(x) > 0; x = x[32:] {
			scale := num.Int8Row(q[:], x[:32])
			b = binary.LittleEndian.AppendUint16(b, num.F16(scale))
			for _, c := range q {
				b = append(b, byte(c))
			}
		}
	default:
		var q [32]uint8
		for ; len(x) > 0; x = x[32:] {
			b = binary.LittleEndian.AppendUint16(b, num.SymInt4(q[:], x[:32]))
			for k := range 16 {
				b = append(b, q[k]|q[k+16]<<4)
			}
		}
	}
	return b
}

// ggufText writes a string.
func ggufText(w *bytes.Buffer, text string) {
	w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	w.WriteString(text)
}

// ggufList says where each tensor lies.
func ggufList(all []tensor, fourBits bool) []byte {
	var list bytes.Buffer
	le := binary.LittleEndian
	at := 0
	for i := range all {
		t := &all[i]
		ggufText(&list, t.gguf)
		if t.role >= ones {
			list.Write(le.AppendUint32(nil, 1))
			list.Write(le.AppendUint64(nil, uint64(t.cols)))
		} else {
			list.Write(le.AppendUint32(nil, 2))
			list.Write(le.AppendUint64(le.AppendUint64(nil, uint64(t.cols)), uint64(t.rows)))
		}
		list.Write(le.AppendUint32(nil, t.kind(fourBits)))
		list.Write(le.AppendUint64(nil, uint64(at)))
		at += (t.bytes(fourBits) + ggufAlign - 1) &^ (ggufAlign - 1)
	}
	return list.Bytes()
}

// ggufHeader is everything before the data.
func (s *Shape) ggufHeader(all []tensor, fourBits bool) []byte {
	var values bytes.Buffer
	le, str := binary.LittleEndian, ggufText
	count := 0
	put := func(key string, kind uint32, raw []byte) {
		str(&values, key)
		values.Write(le.AppendUint32(nil, kind))
		values.Write(raw)
		count++
	}
	text := func(key, v string) {
		var b bytes.Buffer
		str(&b, v)
		put(key, ggufString, b.Bytes())
	}
	number := func(key string, v int) { put(s.Family+"."+key, ggufUint32, le.AppendUint32(nil, uint32(v))) }
	float := func(key string, v float32) {
		put(s.Family+"."+key, ggufFloat32, le.AppendUint32(nil, math.Float32bits(v)))
	}
	text("general.architecture", s.Family)
	text("tokenizer.ggml.model", "gpt2")
	text("tokenizer.ggml.pre", "qwen2")
	array := func(key string, kind uint32, n int, raw []byte) {
		put(key, ggufArray, append(le.AppendUint64(le.AppendUint32(nil, kind), uint64(n)), raw...))
	}
	var names bytes.Buffer
	for _, w := range s.words() {
		str(&names, w)
	}
	array("tokenizer.ggml.tokens", ggufString, s.Vocab, names.Bytes())
	array("tokenizer.ggml.token_type", ggufInt32, s.Vocab, bytes.Repeat([]byte{1, 0, 0, 0}, s.Vocab))
	names.Reset()
	for _, m := range merges {
		str(&names, m)
	}
	array("tokenizer.ggml.merges", ggufString, len(merges), names.Bytes())
	put("tokenizer.ggml.eos_token_id", ggufUint32, le.AppendUint32(nil, uint32(s.Vocab-1)))
	number("vocab_size", s.Vocab)
	number("block_count", s.Layers)
	number("context_length", positions)
	number("embedding_length", s.Hidden)
	number("feed_forward_length", s.Inner)
	number("attention.head_count", s.Heads)
	number("attention.head_count_kv", s.KVHeads)
	number("attention.key_length", s.Dim)
	number("attention.value_length", s.Dim)
	float("attention.layer_norm_rms_epsilon", 1e-6)
	float("rope.freq_base", float32(s.Theta))
	number("rope.dimension_count", s.Dim)

	head := []byte("GGUF")
	head = le.AppendUint32(head, 3)
	head = le.AppendUint64(head, uint64(len(all)))
	head = le.AppendUint64(head, uint64(count))
	head = append(append(head, values.Bytes()...), ggufList(all, fourBits)...)
	return append(head, make([]byte, -len(head)&(ggufAlign-1))...)
}
