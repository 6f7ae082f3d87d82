noinst_LIBRARIES += src/libfilter.a
src_libfilter_a_SOURCES = \
	src/filter/deflate_pool.c \
	src/filter/deflate_pool.h \
	src/filter/gzip.c \
	src/filter/gzip.h
