package gguf

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Content is a tensor to be written: its bytes as its type has them.
type Content struct {
	Name  string
	Type  Type
	Shape []int // outermost first
	Data  []byte
}

// Encode writes a file of version 3: the values in the order of their keys,
// then the tensors. It is how tests make files.
func Encode(values map[string]Value, tensors []Content) []byte {
	le := binary.LittleEndian
	align := defaultAlign
	if n, ok := values["general.alignment"].(uint32); ok {
		align = int(n)
	}
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b = appendText(b, key)
		b = appendValue(b, values[key])
	}
	at := int64(0)
	for _, t := range tensors {
		b = appendText(b, t.Name)
		b = le.AppendUint32(b, uint32(len(t.Shape)))
		for _, d := range slices.Backward(t.Shape) {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, uint32(t.Type))
		b = le.AppendUint64(b, uint64(at))
		at = pad(at+int64(len(t.Data)), int64(align))
	}
	fill := func() { b = append(b, make([]byte, pad(int64(len(b)), int64(align))-int64(len(b)))...) }
	fill()
	for _, t := range tensors {
		b = append(b, t.Data...)
		fill()
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue writes the type of a value and the value.
func appendValue(b []byte, v Value) []byte {
	le := binary.LittleEndian
	list := func(kind uint32, n int) []byte {
		b = le.AppendUint32(le.AppendUint32(b, typeArray), kind)
		return le.AppendUint64(b, uint64(n))
	}
	switch v := v.(type) {
	case string:
		return appendText(le.AppendUint32(b, typeString), v)
	case []string:
		b = list(typeString, len(v))
		for _, s := range v {
			b = appendText(b, s)
		}
		return b
	case []int32:
		return appendFixed(list(typeInt32, len(v)), v)
	case []float32:
		return appendFixed(list(typeFloat32, len(v)), v)
	case bool:
		return appendFixed(le.AppendUint32(b, typeBool), v)
	case uint16:
		return appendFixed(le.AppendUint32(b, typeUint16), v)
	case uint32:
		return appendFixed(le.AppendUint32(b, typeUint32), v)
	case int32:
		return appendFixed(le.AppendUint32(b, typeInt32), v)
	case uint64:
		return appendFixed(le.AppendUint32(b, typeUint64), v)
	case float32:
		return appendFixed(le.AppendUint32(b, typeFloat32), v)
	}
	panic(fmt.Sprintf("BUG: a value of type %T", v))
}

// appendFixed writes numbers.
func appendFixed(b []byte, v any) []byte {
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}
