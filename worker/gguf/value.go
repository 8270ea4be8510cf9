package gguf

import (
	"fmt"
	"math"
)

// A Value is one entry of the metadata: a uint8 to uint64, int8 to int64,
// float32, float64, bool or string, or a slice of one of these.
type Value any

// The types of values, by their numbers in a file.
const (
	typeUint8 uint32 = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// Has reports whether the file has a value.
func (f *File) Has(key string) bool { _, ok := f.Values[key]; return ok }

// String is the string of key, "" if there is none.
func (f *File) String(key string) (string, error) { return scalar[string](f, key, "a string") }

// Bool is the truth value of key, absent if the file has none.
func (f *File) Bool(key string, absent bool) (bool, error) {
	if !f.Has(key) {
		return absent, nil
	}
	return scalar[bool](f, key, "a truth value")
}

// Strings is the list of strings of key, nil if there is none.
func (f *File) Strings(key string) ([]string, error) {
	return scalar[[]string](f, key, "a list of strings")
}

// Integers is the list of 32-bit integers of key, nil if there is none.
func (f *File) Integers(key string) ([]int32, error) {
	if list, ok := f.Values[key].([]uint32); ok {
		out := make([]int32, len(list))
		for i, v := range list {
			if v > math.MaxInt32 {
				return nil, fmt.Errorf("%s[%d] is %d; want at most %d", key, i, v, math.MaxInt32)
			}
			out[i] = int32(v)
		}
		return out, nil
	}
	return scalar[[]int32](f, key, "a list of 32-bit integers")
}

// Floats is the list of 32-bit floats of key, nil if there is none.
func (f *File) Floats(key string) ([]float32, error) {
	return scalar[[]float32](f, key, "a list of 32-bit floats")
}

// Int is the integer of key, absent if the file has none.
func (f *File) Int(key string, absent int) (int, error) {
	n := int64(0)
	switch v := f.Values[key].(type) {
	case nil:
		return absent, nil
	case uint8:
		n = int64(v)
	case int8:
		n = int64(v)
	case uint16:
		n = int64(v)
	case int16:
		n = int64(v)
	case uint32:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	case uint64:
		if v > math.MaxInt64 {
			return 0, fmt.Errorf("%s is %d; want at most 2^63-1", key, v)
		}
		n = int64(v)
	default:
		return 0, wrongType(key, v, "an integer")
	}
	return int(n), nil
}

// Float is the finite number of key, absent if the file has none.
func (f *File) Float(key string, absent float64) (float64, error) {
	v := f.Values[key]
	switch n := v.(type) {
	case nil:
		return absent, nil
	case float32:
		v = float64(n)
	case float64:
	default:
		n2, err := f.Int(key, 0)
		if err != nil {
			return 0, wrongType(key, v, "a number")
		}
		return float64(n2), nil
	}
	n := v.(float64)
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%s is %g; want a finite number", key, n)
	}
	return n, nil
}

func scalar[T any](f *File, key, want string) (T, error) {
	var none T
	v, there := f.Values[key]
	if !there {
		return none, nil
	}
	if typed, ok := v.(T); ok {
		return typed, nil
	}
	return none, wrongType(key, v, want)
}

func wrongType(key string, v Value, want string) error {
	return fmt.Errorf("%s is of type %T; want %s", key, v, want)
}
