noinst_LIBRARIES += src/libcli.a
src_libcli_a_SOURCES = \
	src/cli/ab.c \
	src/cli/check.c \
	src/cli/cli.h \
	src/cli/command.c \
	src/cli/control.c \
	src/cli/explain.c \
	src/cli/find_conf.c \
	src/cli/proxy.c \
	src/cli/run.c \
	src/cli/suggest.c \
	src/cli/suggest_log.c \
	src/cli/suggest_log.h \
	src/cli/version.c
