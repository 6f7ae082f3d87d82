noinst_LIBRARIES += src/libupstream.a
src_libupstream_a_SOURCES = \
	src/upstream/affinity.c \
	src/upstream/affinity.h \
	src/upstream/check.c \
	src/upstream/check.h \
	src/upstream/health.c \
	src/upstream/health.h \
	src/upstream/pick.c \
	src/upstream/pick.h \
	src/upstream/pick_hash.c \
	src/upstream/pick_least_conn.c \
	src/upstream/pick_random.c \
	src/upstream/pick_round_robin.c \
	src/upstream/pool.c \
	src/upstream/pool.h \
	src/upstream/queue.c \
	src/upstream/queue.h \
	src/upstream/resolve.c \
	src/upstream/resolve.h \
	src/upstream/upstream.c \
	src/upstream/upstream.h
