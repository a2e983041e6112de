dnl SPDX-License-Identifier: MIT
dnl
dnl The checks that only this project needs.

dnl PCCL_ADD_CFLAGS(VARIABLE, FLAGS): appends each flag that the compiler accepts without a warning.
AC_DEFUN([PCCL_ADD_CFLAGS], [
for pccl_flag in m4_normalize([$2]); do
	AS_VAR_PUSHDEF([pccl_cv], [pccl_cv_cflag_$pccl_flag])
	AC_CACHE_CHECK([whether $CC accepts $pccl_flag], [pccl_cv], [
		pccl_save=$CFLAGS
		CFLAGS="$CFLAGS -Werror $pccl_flag"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
			[AS_VAR_SET([pccl_cv], [yes])], [AS_VAR_SET([pccl_cv], [no])])
		CFLAGS=$pccl_save
	])
	AS_VAR_IF([pccl_cv], [yes], [$1="${$1:+$$1 }$pccl_flag"])
	AS_VAR_POPDEF([pccl_cv])
done
])

dnl PCCL_REQUIRE_LINK(FLAGS, WHAT): stops unless a program links with these flags.
AC_DEFUN([PCCL_REQUIRE_LINK], [
	AC_MSG_CHECKING([whether $CC links with $1])
	pccl_save=$CFLAGS
	CFLAGS="$CFLAGS $1"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([$CC cannot link programs with $2])])
	CFLAGS=$pccl_save
])

dnl PCCL_PROTOBUF_C_STATIC: the shim carries its own copy of libprotobuf-c, so that it depends on
dnl libc alone. The archive is one -Wl argument, so libtool keeps it behind the objects and does
dnl not record it as a dependency of programs.
AC_DEFUN([PCCL_PROTOBUF_C_STATIC], [
	AC_MSG_CHECKING([for a static libprotobuf-c])
	pccl_save=$LIBS
	pccl_dir=`$PKG_CONFIG --variable=libdir libprotobuf-c`
	AS_IF([test -f "$pccl_dir/libprotobuf-c.a"], [pccl_lib=$pccl_dir/libprotobuf-c.a],
		[pccl_lib=`$CC -print-file-name=libprotobuf-c.a`])
	AS_IF([test -f "$pccl_lib"], [AC_MSG_RESULT([$pccl_lib])],
		[AC_MSG_RESULT([no])
		AC_MSG_ERROR([libprotobuf-c.a is missing (Debian: libprotobuf-c-dev)])])
	AC_SUBST([PROTOBUF_C_STATIC_LIBS], ["-Wl,$pccl_lib"])
])

dnl PCCL_SYSTEMD_DIR(VARIABLE, SUBDIR, WHAT): systemd reads its files below /usr/local/lib as well as
dnl below its own prefix, so the default follows our prefix; for /usr the distribution decides.
AC_DEFUN([PCCL_SYSTEMD_DIR], [
	AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=DIR], [where $3 go])],
		[$1=$withval], [
		$1='${prefix}/lib/$2'
		AS_IF([test "x$prefix" = x/usr], [
			pccl_dir=`$PKG_CONFIG --variable=$1 systemd 2>/dev/null`
			AS_IF([test -n "$pccl_dir"], [$1=$pccl_dir])
		])
	])
	AC_SUBST([$1])
])

dnl PCCL_CBLAS: any library with the C interface of BLAS.
AC_DEFUN([PCCL_CBLAS], [
	have_cblas=no
	PKG_CHECK_MODULES([CBLAS], [openblas], [have_cblas=yes], [
		PKG_CHECK_MODULES([CBLAS], [cblas], [have_cblas=yes], [
			AC_CHECK_HEADER([cblas.h], [
				for pccl_lib in cblas blas; do
					AS_IF([test "$have_cblas" = no], [
						AS_UNSET([ac_cv_lib_${pccl_lib}_cblas_sgemm])
						AC_CHECK_LIB([$pccl_lib], [cblas_sgemm],
							[have_cblas=yes CBLAS_LIBS=-l$pccl_lib], [:])
					])
				done
			])
		])
	])
	AC_SUBST([CBLAS_CFLAGS])
	AC_SUBST([CBLAS_LIBS])
	AM_CONDITIONAL([HAVE_CBLAS], [test "x$have_cblas" = xyes])
])

