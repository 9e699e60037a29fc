# The other libraries: needed ones, then optional ones (auto; explicit yes and absent is an error).
AC_DEFUN([ZLG_CHECK_LIBRARIES], [
  PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0], [],
    [AC_MSG_ERROR([hwloc not found. On Debian: apt-get install libhwloc-dev])])
  PKG_CHECK_MODULES([OPENBLAS], [openblas], [],
    [AC_MSG_ERROR([OpenBLAS not found. On Debian: apt-get install libopenblas-dev])])
  PKG_CHECK_MODULES([JANSSON], [jansson], [],
    [AC_MSG_ERROR([Jansson (JSON) not found. On Debian: apt-get install libjansson-dev])])
  PKG_CHECK_MODULES([CUNIT], [cunit], [zlg_have_cunit=yes], [zlg_have_cunit=no])
  AM_CONDITIONAL([ZLG_HAVE_CUNIT], [test "x$zlg_have_cunit" = xyes])
])

AC_DEFUN([ZLG_CHECK_OPENCL], [
  AC_ARG_WITH([opencl], [AS_HELP_STRING([--with-opencl], [OpenCL workers @<:@default: where found@:>@])], [], [with_opencl=auto])
  zlg_have_opencl=no
  AS_IF([test "x$with_opencl" != xno],
    [PKG_CHECK_MODULES([OPENCL], [OpenCL], [zlg_have_opencl=yes],
       [AS_IF([test "x$with_opencl" = xyes],
              [AC_MSG_ERROR([--with-opencl was asked for and OpenCL not found. On Debian: apt-get install ocl-icd-opencl-dev opencl-headers])])])])
  AS_IF([test "x$zlg_have_opencl" = xyes],
    [zlg_save_CPPFLAGS=$CPPFLAGS; CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS"
     AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <starpu.h>
#ifndef STARPU_USE_OPENCL
#error no OpenCL in this StarPU
#endif]], [])], [],
       [AS_IF([test "x$with_opencl" = xyes], [AC_MSG_ERROR([--with-opencl was asked for and this StarPU ($zlg_starpu_version) was built without OpenCL])])
        zlg_have_opencl="no (StarPU was built without it)"])
     CPPFLAGS=$zlg_save_CPPFLAGS])
  AS_IF([test "x$zlg_have_opencl" = xyes], [AC_DEFINE([ZLG_HAVE_OPENCL], [1], [OpenCL headers and library are there])])
  AM_CONDITIONAL([ZLG_OPENCL], [test "x$zlg_have_opencl" = xyes])
])

