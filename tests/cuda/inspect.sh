#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Inspects the machine code of the hash kernel, for all GPUs in the fat binary. It may contain no
# instruction whose result is approximate or depends on the GPU: no floating-point arithmetic, no
# special function (MUFU) and no conversion. HFMA2 is allowed where it moves a constant: the compiler
# multiplies the register that is always zero with itself and adds the constant.
#
# The PTX, from which the compiler makes machine code, is inspected everywhere; the machine code only where
# there is a tool that shows it. CUOBJDUMP names this tool. It is part of the toolkit of CUDA, or of the packages
# nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm of PyPI, which `./dev test` installs.
top=${abs_top_builddir:-.}
binary=$top/kernels/cuda/hash.fatbin
cuda=$(sed -n 's/^CUDA_DIR = //p' "$top/Makefile")
skip() {
	echo "skipped: $1"
	exit 77
}
[ -e "$binary" ] || skip "this build has no CUDA (configure --with-cuda)"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

passed=0
failed=0
check() { # what, command...
	what=$1
	shift
	if "$@"; then
		passed=$((passed + 1))
		echo "ok   $what"
	else
		failed=$((failed + 1))
		echo "FAIL $what"
	fi
}

# list FILE: prints the instructions of a disassembly, without addresses and predicates.
list() {
	sed -n 's|^ *\/\*[0-9a-f]*\*\/  *\([^/]*;\).*|\1|p' "$1" | sed 's/^@!*U*P[0-9T]*  *//'
}

# wrong FILE: prints the instructions of a list that may not be there.
wrong() {
	grep -E '^(MUFU|I2F|F2I|F2F|I2FP|FRND|F[A-Z]|D(ADD|MUL|FMA|SETP|MNMX)|H[A-Z]+2|[HIDQ]MMA|IMMA|HGMMA|U?TEX|TLD|R2UR\.FP|UF[A-Z])' "$1" |
		grep -vE '^(FLO|HFMA2(\.MMA)? U?R[0-9]+, -RZ, RZ, )'
	return 0
}

no_wrong() {
	found=$(wrong "$1")
	[ -z "$found" ] || echo "$found" | sort | uniq -c
	[ -z "$found" ]
}

no_spill() {
	! grep -E '^(STL|LDL)' "$1"
}

# The test itself: it finds such instructions.
printf '%s\n' 'MUFU.RCP R1, R2 ;' 'FFMA R1, R2, R3, R4 ;' 'FADD.FTZ R1, R2, R3 ;' 'HFMA2 R1, R2, R3, R4 ;' \
	'I2F.U32.RP R1, R2 ;' 'DMUL R2, R4, R6 ;' >"$dir/bad"
[ "$(wrong "$dir/bad" | wc -l)" -eq 6 ] || {
	echo "FAIL this test does not find wrong instructions"
	exit 1
}

# Divisions of whole numbers become approximate divisions and corrections.
nvcc=$(sed -n 's/^NVCC = //p' "$top/Makefile")
source=${abs_top_srcdir:-.}
if ! "$nvcc" -std=c++17 -O3 -arch=compute_75 "-I$source" -x cu -ptx -o "$dir/ptx" "$source/kernels/cuda/hash.c"; then
	exit 1
fi
check "PTX: the kernel multiplies and shuffles" grep -qE 'mul\.wide\.u32|mad\.wide\.u32|shfl\.sync' "$dir/ptx"
right_ptx() {
	! grep -nE '\.(f16|f16x2|bf16|f32|f64)|\.approx|^[[:space:]]*(@%p[0-9]+ )?(div|rem)\.' "$dir/ptx"
}
check "PTX: no instruction depends on the GPU" right_ptx

# closing: prints the sums and ends the test.
closing() {
	[ $# -eq 0 ] || echo "$1"
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
	exit
}

tool=${CUOBJDUMP:-}
if [ -z "$tool" ] && [ -x "$cuda/bin/cuobjdump" ]; then tool=$cuda/bin/cuobjdump; fi
if [ -z "$tool" ]; then
	tool=$(command -v cuobjdump) || closing "only PTX is inspected: cuobjdump is not installed; ./dev test installs it from PyPI"
fi
PATH=$(dirname "$tool"):$PATH # it runs nvdisasm
if ! "$tool" -lelf "$binary" >"$dir/elf" 2>"$dir/error"; then
	cat "$dir/error"
	exit 1
fi
codes=$(sed -n 's/^ELF file.*\.sm_\([0-9a-z]*\)\.cubin$/\1/p' "$dir/elf")
# A build with a sanitizer has only PTX.
[ -n "$codes" ] || closing "only PTX is inspected: this build has no machine code"
wanted=$(sed -n 's/^GPU_ARCHS = //p' "$top/Makefile")
for code in $wanted; do
	check "the fat binary has code for sm_$code" grep -q "\.sm_$code\.cubin$" "$dir/elf"
done
# disassemble CODE BINARY: writes the instructions for this GPU to $dir/list.
disassemble() {
	"$tool" -sass -arch "sm_$1" "$2" >"$dir/sass" 2>&1
	list "$dir/sass" >"$dir/list"
}
# The test of the tool: another kernel has such instructions.
disassemble "${codes%%[!0-9a-z]*}" "$top/kernels/cuda/check.fatbin"
check "instructions that depend on the GPU are found where they are" [ -n "$(wrong "$dir/list")" ]
for code in $codes; do
	disassemble "$code" "$binary"
	check "sm_$code: the kernel multiplies and shuffles" grep -qE '^(IMAD|SHFL)' "$dir/list"
	check "sm_$code: no instruction depends on the GPU" no_wrong "$dir/list"
	check "sm_$code: loads 16 bytes at a time" grep -q '^LDG\.E\.128' "$dir/list"
	check "sm_$code: no register is spilled" no_spill "$dir/list"
done
closing