dnl PCCL_CUDA: the toolkit of CUDA: the compiler nvcc for the kernels in kernels/cuda/, and the header
dnl of the driver. Programs link no library of CUDA. The fat binaries have machine code for the first
dnl GPU of each generation from 7.5 on that nvcc knows: later ones of the same generation run it.
AC_DEFUN([PCCL_CUDA], [
	AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
		[memory of CUDA devices; DIR has the toolkit [where nvcc is, or /usr/local/cuda]])],
		[], [with_cuda=auto])
	CUDA_DIR= NVCC= GPU_ARCHS= NVCC_WARN_FLAGS= cuda_why=
	AS_CASE([$with_cuda],
		[no], [],
		[yes|auto], [
			AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
			AS_IF([test -n "$NVCC"], [
				pccl_nvcc=`readlink -f "$NVCC"`
				CUDA_DIR=`AS_DIRNAME(["$pccl_nvcc"])`/..
			])
		],
		[CUDA_DIR=$with_cuda NVCC=$with_cuda/bin/nvcc])
	AS_IF([test "x$with_cuda" != xno], [
		AS_IF([test ! -x "$NVCC"], [cuda_why="nvcc is missing"],
			[test ! -f "$CUDA_DIR/include/cuda.h"], [cuda_why="$CUDA_DIR/include/cuda.h is missing"],
			[PCCL_NVCC_WORKS])
	], [cuda_why="--without-cuda"])
	AS_IF([test -n "$cuda_why"], [
		AS_CASE([$with_cuda], [no|auto], [],
			[AC_MSG_ERROR([$cuda_why; --without-cuda builds without CUDA])])
		have_cuda="no ($cuda_why)"
	], [
		AC_DEFINE([HAVE_CUDA], [1], [Define to 1 to support memory of CUDA devices.])
		have_cuda="`cd "$CUDA_DIR" && pwd -P`, sm_`echo $GPU_ARCHS | $SED 's/ / sm_/g'`"
	])
	AS_IF([test "x$enable_werror" = xyes], [NVCC_WARN_FLAGS="-Werror all-warnings"])
	AC_SUBST([CUDA_CPPFLAGS], ["-isystem $CUDA_DIR/include"])
	AC_SUBST([CUDA_DIR])
	AC_SUBST([NVCC])
	AC_SUBST([NVCC_WARN_FLAGS])
	AC_SUBST([GPU_ARCHS])
	AM_CONDITIONAL([HAVE_CUDA], [test -z "$cuda_why"])
])

dnl PCCL_NVCC_WORKS: sets GPU_ARCHS, or cuda_why.
AC_DEFUN([PCCL_NVCC_WORKS], [
	AC_MSG_CHECKING([whether $NVCC compiles kernels])
	pccl_major=
	for pccl_code in [`"$NVCC" --list-gpu-code 2>/dev/null | $SED -n 's/^sm_\([0-9]*\)$/\1/p' | sort -n`]; do
		AS_IF([test "$pccl_code" -ge 75 && test "`expr $pccl_code / 10`" != "$pccl_major"],
			[GPU_ARCHS="${GPU_ARCHS:+$GPU_ARCHS }$pccl_code" pccl_major=`expr $pccl_code / 10`])
	done
	AS_IF([test -z "$GPU_ARCHS"], [AC_MSG_RESULT([no])
		cuda_why="$NVCC --list-gpu-code names no GPU from sm_75 on"], [
		[echo 'struct a { int i[2]; };
			__global__ void k(const __grid_constant__ a x, int *y) { *y = x.i[threadIdx.x]; }' >conftest.cu]
		AS_IF(["$NVCC" -ptx -arch=compute_75 -o conftest.ptx conftest.cu >&AS_MESSAGE_LOG_FD 2>&1],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			cuda_why="$NVCC cannot compile a kernel; see config.log"])
		rm -rf conftest.cu conftest.ptx
	])
])

