package cl

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"unsafe"
)

// Kind is what sort of device something is.
type Kind uint64

// The kinds of device.
const (
	CPU         Kind = 2
	GPU         Kind = 4
	Accelerator Kind = 8
)

// Device is one device of one driver.
type Device struct {
	platform, id uintptr

	Platform   string // the driver's name
	Name       string
	Vendor     string
	Driver     string // its version
	Version    string // of OpenCL, as the device says it
	Kind       Kind
	PCI        string // "0000:18:00.0"; empty where the driver does not say
	UUID       string // hex; empty where the driver does not say
	Extensions []string
	IL         string   // intermediate languages that it takes: "SPIR-V_1.2"; empty: none
	Languages  []string // versions of OpenCL C that it takes: "1.2", "3.0"

	GlobalMemory  uint64
	MaxAllocation uint64
	LocalMemory   uint64
	Unified       bool // shares the host's memory
	Units         uint32
	MaxGroup      uint64
	SubGroups     []uint64 // sizes that kernels may ask for
}

// Intels reports whether Intel made the driver. PoCL on an Intel processor names
// GenuineIntel, who made the processor.
func (d *Device) Intels() bool { return strings.Contains(d.Vendor, "Intel(R)") }

// Has reports whether the device has an extension.
func (d *Device) Has(extension string) bool {
	for _, e := range d.Extensions {
		if e == extension {
			return true
		}
	}
	return false
}

// The parameters of clGetDeviceInfo.
const (
	deviceType          = 0x1000
	deviceUnits         = 0x1002
	deviceMaxGroup      = 0x1004
	deviceMaxAllocation = 0x1010
	deviceGlobalMemory  = 0x101F
	deviceLocalMemory   = 0x1023
	deviceName          = 0x102B
	deviceVendor        = 0x102C
	driverVersion       = 0x102D
	deviceVersion       = 0x102F
	deviceExtensions    = 0x1030
	deviceUnified       = 0x1035
	deviceIL            = 0x105B
	deviceLanguage      = 0x103D
	deviceLanguages     = 0x1066 // of OpenCL 3.0: a number and a name of 64 bytes each
	deviceUUID          = 0x106A // cl_khr_device_uuid
	deviceSubGroups     = 0x4108 // cl_intel_required_subgroup_size
	devicePCI           = 0x410F // cl_khr_pci_bus_info: domain, bus, device, function
	platformName        = 0x0902
)

// Devices lists every device of every driver. No driver at all is an empty list.
func (l *Library) Devices() ([]Device, error) {
	var n uint32
	switch code := l.getPlatformIDs(0, nil, &n); {
	case code == platformNotFound || code == 0 && n == 0:
		return nil, nil
	case code != 0:
		return nil, check("clGetPlatformIDs", code)
	}
	platforms := make([]uintptr, n)
	if err := check("clGetPlatformIDs", l.getPlatformIDs(n, &platforms[0], nil)); err != nil {
		return nil, err
	}
	var all []Device
	for _, p := range platforms {
		ids, err := l.deviceIDs(p)
		if err != nil {
			return nil, err
		}
		name, _ := l.info("clGetPlatformInfo", l.getPlatformInfo, p, platformName)
		for _, id := range ids {
			d := Device{platform: p, id: id, Platform: text(name)}
			if err := l.describe(&d); err != nil {
				return nil, err
			}
			all = append(all, d)
		}
	}
	return all, nil
}

func (l *Library) deviceIDs(platform uintptr) ([]uintptr, error) {
	const every = 0xFFFFFFFF
	var n uint32
	switch code := l.getDeviceIDs(platform, every, 0, nil, &n); {
	case code == deviceNotFound || code == 0 && n == 0:
		return nil, nil
	case code != 0:
		return nil, check("clGetDeviceIDs", code)
	}
	ids := make([]uintptr, n)
	return ids, check("clGetDeviceIDs", l.getDeviceIDs(platform, every, n, &ids[0], nil))
}

// info reads one parameter of a platform or device, whatever its size.
func (l *Library) info(call string, get func(uintptr, uint32, uintptr, unsafe.Pointer, *uintptr) int32, id uintptr, what uint32) ([]byte, error) {
	var size uintptr
	if err := check(call, get(id, what, 0, nil, &size)); err != nil || size == 0 {
		return nil, err
	}
	out := make([]byte, size)
	return out, check(call, get(id, what, size, unsafe.Pointer(&out[0]), nil))
}

func text(b []byte) string { return strings.TrimSpace(strings.TrimRight(string(b), "\x00")) }

func number(b []byte) uint64 {
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:])
}

// describe fills in what the device says of itself. What its driver does not
// know stays empty.
func (l *Library) describe(d *Device) error {
	get := func(what uint32) []byte {
		b, err := l.info("clGetDeviceInfo", l.getDeviceInfo, d.id, what)
		if err != nil {
			return nil
		}
		return b
	}
	d.Name, d.Vendor = text(get(deviceName)), text(get(deviceVendor))
	d.Driver, d.Version = text(get(driverVersion)), text(get(deviceVersion))
	d.IL = text(get(deviceIL))
	d.Extensions = strings.Fields(text(get(deviceExtensions)))
	d.Languages = languages(text(get(deviceLanguage)), get(deviceLanguages))
	d.Kind = Kind(number(get(deviceType)))
	d.GlobalMemory, d.MaxAllocation = number(get(deviceGlobalMemory)), number(get(deviceMaxAllocation))
	d.LocalMemory, d.MaxGroup = number(get(deviceLocalMemory)), number(get(deviceMaxGroup))
	d.Units, d.Unified = uint32(number(get(deviceUnits))), number(get(deviceUnified)) != 0
	if d.Name == "" {
		return fmt.Errorf("a device of %s does not say its name", d.Platform)
	}
	if b := get(devicePCI); d.Has("cl_khr_pci_bus_info") && len(b) == 16 {
		at := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
		d.PCI = fmt.Sprintf("%04x:%02x:%02x.%x", at(0), at(1), at(2), at(3))
	}
	if b := get(deviceUUID); d.Has("cl_khr_device_uuid") && len(b) == 16 {
		d.UUID = hex.EncodeToString(b)
	}
	if d.Has("cl_intel_required_subgroup_size") {
		for b := get(deviceSubGroups); len(b) >= 8; b = b[8:] {
			d.SubGroups = append(d.SubGroups, number(b[:8]))
		}
	}
	return nil
}

// languages are the versions of OpenCL C in a device's list, or below the one version
// that a device before OpenCL 3.0 says ("OpenCL C 2.0 of a driver").
func languages(one string, list []byte) []string {
	var out []string
	for ; len(list) >= 68; list = list[68:] {
		v := binary.LittleEndian.Uint32(list)
		out = append(out, fmt.Sprintf("%d.%d", v>>22, v>>12&0x3ff))
	}
	if words := strings.Fields(one); len(out) == 0 && len(words) >= 3 {
		for _, v := range []string{"1.2", "2.0"} {
			if v <= words[2] {
				out = append(out, v)
			}
		}
	}
	return out
}
