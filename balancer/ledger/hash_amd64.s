//go:build amd64 && !purego

#include "textflag.h"

// func accumulateAVX2(lanes *[8]uint64, keys *[24]uint64, seed uint64, b []byte)
//
// Y0 and Y1 are the lanes, Y6 the seed and its negative in turns, Y7 the prime.
TEXT ·accumulateAVX2(SB), NOSPLIT, $0-48
	MOVQ         lanes+0(FP), DI
	MOVQ         keys+8(FP), R8
	MOVQ         seed+16(FP), AX
	MOVQ         b_base+24(FP), SI
	MOVQ         b_len+32(FP), CX
	VMOVQ        AX, X6
	NEGQ         AX
	VMOVQ        AX, X7
	VPUNPCKLQDQ  X7, X6, X6
	VPERMQ       $0x44, Y6, Y6
	MOVL         $0x9e3779b1, AX
	VMOVQ        AX, X7
	VPBROADCASTQ X7, Y7
	VMOVDQU      (DI), Y0
	VMOVDQU      32(DI), Y1
	SHRQ         $10, CX
	JZ           done

chunk:
	MOVQ R8, R9
	MOVL $16, DX

step:
	VMOVDQU  (SI), Y2
	VMOVDQU  32(SI), Y3
	VPADDQ   (R9), Y6, Y4
	VPADDQ   32(R9), Y6, Y5
	VPXOR    Y2, Y4, Y4
	VPXOR    Y3, Y5, Y5
	VPSRLQ   $32, Y4, Y8
	VPSRLQ   $32, Y5, Y9
	VPMULUDQ Y4, Y8, Y4
	VPMULUDQ Y5, Y9, Y5
	VPSHUFD  $0x4e, Y2, Y2
	VPSHUFD  $0x4e, Y3, Y3
	VPADDQ   Y2, Y4, Y4
	VPADDQ   Y3, Y5, Y5
	VPADDQ   Y4, Y0, Y0
	VPADDQ   Y5, Y1, Y1
	ADDQ     $64, SI
	ADDQ     $8, R9
	DECL     DX
	JNZ      step

	// Stir: what is above comes down, under the last keys, times the prime.
	VPSRLQ   $47, Y0, Y2
	VPSRLQ   $47, Y1, Y3
	VPXOR    Y0, Y2, Y2
	VPXOR    Y1, Y3, Y3
	VPXOR    128(R8), Y2, Y2
	VPXOR    160(R8), Y3, Y3
	VPSRLQ   $32, Y2, Y4
	VPSRLQ   $32, Y3, Y5
	VPMULUDQ Y7, Y2, Y2
	VPMULUDQ Y7, Y3, Y3
	VPMULUDQ Y7, Y4, Y4
	VPMULUDQ Y7, Y5, Y5
	VPSLLQ   $32, Y4, Y4
	VPSLLQ   $32, Y5, Y5
	VPADDQ   Y2, Y4, Y0
	VPADDQ   Y3, Y5, Y1
	DECQ     CX
	JNZ      chunk

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)

done:
	VZEROUPPER
	RET