dnl PCCL_COMPILER_FLAGS: warnings, hardening, sanitizers. They go to AM_CFLAGS and friends, never to
dnl CFLAGS, which belongs to whoever calls configure.
AC_DEFUN([PCCL_COMPILER_FLAGS], [
	AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])],
		[], [enable_werror=no])
	AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [AddressSanitizer])],
		[], [enable_asan=no])
	AC_ARG_ENABLE([ubsan], [AS_HELP_STRING([--enable-ubsan], [UndefinedBehaviorSanitizer])],
		[], [enable_ubsan=no])
	AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [ThreadSanitizer])],
		[], [enable_tsan=no])
	AC_ARG_ENABLE([fuzzers], [AS_HELP_STRING([--enable-fuzzers],
		[libFuzzer targets, with AddressSanitizer and UndefinedBehaviorSanitizer (clang)])],
		[], [enable_fuzzers=no])

	AS_IF([test "$enable_fuzzers" != no], [
		AS_IF([test "$enable_tsan" != no],
			[AC_MSG_ERROR([--enable-fuzzers and --enable-tsan exclude each other])])
		enable_asan=yes enable_ubsan=yes
	])
	AS_IF([test "$enable_tsan" != no && test "$enable_asan" != no],
		[AC_MSG_ERROR([--enable-tsan and --enable-asan exclude each other])])

	WARN_CFLAGS= HARDEN_CFLAGS= HARDEN_CPPFLAGS= HARDEN_LDFLAGS= SANITIZE_CFLAGS= FUZZ_LDFLAGS=
	dnl For code that runs on many stacks: AddressSanitizer would allocate megabytes for each of them.
	COROUTINE_CFLAGS=
	PCCL_ADD_CFLAGS([WARN_CFLAGS], [-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla
		-Wmissing-prototypes -Wstrict-prototypes -Wold-style-definition -Wformat=2 -Wundef
		-Wpointer-arith -Wwrite-strings -Wlogical-op])
	AS_IF([test "$enable_werror" != no], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])

	AS_IF([test "$enable_asan" != no], [SANITIZE_CFLAGS="-fsanitize=address"])
	AS_IF([test "$enable_ubsan" != no],
		[SANITIZE_CFLAGS="${SANITIZE_CFLAGS:+$SANITIZE_CFLAGS }-fsanitize=undefined -fno-sanitize-recover=all"])
	AS_IF([test "$enable_tsan" != no], [SANITIZE_CFLAGS="-fsanitize=thread"])
	AS_IF([test "$enable_fuzzers" != no], [
		PCCL_REQUIRE_LINK([-fsanitize=fuzzer-no-link,address,undefined], [libFuzzer])
		SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fsanitize=fuzzer-no-link"
		FUZZ_LDFLAGS="-fsanitize=fuzzer"
	])
	AS_IF([test -n "$SANITIZE_CFLAGS"], [
		PCCL_REQUIRE_LINK([$SANITIZE_CFLAGS], [the sanitizer])
		SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-omit-frame-pointer"
		PCCL_ADD_CFLAGS([COROUTINE_CFLAGS], [--param=asan-use-after-return=0])
		AC_DEFINE([HAVE_SANITIZER], [1], [Define to 1 in builds with a sanitizer.])
	], [
		PCCL_ADD_CFLAGS([HARDEN_CFLAGS], [-fstack-protector-strong -fstack-clash-protection
			-fcf-protection])
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([
			#ifndef __OPTIMIZE__
			#error not optimized
			#endif
			])], [HARDEN_CPPFLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])
		HARDEN_LDFLAGS="-Wl,-z,relro -Wl,-z,now"
	])
	AC_COMPILE_IFELSE([AC_LANG_SOURCE([
		#ifndef __PIE__
		#error no position-independent executables by default
		#endif
		])], [PIE_LDFLAGS=], [PIE_LDFLAGS=-pie HARDEN_CFLAGS="$HARDEN_CFLAGS -fPIE"])
	dnl Only programs are linked with a sanitizer's run-time library, so a shared
	dnl library has undefined symbols.
	AS_IF([test -z "$SANITIZE_CFLAGS"], [SHLIB_LDFLAGS="-Wl,-z,defs"], [SHLIB_LDFLAGS=])
	AC_SUBST([WARN_CFLAGS])
	AC_SUBST([HARDEN_CFLAGS])
	AC_SUBST([HARDEN_CPPFLAGS])
	AC_SUBST([HARDEN_LDFLAGS])
	AC_SUBST([PIE_LDFLAGS])
	AC_SUBST([SHLIB_LDFLAGS])
	AC_SUBST([SANITIZE_CFLAGS])
	AC_SUBST([FUZZ_LDFLAGS])
	AC_SUBST([COROUTINE_CFLAGS])
	AM_CONDITIONAL([SANITIZED], [test -n "$SANITIZE_CFLAGS"])
	AM_CONDITIONAL([ENABLE_FUZZERS], [test "$enable_fuzzers" != no])
])
