package extproc

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // of the health service
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// codec reads and writes the few fields of the protocol's messages that a picker needs,
// by their numbers, and leaves bodies uncopied on their way out. Messages of other
// services are those of the generated code.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*response); ok {
		head, body := r.encode()
		if len(body) == 0 {
			return mem.BufferSlice{mem.SliceBuffer(head)}, nil
		}
		return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(body)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*message); ok {
		return m.decode(data.Materialize())
	}
	return c.CodecV2.Unmarshal(data, v)
}

var errProto = errors.New("the message is no ProcessingRequest")

// fieldsOf gives each field of a message to take: the value of one with a length, or
// the number of one without.
func fieldsOf(b []byte, take func(n protowire.Number, value []byte, number uint64) error) error {
	for len(b) > 0 {
		n, typ, used := protowire.ConsumeTag(b)
		if used < 0 {
			return errProto
		}
		b = b[used:]
		var value []byte
		var number uint64
		switch typ {
		case protowire.BytesType:
			value, used = protowire.ConsumeBytes(b)
			if value == nil {
				value = []byte{}
			}
		case protowire.VarintType:
			number, used = protowire.ConsumeVarint(b)
		default:
			used = protowire.ConsumeFieldValue(n, typ, b)
		}
		if used < 0 {
			return errProto
		}
		b = b[used:]
		if err := take(n, value, number); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a ProcessingRequest. The body lies in b afterwards.
func (m *message) decode(b []byte) error {
	*m = message{}
	return fieldsOf(b, func(n protowire.Number, v []byte, _ uint64) error {
		if n >= 2 && n <= 13 && n != 10 && v == nil {
			return errProto
		}
		switch k := kind(n); k {
		case requestHeaders, responseHeaders:
			m.kind = k
			return m.decodeHead(v)
		case requestTrailers, responseTrailers:
			m.kind = k
		case requestBody, responseBody:
			m.kind = k
			return fieldsOf(v, func(n protowire.Number, v []byte, number uint64) error {
				switch n {
				case 1:
					m.body = v
				case 2:
					m.end = number != 0
				}
				return nil
			})
		case 8:
			return mapOf(v, 1, m.metadata)
		case 11:
			m.modes = &modes{}
			return fieldsOf(v, func(n protowire.Number, _ []byte, number uint64) error {
				switch n {
				case 1:
					m.modes.request = int(min(number, 100))
				case 2:
					m.modes.response = int(min(number, 100))
				}
				return nil
			})
		}
		return nil
	})
}

// decodeHead reads HttpHeaders: a field's value is in raw_value, or in value where the
// gateway is one that fills the older of the two.
func (m *message) decodeHead(b []byte) error {
	return fieldsOf(b, func(n protowire.Number, v []byte, number uint64) error {
		switch n {
		case 1:
			return fieldsOf(v, func(n protowire.Number, v []byte, _ uint64) error {
				if n != 1 {
					return nil
				}
				var key, value, raw string
				err := fieldsOf(v, func(n protowire.Number, v []byte, _ uint64) error {
					switch n {
					case 1:
						key = string(v)
					case 2:
						value = string(v)
					case 3:
						raw = string(v)
					}
					return nil
				})
				if raw != "" {
					value = raw
				}
				m.fields = append(m.fields, [2]string{strings.ToLower(key), value})
				return err
			})
		case 3:
			m.end = number != 0
		}
		return nil
	})
}

// mapOf gives each entry of a map to take, which is field n of a message.
func mapOf(b []byte, field protowire.Number, take func(key string, value []byte) error) error {
	return fieldsOf(b, func(n protowire.Number, v []byte, _ uint64) error {
		if n != field {
			return nil
		}
		var key string
		var value []byte
		if err := fieldsOf(v, func(n protowire.Number, v []byte, _ uint64) error {
			switch n {
			case 1:
				key = string(v)
			case 2:
				value = v
			}
			return nil
		}); err != nil {
			return err
		}
		return take(key, value)
	})
}

// metadata takes what a namespace of the filter metadata says.
func (m *message) metadata(namespace string, fields []byte) error {
	if namespace != subsetNamespace && namespace != lbNamespace {
		return nil
	}
	return mapOf(fields, 1, func(key string, value []byte) error {
		switch {
		case namespace == subsetNamespace && key == subset:
			m.hasSubset = true
			return stringsOf(value, 0, func(s string) {
				for part := range strings.SplitSeq(s, ",") {
					if part = strings.TrimSpace(part); part != "" {
						m.subset = append(m.subset, part)
					}
				}
			})
		case namespace == lbNamespace && key == served:
			return stringsOf(value, 0, func(s string) { m.served = s })
		}
		return nil
	})
}

// mostNested is how deep lists of a google.protobuf.Value may lie in each other.
const mostNested = 8

// stringsOf gives the strings of a google.protobuf.Value to take: its own, or a list's.
func stringsOf(value []byte, depth int, take func(string)) error {
	if depth > mostNested {
		return fmt.Errorf("%w: lists lie in each other too deep", errProto)
	}
	return fieldsOf(value, func(n protowire.Number, v []byte, _ uint64) error {
		switch {
		case n == 3 && v != nil:
			take(string(v))
		case n == 6 && v != nil:
			return fieldsOf(v, func(n protowire.Number, v []byte, _ uint64) error {
				if n != 1 {
					return nil
				}
				return stringsOf(v, depth+1, take)
			})
		}
		return nil
	})
}
