noinst_LIBRARIES += src/libserve.a
src_libserve_a_SOURCES = \
	src/serve/access.c \
	src/serve/access.h \
	src/serve/access_log.c \
	src/serve/access_log.h \
	src/serve/client.c \
	src/serve/client.h \
	src/serve/client_h1.c \
	src/serve/client_memory.c \
	src/serve/client_memory.h \
	src/serve/fail.c \
	src/serve/fail.def \
	src/serve/fail.h \
	src/serve/filter.c \
	src/serve/filter.h \
	src/serve/h1_head.c \
	src/serve/h1_head.h \
	src/serve/handler.h \
	src/serve/header_rules.c \
	src/serve/header_rules.h \
	src/serve/limit.c \
	src/serve/limit.h \
	src/serve/log_ring.c \
	src/serve/log_ring.h \
	src/serve/request.c \
	src/serve/request.h \
	src/serve/respond.c \
	src/serve/respond.h \
	src/serve/route.c \
	src/serve/route.h \
	src/serve/snapshot.h \
	src/serve/stored.h \
	src/serve/vars.c \
	src/serve/vars.h \
	src/serve/worker.c \
	src/serve/worker.h \
	src/serve/worker_listen.c
