# ZLG_CHECK_STARPU: finds StarPU (1.4, then 1.3; a prefix built by `./bootstrap starpu` first) and probes what it can do.
AC_DEFUN([ZLG_CHECK_STARPU], [
  AC_ARG_WITH([starpu],
    [AS_HELP_STRING([--with-starpu=1.4|1.3|PREFIX],
      [StarPU series, or the prefix of an installed one @<:@default: the one of `./bootstrap starpu`, then 1.4, then 1.3@:>@])],
    [], [with_starpu=auto])
  zlg_starpu_names="starpu-1.4 starpu-1.3"
  zlg_starpu_prefix=
  AS_CASE([$with_starpu],
    [no], [AC_MSG_ERROR([StarPU is what Zellige runs on; --without-starpu cannot be built])],
    [1.3], [zlg_starpu_names=starpu-1.3],
    [auto|yes|1.4], [AS_IF([test -d "$srcdir/.deps/starpu/lib/pkgconfig"],
                           [zlg_starpu_prefix=`cd "$srcdir/.deps/starpu" && pwd`])
                     AS_IF([test "x$with_starpu" = x1.4], [zlg_starpu_names=starpu-1.4])],
    [AS_IF([test ! -d "$with_starpu/lib/pkgconfig"],
           [AC_MSG_ERROR([--with-starpu=$with_starpu: no lib/pkgconfig there; expected 1.4, 1.3 or the prefix of an installed StarPU])])
     zlg_starpu_prefix=`cd "$with_starpu" && pwd`])
  AS_IF([test -n "$zlg_starpu_prefix"],
        [PKG_CONFIG_PATH="$zlg_starpu_prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"; export PKG_CONFIG_PATH])
  zlg_starpu_name=
  for zlg_name in $zlg_starpu_names; do
    AS_IF([test -z "$zlg_starpu_name" && $PKG_CONFIG --exists $zlg_name], [zlg_starpu_name=$zlg_name])
  done
  AS_IF([test -z "$zlg_starpu_name"],
    [AC_MSG_ERROR([no StarPU found (pkg-config $zlg_starpu_names). On Debian: apt-get install libstarpu-dev, or run ./bootstrap starpu])])
  PKG_CHECK_MODULES([STARPU], [$zlg_starpu_name])
  zlg_starpu_version=`$PKG_CONFIG --modversion $zlg_starpu_name`
  zlg_starpu_where=`$PKG_CONFIG --variable=libdir $zlg_starpu_name`
  AS_IF([test -n "$zlg_starpu_prefix"],
    [STARPU_LIBS="$STARPU_LIBS -Wl,-rpath,$zlg_starpu_where"
     ZLG_DISTCHECK_STARPU=--with-starpu=$zlg_starpu_prefix])
  AC_SUBST([ZLG_DISTCHECK_STARPU])

  zlg_save_CPPFLAGS=$CPPFLAGS; zlg_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS"; LIBS="$STARPU_LIBS $LIBS"
  AC_CHECK_FUNCS([starpu_free_noflag starpu_memory_pin starpu_sched_get_predefined_policies starpu_set_limit_max_submitted_tasks])
  AC_CHECK_DECLS([STARPU_MAXCPUS, STARPU_USE_OPENCL, STARPU_USE_CUDA, STARPU_SIMGRID], [], [], [[#include <starpu.h>]])
  AM_CONDITIONAL([ZLG_SIMGRID], [test "x$ac_cv_have_decl_STARPU_SIMGRID" = xyes])
  AC_CHECK_MEMBERS([struct starpu_conf.sched_policy_callback, struct starpu_conf.sched_policy_init, struct starpu_conf.catch_signals], [], [],
                   [[#include <starpu.h>]])
  # starpu.h of a StarPU with SimGrid renames main(), so the programs that configure runs include its configuration only.
  AC_COMPUTE_INT([zlg_starpu_maxcpus], [STARPU_MAXCPUS], [[#include <starpu_config.h>]], [zlg_starpu_maxcpus=0])
  CPPFLAGS=$zlg_save_CPPFLAGS; LIBS=$zlg_save_LIBS
])
