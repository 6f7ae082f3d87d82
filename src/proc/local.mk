noinst_LIBRARIES += src/libproc.a
src_libproc_a_SOURCES = \
	src/proc/activation.c \
	src/proc/activation.h \
	src/proc/addresses.c \
	src/proc/addresses.h \
	src/proc/commands.c \
	src/proc/control.c \
	src/proc/control.h \
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
	src/proc/orders.c \
	src/proc/orders.h \
	src/proc/privileges.c \
	src/proc/privileges.h \
	src/proc/running_text.c \
	src/proc/running_text.h \
	src/proc/server.c \
	src/proc/server.h \
	src/proc/server_private.h \
	src/proc/stages.c \
	src/proc/status.c \
	src/proc/status.h \
	src/proc/sup_call.c \
	src/proc/sup_call.h \
	src/proc/sup_files.c \
	src/proc/sup_files.h \
	src/proc/sup_link.c \
	src/proc/sup_link.h \
	src/proc/sup_log.c \
	src/proc/sup_log.h \
	src/proc/sup_private.h \
	src/proc/sup_state.c \
	src/proc/sup_state.h \
	src/proc/supervisor.c \
	src/proc/supervisor.h \
	src/proc/upgrade.c \
	src/proc/watchdog.c \
	src/proc/watchdog.h

EXTRA_DIST += contrib/gen-failures