# CUDA needs its driver header and NVRTC only; StarPU must have been built with CUDA for workers to exist.
AC_DEFUN([ZLG_CHECK_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [device texts compiled for CUDA, workers where StarPU has CUDA @<:@default: where found@:>@])], [], [with_cuda=auto])
  zlg_have_cuda=no
  zlg_cuda_dir=
  AS_IF([test "x$with_cuda" != xno],
    [AS_CASE([$with_cuda], [yes|auto], [zlg_cuda_tries="$CUDA_HOME $CUDA_PATH /usr/local/cuda /usr"], [zlg_cuda_tries=$with_cuda])
     zlg_nvcc=`command -v nvcc 2>/dev/null`
     AS_IF([test -n "$zlg_nvcc" && test "x$with_cuda" != "x$zlg_cuda_tries"], [zlg_cuda_tries="$zlg_cuda_tries `dirname "$zlg_nvcc"`/.."])
     for zlg_try in $zlg_cuda_tries; do
       AS_IF([test -z "$zlg_cuda_dir" && test -f "$zlg_try/include/nvrtc.h"], [zlg_cuda_dir=`cd "$zlg_try" && pwd`])
     done
     AS_IF([test -n "$zlg_cuda_dir"], [zlg_have_cuda=yes],
       [AS_IF([test "x$with_cuda" != xauto],
         [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for and include/nvrtc.h not found under: $zlg_cuda_tries. Set CUDA_HOME or give the toolkit's directory])])])])
  AS_IF([test "x$zlg_have_cuda" = xyes],
    [AC_DEFINE([ZLG_HAVE_CUDA], [1], [CUDA driver and NVRTC headers are there])
     CUDA_CFLAGS="-I$zlg_cuda_dir/include"
     AC_PATH_PROG([NVCC], [nvcc], [], [$zlg_cuda_dir/bin:$PATH])
     zlg_save_CPPFLAGS=$CPPFLAGS; CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS $CUDA_CFLAGS"
     AC_PREPROC_IFELSE([AC_LANG_PROGRAM([[#include <starpu_config.h>
#ifndef STARPU_USE_CUDA
#error no CUDA in this StarPU
#endif]], [])], [zlg_cuda_workers=yes], [zlg_cuda_workers="no (StarPU was built without it)"])
     CPPFLAGS=$zlg_save_CPPFLAGS
     zlg_cuda_major=`grep '^#define CUDA_VERSION ' "$zlg_cuda_dir/include/cuda.h" | tr -dc 0-9`
     zlg_cuda_major=`expr "$zlg_cuda_major" / 1000`
     AC_DEFINE_UNQUOTED([ZLG_NVRTC_SONAME], ["libnvrtc.so.$zlg_cuda_major"], [the run-time compiler that goes with the headers])
     AC_DEFINE_UNQUOTED([ZLG_NVRTC_PATH], ["$zlg_cuda_dir/lib64/libnvrtc.so"], [where the toolkit of this build has it])])
  AC_SUBST([CUDA_CFLAGS])
  ZLG_CUDA_DIR=$zlg_cuda_dir
  AC_SUBST([ZLG_CUDA_DIR])
  AM_CONDITIONAL([ZLG_CUDA], [test "x$zlg_have_cuda" = xyes])
  # Tests on pretended cards: their kernels run through OpenCL. Sanitizers and the cards' memories do not go together.
  AM_CONDITIONAL([ZLG_CARDS], [test "x$zlg_cuda_workers" = xyes && test "x$zlg_have_opencl" = xyes &&
                               test "x${enable_sanitizers:-no}" = xno])
])

# HDF5 is needed by the coastline example today.
AC_DEFUN([ZLG_CHECK_HDF5], [
  AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5], [HDF5 (examples) @<:@default: where found@:>@])], [], [with_hdf5=auto])
  zlg_have_hdf5=no
  AS_IF([test "x$with_hdf5" != xno],
    [PKG_CHECK_MODULES([HDF5], [hdf5], [zlg_have_hdf5=yes],
       [PKG_CHECK_MODULES([HDF5], [hdf5-serial], [zlg_have_hdf5=yes],
         [AS_IF([test "x$with_hdf5" = xyes],
                [AC_MSG_ERROR([--with-hdf5 was asked for and HDF5 not found. On Debian: apt-get install libhdf5-dev])])])])])
  AM_CONDITIONAL([ZLG_HDF5], [test "x$zlg_have_hdf5" = xyes])
])

# --enable-sanitizers=address,undefined or thread: for the test builds.
AC_DEFUN([ZLG_CHECK_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [build with -fsanitize=LIST (address,undefined or thread)])],
    [], [enable_sanitizers=no])
  AS_CASE([$enable_sanitizers],
    [no], [ZLG_SANITIZE=],
    [yes], [ZLG_SANITIZE="-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all"],
    [ZLG_SANITIZE="-fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=all"])
  AS_IF([test -n "$ZLG_SANITIZE"],
    [zlg_save_CFLAGS=$CFLAGS; CFLAGS="$CFLAGS $ZLG_SANITIZE"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
       [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: $CC cannot build a program with $ZLG_SANITIZE])])
     CFLAGS=$zlg_save_CFLAGS])
  AC_SUBST([ZLG_SANITIZE])
  AM_CONDITIONAL([ZLG_SANITIZED], [test -n "$ZLG_SANITIZE"])
])

AC_DEFUN([ZLG_SUMMARY], [
  zlg_cores=`nproc 2>/dev/null || echo 1`
  AS_ECHO(["
  zellige $PACKAGE_VERSION
    StarPU        $zlg_starpu_version ($zlg_starpu_where), at most $zlg_starpu_maxcpus CPU workers
    OpenCL        $zlg_have_opencl
    CUDA          device texts: $zlg_have_cuda${zlg_cuda_dir:+ ($zlg_cuda_dir)}, workers: ${zlg_cuda_workers:-no}
    HDF5          $zlg_have_hdf5
    CUnit tests   $zlg_have_cunit
    sanitizers    ${enable_sanitizers}
    prefix        $prefix"])
  AS_IF([test "$zlg_cores" -gt "$zlg_starpu_maxcpus"],
    [AC_MSG_WARN([this StarPU was compiled for at most $zlg_starpu_maxcpus CPU workers and this machine has $zlg_cores cores: run ./bootstrap starpu, then configure again])])
])
