package extproc

import "google.golang.org/protobuf/encoding/protowire"

// The protocol's numbers of what a picker answers to a message of each kind.
var answers = map[kind]protowire.Number{requestHeaders: 1, responseHeaders: 2, requestBody: 3, responseBody: 4, requestTrailers: 5, responseTrailers: 6}

// immediate is the number of an answer that ends the request.
const immediate = 7

// overwrite is the action by which a field replaces those of its name.
const overwrite = 2

// encode is the ProcessingResponse, in two parts: what stands before the bytes of a
// body, and these, which end the message.
func (r *response) encode() (head, body []byte) {
	b := make([]byte, 0, 256)
	if r.endpoint != "" { // the fields of a message may come in any order
		there := structOf(Destination, appendMessage(nil, 3, []byte(r.endpoint)))
		b = appendMessage(b, 8, structOf(lbNamespace, appendMessage(nil, 5, there)))
	}
	if r.refusal != nil {
		return appendMessage(b, immediate, r.refusal.encode()), nil
	}
	var common []byte
	if m := appendMutation(nil, r.set, r.remove); len(m) > 0 {
		common = appendMessage(common, 2, m)
	}
	if r.clear {
		common = appendNumber(common, 5, 1)
	}
	if r.to == requestTrailers || r.to == responseTrailers {
		return appendMessage(b, answers[r.to], nil), nil
	}
	if !r.streamed && !r.replaced {
		return appendMessage(b, answers[r.to], appendMessage(nil, 1, common)), nil
	}
	// The body stands last in each of the messages around it.
	var inner []byte
	if r.streamed && r.end {
		inner = appendNumber(inner, 2, 1)
	}
	if len(r.body) > 0 || r.replaced {
		inner = appendTag(inner, 1, len(r.body))
	}
	n := len(inner) + len(r.body)
	var mutation []byte
	if r.streamed {
		mutation = appendTag(nil, 3, n)
	}
	n += len(mutation)
	common = appendTag(common, 3, n)
	n += len(common)
	outer := appendTag(nil, 1, n)
	n += len(outer)
	b = appendTag(b, answers[r.to], n)
	for _, part := range [...][]byte{outer, common, mutation, inner} {
		b = append(b, part...)
	}
	return b, r.body
}

// encode is the ImmediateResponse.
func (f *Refusal) encode() []byte {
	b := appendMessage(nil, 1, appendNumber(nil, 1, uint64(f.Status)))
	b = appendMessage(b, 2, appendMutation(nil, f.Fields, nil))
	b = appendMessage(b, 3, f.Body)
	return appendMessage(b, 5, []byte(f.Code))
}

// appendMutation appends a HeaderMutation.
func appendMutation(b []byte, set [][2]string, remove []string) []byte {
	for _, f := range set {
		value := appendMessage(appendMessage(nil, 1, []byte(f[0])), 3, []byte(f[1]))
		b = appendMessage(b, 1, appendNumber(appendMessage(nil, 1, value), 3, overwrite))
	}
	for _, name := range remove {
		b = appendMessage(b, 2, []byte(name))
	}
	return b
}

// structOf is a google.protobuf.Struct of one field, which is a Value.
func structOf(key string, value []byte) []byte {
	return appendMessage(nil, 1, appendMessage(appendMessage(nil, 1, []byte(key)), 2, value))
}

func appendTag(b []byte, n protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.BytesType), uint64(length))
}

func appendMessage(b []byte, n protowire.Number, m []byte) []byte {
	return append(appendTag(b, n, len(m)), m...)
}

func appendNumber(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}
