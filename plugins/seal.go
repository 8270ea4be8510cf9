package plugins

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxProgram bounds the file that is copied into memory.
const maxProgram = 256 << 20

// sealProgram copies a program into memory that nobody can change any more and
// compares its SHA-256 there. What runs is this copy: between a check of the
// file and a start from the file someone could swap it.
func sealProgram(path, want string) (*os.File, error) {
	if want == "" {
		return nil, fmt.Errorf("%s: no sha256 is configured; `sha256sum %s` prints it", path, path)
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s is not executable", path)
	case info.Size() > maxProgram:
		return nil, fmt.Errorf("%s has %d MiB; a plugin's program has at most %d MiB", path, info.Size()>>20, maxProgram>>20)
	}
	fd, err := unix.MemfdCreate("roundhouse-plugin", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	sealed := os.NewFile(uintptr(fd), path)
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sealed, sum), io.LimitReader(in, maxProgram)); err != nil {
		sealed.Close()
		return nil, fmt.Errorf("cannot copy %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, want) {
		sealed.Close()
		return nil, fmt.Errorf("%s has sha256 %s; %s is configured", path, got, want)
	}
	_, err1 := unix.FcntlInt(sealed.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	_, err2 := sealed.Seek(0, io.SeekStart) // an interpreter reads a script from here
	if err := errors.Join(err1, err2); err != nil {
		sealed.Close()
		return nil, fmt.Errorf("cannot seal the copy of %s: %w", path, err)
	}
	return sealed, nil
}
