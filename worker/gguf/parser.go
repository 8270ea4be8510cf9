package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errEarly is returned where a file ends inside its header.
var errEarly = errors.New("the file ends inside its header; it is cut short")

// left is how many bytes of the header may still be read.
func (p *parser) left() int { return min(len(p.data), maxHeader) - p.at }

// take returns the next n bytes.
func (p *parser) take(n int) ([]byte, error) {
	if n > p.left() {
		return nil, errEarly
	}
	b := p.data[p.at : p.at+n]
	p.at += n
	return b, nil
}

func (p *parser) u32() (uint32, error) {
	b, err := p.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) u64() (uint64, error) {
	b, err := p.take(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text reads a string of at most most bytes.
func (p *parser) text(most int) (string, error) {
	n, err := p.u64()
	if err != nil {
		return "", err
	}
	if n > uint64(most) || n > uint64(p.left()) {
		return "", fmt.Errorf("a string of %d bytes; at most %d are allowed, and %d are left", n, most, p.left())
	}
	b, err := p.take(int(n))
	return string(b), err
}

// typed reads a value of a type.
func (p *parser) typed(kind uint32, lists bool) (Value, error) {
	switch kind {
	case typeString:
		return p.text(maxString)
	case typeArray:
		if !lists {
			return nil, errors.New("a list of lists is not supported")
		}
		return p.list()
	}
	size := sizeOf(kind)
	if size == 0 {
		return nil, fmt.Errorf("value type %d is unknown", kind)
	}
	b, err := p.take(size)
	if err != nil {
		return nil, err
	}
	if kind == typeBool && b[0] > 1 {
		return nil, fmt.Errorf("a truth value is %d; want 0 or 1", b[0])
	}
	return number(kind, b), nil
}

// sizeOf is the size of a number; 0 for what is none.
func sizeOf(kind uint32) int {
	switch kind {
	case typeUint8, typeInt8, typeBool:
		return 1
	case typeUint16, typeInt16:
		return 2
	case typeUint32, typeInt32, typeFloat32:
		return 4
	case typeUint64, typeInt64, typeFloat64:
		return 8
	}
	return 0
}

// number reads a number, or a truth value.
func number(kind uint32, b []byte) Value {
	le := binary.LittleEndian
	switch kind {
	case typeUint8:
		return b[0]
	case typeInt8:
		return int8(b[0])
	case typeBool:
		return b[0] == 1
	case typeUint16:
		return le.Uint16(b)
	case typeInt16:
		return int16(le.Uint16(b))
	case typeUint32:
		return le.Uint32(b)
	case typeInt32:
		return int32(le.Uint32(b))
	case typeFloat32:
		return math.Float32frombits(le.Uint32(b))
	case typeUint64:
		return le.Uint64(b)
	case typeInt64:
		return int64(le.Uint64(b))
	}
	return math.Float64frombits(le.Uint64(b))
}

// list reads a list.
func (p *parser) list() (Value, error) {
	kind, err := p.u32()
	if err != nil {
		return nil, err
	}
	n, err := p.u64()
	if err != nil {
		return nil, err
	}
	least := uint64(max(sizeOf(kind), 1)) // of an entry in the file
	if kind == typeString {
		least = 8
	}
	if n > maxList || n > uint64(p.left())/least {
		return nil, fmt.Errorf("a list of %d entries; at most %d are allowed, and %d bytes are left", n, maxList, p.left())
	}
	switch kind {
	case typeUint8:
		return listOf[uint8](p, kind, int(n))
	case typeInt8:
		return listOf[int8](p, kind, int(n))
	case typeUint16:
		return listOf[uint16](p, kind, int(n))
	case typeInt16:
		return listOf[int16](p, kind, int(n))
	case typeUint32:
		return listOf[uint32](p, kind, int(n))
	case typeInt32:
		return listOf[int32](p, kind, int(n))
	case typeUint64:
		return listOf[uint64](p, kind, int(n))
	case typeInt64:
		return listOf[int64](p, kind, int(n))
	case typeFloat32:
		return listOf[float32](p, kind, int(n))
	case typeFloat64:
		return listOf[float64](p, kind, int(n))
	case typeBool:
		return listOf[bool](p, kind, int(n))
	case typeString:
		return listOf[string](p, kind, int(n))
	}
	_, err = p.typed(kind, false) // says what is wrong with the type
	return nil, err
}

func listOf[T any](p *parser, kind uint32, n int) (Value, error) {
	list := make([]T, n)
	for i := range list {
		v, err := p.typed(kind, false)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
		list[i] = v.(T)
	}
	return list, nil
}
