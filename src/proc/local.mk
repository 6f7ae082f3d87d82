noinst_LIBRARIES += src/libproc.a
src_libproc_a_SOURCES = \
	src/proc/crash.c \
	src/proc/crash.h \
	src/proc/generation.c \
	src/proc/generation.h \
	src/proc/listeners.c \
	src/proc/listeners.h \
	src/proc/loader.c \
	src/proc/loader.h \
	src/proc/log_output.c \
	src/proc/log_output.h \
	src/proc/log_writer.c \
	src/proc/log_writer.h \
	src/proc/notify.c \
	src/proc/notify.h \
	src/proc/privileges.c \
	src/proc/privileges.h \
	src/proc/server.c \
	src/proc/server.h

dist_man8_MANS = docs/man/weir.8
EXTRA_DIST += contrib/gen-failures
