//go:build amd64 && !purego

#include "textflag.h"

// func runAVX2(b []byte, bound byte) int
//
// Y5 bound, Y6 the first byte that is text, Y7 quotes, Y8 backslashes. A byte
// below 0x20 wraps round to one above every bound.
TEXT ·runAVX2(SB), NOSPLIT, $0-40
	MOVQ         b_base+0(FP), SI
	MOVQ         b_len+8(FP), BX
	MOVBLZX      bound+24(FP), AX
	VMOVD        AX, X5
	VPBROADCASTB X5, Y5
	MOVL         $0x20, AX
	VMOVD        AX, X6
	VPBROADCASTB X6, Y6
	MOVL         $0x22, AX
	VMOVD        AX, X7
	VPBROADCASTB X7, Y7
	MOVL         $0x5c, AX
	VMOVD        AX, X8
	VPBROADCASTB X8, Y8
	XORQ         DX, DX
	ANDQ         $~63, BX

loop:
	CMPQ     DX, BX
	JAE      done
	VMOVDQU  (SI)(DX*1), Y0
	VMOVDQU  32(SI)(DX*1), Y1
	VPSUBB   Y6, Y0, Y2
	VPSUBB   Y6, Y1, Y3
	VPMAXUB  Y5, Y2, Y4
	VPMAXUB  Y5, Y3, Y9
	VPCMPEQB Y4, Y2, Y2
	VPCMPEQB Y9, Y3, Y3
	VPCMPEQB Y0, Y7, Y4
	VPCMPEQB Y1, Y7, Y9
	VPCMPEQB Y0, Y8, Y0
	VPCMPEQB Y1, Y8, Y1
	VPOR     Y4, Y2, Y2
	VPOR     Y9, Y3, Y3
	VPOR     Y0, Y2, Y2
	VPOR     Y1, Y3, Y3
	VPOR     Y2, Y3, Y4
	VPTEST   Y4, Y4
	JNZ      found
	ADDQ     $64, DX
	JMP      loop

found:
	VPMOVMSKB Y2, AX
	TESTL     AX, AX
	JNZ       first
	VPMOVMSKB Y3, AX
	ADDQ      $32, DX

first:
	BSFL AX, AX
	ADDQ AX, DX

done:
	VZEROUPPER
	MOVQ DX, ret+32(FP)
	RET
