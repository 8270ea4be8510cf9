package ref_test

import (
	"testing"

	"roundhouse/kernels/kerneltest"
	"roundhouse/kernels/ref"
)

// The suite compares the reference with itself here, which shows that it is
// the same whatever the batch, the chunks and the pages.
func TestReference(t *testing.T) { kerneltest.Run(t, ref.New()) }
